"""Writers that share nothing but an object store, as on several machines, lose nothing that was acknowledged."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import load_peer
from remote.servers import SeaweedFS

import zarrlite
from zarrlite import ObjectStore, StoreError
from zarrlite.codecs import Bytes, ShardingIndexed, Zstd
from zarrlite.storage_transformers import ConcatParts, Part

SHARD = [ShardingIndexed((1, 8), [Bytes(), Zstd()])]
TRIALS = 20
KILLS = 5 if os.environ.get("ZARRLITE_TORTURE") else 1
WRITERS = Path(__file__).parent / "writers.py"


def start(*arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITERS), arguments[0], *map(json.dumps, arguments[1:])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def make(server: SeaweedFS, rows: int) -> tuple[str, zarrlite.Array]:
    url = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}"
    store = ObjectStore(url, **server.settings())
    return url, zarrlite.create_array(store, shape=(rows, 8), dtype="u4", chunks=(rows, 8), codecs=SHARD)


def test_32_writers_of_one_shard_in_2_processes_lose_nothing(seaweedfs: SeaweedFS) -> None:
    processes: list[Any] = [start("update_shards", seaweedfs.settings(), first, 16, 10) for first in (0, 16)]
    for _ in range(TRIALS):
        url, array = make(seaweedfs, 32)
        for process in processes:
            process.stdin.write(f"{url}\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in processes] == ["done\n", "done\n"]
        assert (array[...] == 10).all()
    assert [process.communicate() and process.returncode for process in processes] == [0, 0]


def test_only_one_of_several_processes_creates_a_node(seaweedfs: SeaweedFS) -> None:
    url = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}"
    ObjectStore(url, **seaweedfs.settings()).set("zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    processes = [start("create_node", url, seaweedfs.settings(), f"writer {i}") for i in range(3)]
    assert sorted(process.communicate()[0] for process in processes) == ["created\n", "exists\n", "exists\n"]


def test_writers_in_threads_lose_no_attributes(make_s3: Any) -> None:
    store = make_s3()
    zarrlite.create_group(store)

    def write(number: int) -> None:
        group = zarrlite.open_group(store)
        for i in range(3):
            group.attrs[f"{number}.{i}"] = i

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(zarrlite.open_group(store, mode="r").attrs) == 24


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[SeaweedFS]:
    with SeaweedFS(tmp_path / "own") as server:
        yield server


def test_nothing_that_was_acknowledged_is_lost_when_the_server_is_killed(own_server: SeaweedFS) -> None:
    url, _ = make(own_server, 2)
    settings = {**own_server.settings(), "retries": 2}
    processes = [start("write_until_killed", url, settings, row) for row in range(2)]
    last = [0, 0]

    def follow(row: int) -> None:
        for line in processes[row].stdout or ():
            last[row] = int(line)

    followers = [threading.Thread(target=follow, args=(row,)) for row in range(2)]
    for follower in followers:
        follower.start()
    try:
        for _ in range(KILLS):
            wait_until(lambda goal=[n + 5 for n in last]: all(n >= g for n, g in zip(last, goal, strict=True)))
            own_server.kill()
            own_server.start()
        wait_until(lambda goal=[n + 5 for n in last]: all(n >= g for n, g in zip(last, goal, strict=True)))
    finally:
        for process in processes:
            process.kill()
        for follower in followers:
            follower.join()
        for process in processes:
            process.communicate()
    found = zarrlite.open_array(url, mode="r", storage_options=own_server.settings())[...]
    for row in range(2):
        assert found[row].min() == found[row].max()
        assert found[row, 0] in (last[row], last[row] + 1)  # the next value may have been written, but not acknowledged


def make_in_parts(server: SeaweedFS) -> tuple[str, dict[str, Any], zarrlite.Array]:
    """Create an array with a single chunk, which is stored in three parts.

    Returns its URL, the options for a single writer, and the array.
    """
    url, options = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}", {**server.settings(), "single_writer": True}
    parts = ConcatParts([Part(".head", 16), Part(""), Part(".tail", 40)])
    data = np.zeros(100, "u2")
    array = zarrlite.create_array(url, data=data, codecs=[Bytes()], storage_transformers=[parts], fill_value=9,
        storage_options=options,
    )  # fmt: skip
    return url, options, array


def test_a_chunk_in_parts_is_the_old_one_or_the_new_one_after_its_writer_was_killed(seaweedfs: SeaweedFS) -> None:
    url, options, array = make_in_parts(seaweedfs)
    rng = np.random.default_rng(0)
    for _ in range(KILLS * 4):
        process = start("write_parts_until_killed", url, options)
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(3)][-1]
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        rest, _ = process.communicate()
        acknowledged = [acknowledged, *map(int, rest.split())][-1]
        found = array[...]
        assert len(set(found[:50].tolist())) == len(set(found[50:].tolist())) == 1  # halves may be written separately
        assert {*found.tolist()} <= {acknowledged, acknowledged + 1}
        array[...] = acknowledged + 1  # the next writer completes the change
        assert (array[...] == acknowledged + 1).all()
    assert sorted(array.store.list()) == ["c/0", "c/0.head", "c/0.tail", "zarr.json"]


def test_readers_of_a_chunk_in_parts_see_one_version_of_it_while_it_is_written(seaweedfs: SeaweedFS) -> None:
    url, options, _ = make_in_parts(seaweedfs)
    reader = zarrlite.open_array(url, mode="r", storage_options=seaweedfs.settings())
    process = start("write_parts_until_killed", url, options)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        seen = set()
        for _ in range(40):
            found = reader[...]
            assert len(set(found[:50].tolist())) == len(set(found[50:].tolist())) == 1
            seen.add(int(found[0]))
        assert len(seen) > 1
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Any, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the writers do not write"
        time.sleep(0.02)


def test_two_workers_of_dask_write_one_sharded_array(seaweedfs: SeaweedFS) -> None:
    load_peer("distributed")
    url, array = make(seaweedfs, 16)
    script = f"""
import zarrlite
from distributed import Client, LocalCluster

def write(row):
    zarrlite.open_array({url!r}, mode="r+", storage_options={seaweedfs.settings()!r})[row] = row + 1
    return row

if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster, Client(cluster) as client:
        assert sorted(client.gather(client.map(write, range(16)))) == list(range(16))
        array = zarrlite.open_array({url!r}, mode="r+", storage_options={seaweedfs.settings()!r})
        assert client.submit(lambda array: int(array[3, 3]), array).result() == 4  # arrays can be sent to workers
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)
    assert (array[...] == np.arange(1, 17)[:, None]).all()


def _read(store: ObjectStore) -> bytes:
    return bytes(store.get("a") or b"")


def test_stores_can_be_used_in_spawned_processes(make_s3: Any) -> None:
    store = make_s3()
    store.set("a", b"0123")
    assert _read(pickle.loads(pickle.dumps(store))) == b"0123"
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.apply(_read, (store,)) == b"0123"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_after_a_request_gets_an_error_at_once(make_s3: Any) -> None:
    store = make_s3()
    store.set("a", b"0123")
    received, sent = os.pipe()
    child = os.fork()
    if child == 0:
        message = b"no error"
        try:
            make_s3().get("a")
        except StoreError as error:
            message = str(error).encode()
        finally:
            os.write(sent, message)
            os._exit(0)
    os.close(sent)
    with os.fdopen(received, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(child, 0)
    assert found.startswith("object stores must not be used in a process that was forked after they were used")
    assert "'spawn' or 'forkserver'" in found
    assert _read(store) == b"0123"  # the parent process is not affected

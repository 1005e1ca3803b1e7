"""`copy` and `reencode` on dask workers: transfers can be resumed, and are complete even if a worker is killed."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from remote.servers import SeaweedFS

import zarrlite
from zarrlite import ArgumentError, Array, DataError, Store
from zarrlite.stores import LocalStore, open_store
from zarrlite.tools.cli.main import main
from zarrlite.tools.transfer import blocks
from zarrlite.tools.transfer.journal import JOURNAL
from zarrlite.tools.transfer.reencoding import Reencoding, reencoded_metadata

DATA = np.arange(12_000, dtype="i4").reshape(120, 100)
PARTS = {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ""}, {"key_suffix": ".t", "size": 4}]}}
TARGETS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (20, 10)},
    "shards": {"chunks": (5, 10), "shards": (20, 20)},
    "parts": {"chunks": (20, 10), "storage_transformers": [PARTS]},
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2000)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Store]:
    """Return a function that opens the store with a given name, in a new directory or under a new prefix on S3."""
    if request.param == "disk":
        return lambda name: LocalStore(tmp_path / name)
    server: SeaweedFS = request.getfixturevalue("seaweedfs")
    prefix = uuid.uuid4().hex
    url = f"s3://{SeaweedFS.bucket}/{prefix}"
    return lambda name: open_store(f"{url}/{name}", storage_options=server.settings())


everywhere = pytest.mark.parametrize("place", ["disk", "s3"], indirect=True)
on_disk = pytest.mark.parametrize("place", ["disk"], indirect=True)


def create(store: Store, **keywords: Any) -> Array:
    return zarrlite.create_array(store, data=DATA, chunks=(10, 100), attributes={"a": 1}, **keywords)


def names(store: Store) -> list[str]:
    return sorted(store.list())


class Kill:
    """A `progress` callback that kills a worker once `after` steps are complete."""

    def __init__(self, victim: subprocess.Popen[bytes], after: int) -> None:
        self.victim, self.after, self.total = victim, after, 0

    def __call__(self, done: int, total: int) -> None:
        self.total = total
        if done >= self.after and self.victim.poll() is None:
            self.victim.kill()
            self.victim.wait()


@pytest.fixture
def victim(cluster: Client, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Add a worker without a nanny to the cluster, so that it is not restarted when it is killed."""
    name = uuid.uuid4().hex
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--name", name]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler.address, *options]
    environment = os.environ | {"PYTHONPATH": str(Path(zarrlite.__file__).parents[1])}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--local-directory", str(tmp_path)], env=environment, stdout=log, stderr=log
        )
    try:
        while name not in {worker["name"] for worker in cluster.scheduler_info(n_workers=-1)["workers"].values()}:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("place", "form"),
    [("disk", "chunks"), ("disk", "parts"), ("s3", "chunks"), ("s3", "shards")],
    indirect=["place"],
)
def test_an_array_is_reencoded_even_if_a_worker_is_killed(
    cluster: Client, place: Callable[[str], Store], form: str, victim: subprocess.Popen[bytes]
) -> None:
    source = create(place("a"))
    kill = Kill(victim, after=3)
    made = zarrlite.reencode(source, place("b"), dask=cluster, progress=kill, **TARGETS[form])
    assert kill.total > 6
    assert victim.returncode == -signal.SIGKILL
    expected = zarrlite.reencode(source, place("c"), **TARGETS[form])
    assert names(place("b")) == names(place("c"))
    assert all(bytes(place("b").get(key) or b"") == bytes(place("c").get(key) or b"") for key in names(place("c")))
    assert np.array_equal(made[...], DATA)
    assert made.metadata == expected.metadata


@everywhere
def test_a_hierarchy_is_copied_even_if_a_worker_is_killed(
    cluster: Client,
    place: Callable[[str], Store],
    victim: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zarrlite.tools.transfer.copying._BATCH", 2)
    store = place("a")
    group = zarrlite.create_group(store, attributes={"by": "me"})
    for name in ("x", "y/z"):
        group.create_array(name, data=DATA, chunks=(20, 20))
    copy = zarrlite.copy(group, place("b"), dask=cluster, progress=Kill(victim, after=8))
    assert victim.returncode == -signal.SIGKILL
    assert isinstance(copy, zarrlite.Group)
    assert copy.attrs["by"] == "me"
    assert names(place("b")) == names(store)
    assert all(bytes(place("b").get(key) or b"") == bytes(store.get(key) or b"") for key in names(store))


@on_disk
def test_an_interrupted_transfer_is_resumed_with_or_without_workers(
    cluster: Client, place: Callable[[str], Store]
) -> None:
    source = create(place("a"))

    def interrupt(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="rerun the same command to resume"):
        zarrlite.reencode(source, place("b"), chunks=(20, 10), dask=cluster, progress=interrupt)
    before = names(place("b"))
    assert JOURNAL in before
    assert "zarr.json" not in before
    done: list[int] = []
    zarrlite.reencode(source, place("b"), chunks=(20, 10), progress=lambda n, _: done.append(n))
    assert done[0] >= 4  # steps that the interrupted run completed are not repeated
    assert np.array_equal(zarrlite.open_array(place("b"), mode="r")[...], DATA)
    assert JOURNAL not in names(place("b"))


@on_disk
def test_after_an_interrupt_no_worker_writes_any_more(cluster: Client, place: Callable[[str], Store]) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zarrlite.reencode(create(place("a")), place("b"), chunks=(20, 10), dask=cluster, progress=interrupt)
    assert not any(cluster.processing().values())


@on_disk
def test_the_number_of_tasks_under_way_is_bounded(
    cluster: Client, place: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[str] = []
    submit = cluster.submit

    def counting(work: Any, step: Any, *, key: str) -> Any:
        submitted.append(key)
        assert len(pickle.dumps((work, step))) < 2 * (1024 + len(str(source.metadata.to_json())))
        return submit(work, step, key=key)

    source = create(place("a"))
    monkeypatch.setattr(cluster, "submit", counting)
    under_way = {}
    zarrlite.reencode(
        source,
        place("b"),
        chunks=(2, 100),
        dask=cluster,
        progress=lambda n, total: under_way.update({n: (len(submitted) - n, total)}),
    )
    assert len(under_way) == len(submitted) > 20
    # two tasks per thread, counting the threads of killed workers that have not been removed yet
    assert max(under_way.values()) <= (8, len(submitted))


@on_disk
def test_an_error_of_a_worker_reaches_the_caller(cluster: Client, place: Callable[[str], Store]) -> None:
    source = create(place("a"))
    source.store.set("c/3/0", b"damaged")
    with pytest.raises(DataError, match="c/3/0"):
        zarrlite.reencode(source, place("b"), chunks=(20, 10), dask=cluster)
    with pytest.raises(zarrlite.NodeNotFoundError):
        zarrlite.open_array(place("b"), mode="r")


@on_disk
@pytest.mark.parametrize(
    ("dask", "message"),
    [
        ("nowhere", "dask must be the address of a running scheduler such as tcp://10.0.0.1:8786, or 'local', not 'no"),
        (3, "dask must be the address of a scheduler, 'local' or a distributed.Client, not 3"),
    ],
)
def test_a_wrong_cluster_is_refused_before_anything_is_changed(
    place: Callable[[str], Store], dask: Any, message: str
) -> None:
    target = create(place("b"))
    with pytest.raises(ArgumentError, match=message):
        zarrlite.reencode(create(place("a")), target.store, overwrite=True, dask=dask)
    assert np.array_equal(target[...], DATA)


def test_stores_that_workers_cannot_reach_are_refused(cluster: Client, tmp_path: Path) -> None:
    on_disk, in_memory = create(LocalStore(tmp_path / "a")), create(open_store("memory://"))
    message = "must be reachable from other processes"
    with pytest.raises(ArgumentError, match=message):
        zarrlite.reencode(in_memory, tmp_path / "b", dask=cluster)
    with pytest.raises(ArgumentError, match=message):
        zarrlite.copy(on_disk, {}, dask=cluster)
    with (
        zarrlite.ZipStore(tmp_path / "b.zip", mode="a") as store,
        pytest.raises(ArgumentError, match="must be written by a single process"),
    ):
        zarrlite.copy(on_disk, store, dask=cluster)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@on_disk
def test_a_journal_with_blocks_of_another_size_is_not_resumed(
    place: Callable[[str], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = create(place("a"))

    def job() -> Reencoding:
        return Reencoding(source, place("b"), "", reencoded_metadata(source, chunks=(20, 10)))

    def interrupt(n: int) -> None:
        if n:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job().run(overwrite=False, advance=interrupt)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4000)
    with pytest.raises(zarrlite.NodeExistsError, match="unfinished transfer by another command"):
        job().run(overwrite=False)
    job().run(overwrite=True)
    assert np.array_equal(zarrlite.open_array(place("b"), mode="r")[...], DATA)


# The command


def test_commands_use_a_cluster(
    cluster: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str], seaweedfs: SeaweedFS, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ZARRLITE_STORAGE_OPTIONS", json.dumps(seaweedfs.settings()))
    create(LocalStore(tmp_path / "a"))
    url, address = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}", cluster.scheduler.address
    reencode = ["reencode", f"{tmp_path}/a", url, "--chunks", "20,10", "--dask", address]
    assert main(reencode) == 0
    out, err = capsys.readouterr()
    assert out.startswith("reencoded 12000 values: ")
    assert err == ""
    assert main(["copy", url, f"{tmp_path}/b", "--dask", address]) == 0
    assert main(["diff", f"{tmp_path}/a", f"{tmp_path}/b", "--values"]) == 0
    assert main(["copy", url, f"{tmp_path}/b", "--dask", "nowhere"]) == 2
    assert "zarrlite copy: dask must be the address of a running scheduler" in capsys.readouterr().err


INTERRUPTED = """
import os, signal, sys
from zarrlite.tools.cli.main import main
from zarrlite.tools.transfer import blocks, journal

def advance(self, n=1):
    before = self._state["done"]
    original(self, n)
    if before < 3 <= self._state["done"]:
        os.killpg(0, signal.SIGINT)  # as a terminal does

if __name__ == "__main__":
    blocks.BLOCK_BYTES = 2000
    original, journal.Transfer.advance = journal.Transfer.advance, advance
    sys.exit(main(["reencode", "a", "b", "--chunks", "20,10", "--dask", "local"]))
"""


def test_ctrl_c_ends_a_command_and_its_own_workers_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    create(LocalStore(tmp_path / "a"))
    Path("run.py").write_text(INTERRUPTED)
    environment = os.environ | {"PYTHONPATH": str(Path(zarrlite.__file__).parents[1])}
    command = [sys.executable, "run.py"]
    done = subprocess.run(command, env=environment, start_new_session=True, capture_output=True, text=True)
    message = "zarrlite reencode: interrupted; rerun the same command to resume\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", message)
    assert main(["reencode", "a", "b", "--chunks", "20,10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["blocks_done_before"] >= 3
    assert np.array_equal(zarrlite.open_array("b", mode="r")[...], DATA)

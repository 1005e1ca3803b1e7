"""The number of requests that each kind of operation makes, counted by a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from remote.bad_server import BadServer

import zarrlite
from zarrlite import Array, ByteRange
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, ShardingIndexed, Zstd
from zarrlite.storage_transformers import ConcatParts, Part
from zarrlite.stores.base import Limits

DATA = np.arange(1, 4097, dtype="u2").reshape(64, 64)
SHARD = ShardingIndexed((8, 8), [Bytes(), Zstd()])


@pytest.fixture(scope="module")
def server() -> Iterator[BadServer]:
    with BadServer() as server:
        yield server


@pytest.fixture
def create(server: BadServer) -> Callable[..., Array]:
    def create(**keywords: Any) -> Array:
        server.behave()
        options = keywords.pop("options", {})
        array = zarrlite.create_array(server.store(**options), **{"data": DATA, "chunks": (16, 16), **keywords})
        opened = zarrlite.open_array(array.store, mode="r")
        server.requests()
        return opened

    return create


def kinds(log: list[str]) -> dict[str, int]:
    """Return the number of requests for each method."""
    methods = [line.split()[0] for line in log]
    return {method: methods.count(method) for method in sorted(set(methods))}


SELECTIONS: dict[str, tuple[Any, int]] = {
    "all": (lambda a: a[...], 16),
    "a box": (lambda a: a[10:20, :], 8),
    "an element": (lambda a: a[3, 4], 1),
    "a column": (lambda a: a[:, 5], 4),
    "every 9th": (lambda a: a[::9, ::9], 16),
    "orthogonal": (lambda a: a.oindex[[1, 20, 50], [2, 30]], 6),
    "points": (lambda a: a.vindex[[1, 20, 50], [2, 30, 60]], 3),
    "a mask": (lambda a: a[DATA % 1000 == 0], 4),
}


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd()]], ids=["raw", "zstd"])
@pytest.mark.parametrize(("read", "count"), SELECTIONS.values(), ids=SELECTIONS)
def test_each_chunk_takes_one_request(
    server: BadServer, create: Callable[..., Array], codecs: Any, read: Any, count: int
) -> None:
    array = create(codecs=codecs)
    assert np.array_equal(read(array), read(zarrlite.create_array(None, data=DATA)))
    assert kinds(server.requests()) == {"GET": count}


SHARD_SELECTIONS: dict[
    str, tuple[Any, int, int]
] = {  # name -> a read, how many requests it makes for indices, and how many other requests
    "all": (lambda a: a[...], 0, 4),
    "a box": (lambda a: a[10:20, :], 2, 2),
    "an element": (lambda a: a[3, 4], 1, 1),
    "a column": (lambda a: a[:, 5], 2, 2),
    "every 9th": (lambda a: a[::9, ::9], 4, 4),
    "every second inner chunk": (lambda a: a[::16, ::16], 4, 4),
    "orthogonal": (lambda a: a.oindex[[1, 20, 50], [2, 30]], 2, 2),
    "points": (lambda a: a.vindex[[1, 20, 50], [2, 30, 60]], 2, 2),
}


@pytest.mark.parametrize(("read", "indices", "others"), SHARD_SELECTIONS.values(), ids=SHARD_SELECTIONS)
def test_a_selection_of_shards_takes_two_rounds(
    server: BadServer, create: Callable[..., Array], read: Any, indices: int, others: int
) -> None:
    """The first round requests the indices; the second requests inner chunks if the ETag of the shard is unchanged."""
    array = create(codecs=[SHARD], chunks=(32, 32))
    assert np.array_equal(read(array), read(zarrlite.create_array(None, data=DATA)))
    log = server.requests()
    assert kinds(log) == {"GET": indices + others}
    assert sum("If-Match" in line for line in log) == (others if indices else 0)


def test_ranges_of_a_shard_that_are_apart_are_requests_of_one_round(server: BadServer) -> None:
    server.behave()
    store = server.store()
    array = zarrlite.create_array(store, data=DATA, chunks=(64, 64), codecs=[ShardingIndexed((8, 8), [Bytes()])])
    store.limits = Limits(concurrency=16, gap=0)
    array = zarrlite.open_array(store, mode="r")
    server.requests()
    assert np.array_equal(array[::16, ::16], DATA[::16, ::16])
    log = server.requests()
    assert kinds(log) == {"GET": 1 + 16}
    assert sum("If-Match" in line for line in log) == 16


def test_ranges_of_a_value_that_are_close_are_one_request(server: BadServer) -> None:
    server.behave()
    store = server.store()
    store.set("a", bytes(range(100)) * 100_000)
    server.requests()
    near, far = ByteRange(5, 9), ByteRange(8_000_000, 8_000_003)
    requests = [("a", near), ("a", ByteRange(1_000_000, 1_000_001)), ("a", far), ("b", near)]
    found = store.get_partial_values(requests)
    assert [value and bytes(value) for value in found] == [bytes(range(5, 9)), b"\0", bytes(range(3)), None]
    assert sorted(server.requests()) == ["GET a 5-1000000", "GET a 8000000-8000002", "GET b 5-8"]
    store.get_partial_values([("a", ALL), ("a", near), ("a", ByteRange(-4))])
    assert server.requests() == ["GET a"]
    # a single request for all ranges would exceed 16 MiB
    store.set("c", bytes(2**25))
    server.requests()
    store.get_partial_values([("c", ByteRange(i * 2**20, i * 2**20 + 1)) for i in range(18)])
    assert len(server.requests()) == 2


def test_reading_an_empty_range_only_checks_that_the_value_exists(server: BadServer) -> None:
    server.behave()
    store = server.store()
    store.set("a", b"0123")
    assert store.get("b") is None  # the response proves that the bucket exists
    server.requests()
    assert store.get_partial_values([("a", ByteRange(2, 2)), ("b", ByteRange(2, 2))]) == [b"", None]
    assert sorted(server.requests()) == ["HEAD a", "HEAD b"]
    assert store.size("a") == 4
    assert store.get("a", ByteRange(9)) == b""
    assert server.requests() == ["HEAD a", "GET a 9-", "HEAD a"]


def test_writing_takes_one_request_for_a_chunk_and_an_update_two(server: BadServer) -> None:
    server.behave()
    store = server.store()
    array = zarrlite.create_array(store, data=DATA, chunks=(16, 16), codecs=[Bytes()])
    array[0, 0] = 1  # the first update finds out whether the server honours conditions
    server.requests()
    array[...] = DATA + 1
    assert kinds(server.requests()) == {"PUT": 16}
    array[3, 4] = 9
    assert server.requests() == ["GET c/0/0", "PUT c/0/0 If-Match"]
    array[...] = 0
    assert kinds(server.requests()) == {"POST": 16}
    array[3, 4] = 9
    assert server.requests() == ["GET c/0/0", "PUT c/0/0 If-None-Match"]
    array.attrs["a"] = 1
    assert server.requests() == ["GET zarr.json", "PUT zarr.json If-Match"]
    array[...] = DATA
    server.requests()
    store.erase_prefix("")
    assert server.requests() == ["GET ?", "POST ?delete 17"]


def test_a_shard_is_updated_by_reading_and_writing_it_once(server: BadServer) -> None:
    server.behave()
    store = server.store()
    for writing in ("rewrite", "in-place", "append"):
        codec = ShardingIndexed((8, 8), [Bytes()], strategy=writing)
        array = zarrlite.create_array(store, data=DATA, chunks=(32, 32), codecs=[codec], overwrite=True)
        array[1, 1] = 2
        server.requests()
        array[20, 20] = 7
        assert server.requests() == ["GET c/0/0", "PUT c/0/0 If-Match"]
        assert array[20, 20] == 7


def test_opening_takes_one_request(server: BadServer) -> None:
    server.behave()
    store = server.store()
    group = zarrlite.create_group(store)
    for i in range(20):
        group.create_array(f"a{i:02}", shape=3, dtype="u1")
    zarrlite.consolidate_metadata(store)
    server.requests()
    zarrlite.open(store, path="a07", mode="r")
    assert [line.split()[:2] for line in server.requests()] == [["GET", "a07/zarr.json"]]
    opened = zarrlite.open_group(store, mode="r")
    assert len(dict(opened.members())) == 20
    assert kinds(server.requests()) == {"GET": 1}
    opened = zarrlite.open_group(store, mode="r", use_consolidated=False)
    assert len(dict(opened.members())) == 20
    assert kinds(server.requests()) == {"GET": 1 + 1 + 20}


def test_parts_of_a_chunk_are_read_at_once_and_checked_again(server: BadServer) -> None:
    server.behave()
    index = 16 * 16 + 4
    array = zarrlite.create_array(
        server.store(single_writer=True),
        data=DATA,
        chunks=(32, 32),
        codecs=[ShardingIndexed((8, 8), [Bytes()])],
        storage_transformers=[ConcatParts([Part(""), Part(".index", index)])],
    )
    server.requests()
    assert array[3, 4] == DATA[3, 4]
    log = server.requests()
    assert [line.split()[:2] for line in log if "GET" in line] == [["GET", "c/0/0.index"], ["GET", "c/0/0"]]
    assert kinds(log) == {"GET": 2, "HEAD": 2}


def test_as_many_requests_are_under_way_as_the_store_takes(server: BadServer, create: Callable[..., Array]) -> None:
    array = create(chunks=(4, 4), codecs=[Bytes()], options={"concurrency": 5})
    assert np.array_equal(array[...], DATA)
    assert server.most <= 5
    assert kinds(server.requests()) == {"GET": 256}


def test_a_cache_keeps_ranges_of_one_version(server: BadServer) -> None:
    server.behave()
    store = server.store()
    zarrlite.create_array(store, data=DATA, chunks=(32, 32), codecs=[SHARD])
    array = zarrlite.open_array(zarrlite.CachedStore(store, max_bytes=2**20), mode="r")
    assert array[3, 4] == DATA[3, 4]
    server.requests()
    assert array[3, 5] == DATA[3, 5]
    assert server.requests() == []
    zarrlite.open_array(store)[40, 40] = 9
    assert array[3, 4] == DATA[3, 4]

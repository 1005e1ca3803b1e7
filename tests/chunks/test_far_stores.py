"""Remote stores: even small reads keep as many requests under way as the store and zarrlite's bounds allow."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import Array, ByteRange, MemoryStore, Store, StoreError, threads
from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, BytesBytesCodec, Crc32c, ShardingIndexed, Zstd
from zarrlite.extensions import registry
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores.base import Limits
from zarrlite.tools.cli import validate as validate_command
from zarrlite.tools.cli.main import main
from zarrlite.tools.layout.check import check

DATA = np.arange(1, 4097, dtype="u2").reshape(64, 64)
INDEX = 4 * 16 + 4  # size in bytes of the index of a shard with four inner chunks
COMPRESSED = [Bytes(), Zstd(), Crc32c()]


class FarStore(Store):
    """A store that implements only the four required operations, each of which takes some time.

    Requests wait until `expected` of them are under way, so that a test can count how many run at once.
    """

    limits = Limits(concurrency=16)

    def __init__(self) -> None:
        self.values = MemoryStore()
        self.expected, self.alone = 1, 0
        self.under_way = self.most = self.count = 0
        self.gathered = threading.Condition()

    def _request(self) -> None:
        with self.gathered:
            self.count += 1
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.gathered.notify_all()
            if self.count > self.alone:
                self.gathered.wait_for(lambda: self.most >= self.expected, timeout=30)
        time.sleep(0.002)  # no request may end before all requests that are made together have begun
        with self.gathered:
            self.under_way -= 1

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        self._request()
        return self.values.get(key, byte_range)

    def set(self, key: str, value: Any) -> None:
        self._request()
        self.values.set(key, value)

    def erase(self, key: str) -> None:
        self._request()
        self.values.erase(key)

    def list(self) -> Iterator[str]:
        return self.values.list()

    def requests_of(self, operation: Callable[[], Any], at_once: int, first_round: int = 0, more: int = 0) -> int:
        """Run an operation, check that it makes `at_once` requests at the same time, and return its number of requests.

        The first `first_round` requests do not wait for others. Up to `more` additional requests may be under way.
        """
        self.count = self.most = 0
        self.expected, self.alone = at_once, first_round
        try:
            operation()
        finally:
            self.expected, self.alone = 1, 0
        assert at_once <= self.most <= at_once + more, f"{self.most} requests at once, not {at_once}"
        return self.count


def create(codecs: Any, shape: int = 8, **keywords: Any) -> tuple[FarStore, Array]:
    store = FarStore()
    return store, zarrlite.create_array(store, data=DATA, chunks=(shape, shape), codecs=codecs, **keywords)


@pytest.mark.parametrize("codecs", [[Bytes()], COMPRESSED], ids=["raw", "zstd"])
def test_small_chunks_are_read_with_as_many_requests_as_the_store_takes(codecs: Any) -> None:
    store, array = create(codecs)
    reads: list[tuple[Any, int, int]] = [
        (lambda: array[...], 64, 16),
        (lambda: array[:8], 8, 8),
        (lambda: array[:, 5], 8, 8),
        (lambda: array[::9, ::9], 64, 16),
        (lambda: array.oindex[[1, 20, 50], [2, 30]], 6, 6),
        (lambda: array.vindex[[1, 20, 50], [2, 30, 60]], 3, 3),
        (lambda: array[3, 4], 1, 1),
    ]
    for read, count, at_once in reads:
        assert store.requests_of(read, at_once) == count
    assert np.array_equal(array[...], DATA)
    assert np.array_equal(array.oindex[[1, 20, 50], [2, 30]], DATA[np.ix_([1, 20, 50], [2, 30])])


def test_large_chunks_are_read_like_small_ones() -> None:
    store = FarStore()
    data = np.arange(12 * 2**16, dtype="u4")
    array = zarrlite.create_array(store, data=data, chunks=(2**16,))
    assert store.requests_of(lambda: np.testing.assert_array_equal(array[...], data), 12) == 12


def test_all_shards_of_a_selection_are_read_in_two_rounds() -> None:
    store, array = create([ShardingIndexed((8, 8), COMPRESSED)], 16)
    # one inner chunk from each of 4 or 16 shards: all indices are requested together, then all inner chunks
    assert store.requests_of(lambda: array[:8, ::16], 4) == 8
    assert store.requests_of(lambda: array[::16, ::16], 16) == 32
    assert np.array_equal(array[::16, ::16], DATA[::16, ::16])


def test_a_whole_shard_takes_one_request_unless_it_is_long() -> None:
    store, array = create([ShardingIndexed((8, 8), [Bytes()])], 32)
    assert store.requests_of(lambda: array[...], 4) == 4
    store.limits = Limits(concurrency=16, gap=0, longest=8 * 8 * 2)
    array = zarrlite.open_array(store, mode="r")
    assert store.requests_of(lambda: np.testing.assert_array_equal(array[...], DATA), 16, first_round=4) == 4 + 4 * 16


def test_ranges_of_a_shard_that_are_apart_are_requested_at_once() -> None:
    store, array = create([ShardingIndexed((8, 8), [Bytes()])], 64)
    store.limits = Limits(concurrency=16, gap=0)
    array = zarrlite.open_array(store, mode="r")
    assert store.requests_of(lambda: array[::16, ::16], 16, first_round=1) == 1 + 16
    assert np.array_equal(array[::16, ::16], DATA[::16, ::16])


@pytest.mark.parametrize(
    ("transformer", "codecs", "at_once"),
    [
        (ConcatParts([Part(""), Part(".index", INDEX)]), [ShardingIndexed((8, 8), [Bytes()])], 4),
        (Sharding((2, 2)), [Bytes()], 2),
    ],
    ids=["parts", "draft shards"],
)
def test_chunks_below_a_storage_transformer_are_requested_at_once(transformer: Any, codecs: Any, at_once: int) -> None:
    store, array = create(codecs, 16, storage_transformers=[transformer])
    store.requests_of(lambda: np.testing.assert_array_equal(array[:16, ::16], DATA[:16, ::16]), at_once)


def test_chunks_are_written_and_erased_with_as_many_requests_as_the_store_takes() -> None:
    store, array = create([Bytes()])
    assert store.requests_of(lambda: array.__setitem__(..., DATA + 1), 16) == 64
    assert np.array_equal(array[...], DATA + 1)
    assert store.requests_of(lambda: array.__setitem__(..., 0), 16) == 64
    assert list(store.list()) == ["zarr.json"]
    array[...] = DATA
    assert store.requests_of(lambda: store.erase_prefix("c/"), 16) == 64


def test_a_thread_that_holds_a_lock_erases_without_other_threads() -> None:
    """Helper threads would wait for the lock of the first part, which the erasing thread itself holds."""
    parts = [ConcatParts([Part(""), Part(".a", 4), Part(".b", 8), Part(".c", 16)])]
    store, array = create([Bytes()], storage_transformers=parts)
    store.requests_of(lambda: array.__setitem__(..., 0), 1, more=16)
    assert list(store.list()) == ["zarr.json"]


def test_parts_of_chunks_are_changed_at_once() -> None:
    store, array = create(COMPRESSED)
    assert store.requests_of(lambda: array.__setitem__((slice(1, 63), 3), 9), 8) == 16
    expected = DATA.copy()
    expected[1:63, 3] = 9
    assert np.array_equal(array[...], expected)


def test_a_store_without_limits_gets_as_many_requests_at_once_as_there_are_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "workers", lambda: 3)
    store, array = create([Bytes()])
    store.limits = Limits()
    assert store.requests_of(lambda: array[...], 3) == 64


def test_many_callers_share_the_threads_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MAX_REQUESTS", 10)
    monkeypatch.setattr(threads, "_waiting_pool", None)
    store, array = create([Bytes()])
    with ThreadPoolExecutor(6) as callers:
        store.most = 0
        found = list(callers.map(lambda _: array[...], range(12)))
    assert all(np.array_equal(each, DATA) for each in found)
    assert store.most <= 10 + 6


def test_bytes_under_way_are_bounded_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    store, array = create([Bytes()])
    monkeypatch.setattr(threads, "MAX_IN_FLIGHT_BYTES", 4 * 2 * 128)  # four chunks: 128 bytes stored, and 128 decoded
    assert store.requests_of(lambda: np.testing.assert_array_equal(array[...], DATA), 4) == 64
    monkeypatch.setattr(threads, "MAX_IN_FLIGHT_BYTES", 1)  # each chunk exceeds this, so they are read one by one
    assert store.requests_of(lambda: array[...], 1) == 64
    assert threads._in_flight == {}


class Counted(BytesBytesCodec):
    """A codec that changes nothing, and counts the threads in it. Each waits until `expected` threads are in it."""

    name = "test.counted"
    gathered = threading.Condition()
    expected = at_work = most = 0

    @classmethod
    def _work(cls, data: Any) -> bytes:
        with cls.gathered:
            cls.at_work += 1
            cls.most = max(cls.most, cls.at_work)
            cls.gathered.notify_all()
            cls.gathered.wait_for(lambda: cls.most >= cls.expected, timeout=30)
        time.sleep(0.002)
        with cls.gathered:
            cls.at_work -= 1
        return bytes(data)

    def encode(self, data: Any) -> bytes:
        return self._work(data)

    def decode(self, data: Any, limit: int) -> bytes:
        return self._work(data)


@pytest.mark.parametrize("cores", [1, 3])
def test_as_many_threads_decode_and_encode_as_there_are_cores(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.register(Counted)
    monkeypatch.setattr(threads, "workers", lambda: cores)
    monkeypatch.setattr(threads, "_seats", None)
    monkeypatch.setattr(threads, "_waiting_pool", None)
    store, array = create([Bytes(), Counted()])
    operations: list[Callable[[], Any]] = [
        lambda: array[...],
        lambda: array.__setitem__(..., DATA),
        lambda: array.__setitem__((slice(None), slice(0, None, 2)), DATA[:, ::2]),
    ]
    for operation in operations:
        Counted.most, Counted.expected = 0, cores
        store.requests_of(operation, 16)
        assert cores <= Counted.most <= cores + 1  # the calling thread may work as well
    Counted.expected = 0
    assert np.array_equal(array[...], DATA)


def test_waiting_threads_share_scratch_buffers_that_are_bounded_by_the_number_of_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    buffers: list[int] = []
    monkeypatch.setattr(scratch, "_aligned", lambda size: buffers.append(size) or memoryview(bytearray(size)))
    monkeypatch.setattr(threads, "workers", lambda: 2)
    monkeypatch.setattr(threads, "_seats", None)
    monkeypatch.setattr(threads, "_waiting_pool", None)
    store = FarStore()
    data = np.arange(64 * 2**16, dtype="u2").reshape(512, -1)
    array = zarrlite.create_array(store, data=data, chunks=(64, 1024), codecs=COMPRESSED)
    buffers.clear()
    assert np.array_equal(array[...], data)
    assert 0 < len(buffers) <= 2 * 3  # two buffers for each core, and two for the calling thread


@pytest.mark.parametrize("codecs", [[Bytes()], COMPRESSED], ids=["raw", "zstd"])
def test_memory_beyond_the_result_is_within_the_bound(codecs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class CopyingStore(FarStore):
        """A store that returns each value in new memory, as a network client does, and discards written values."""

        def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
            return bytearray(super().get(key, byte_range))

        def set(self, key: str, value: Any) -> None:
            self._request()

    chunk, bound = 2**18, 2**21  # room for the stored and decoded bytes of four chunks
    data = np.random.default_rng(1).integers(0, 256, (64, chunk), "u1")
    near = MemoryStore()
    zarrlite.create_array(near, data=data, chunks=(1, chunk), codecs=codecs)
    store = CopyingStore()
    store.values = near
    array = zarrlite.open_array(store)
    monkeypatch.setattr(threads, "MAX_IN_FLIGHT_BYTES", bound)
    operations: list[Callable[[], Any]] = [lambda: array[...], lambda: array.__setitem__(..., data)]
    for operation in operations:
        store.requests_of(operation, 4)  # allocates scratch buffers, so that these are not measured below
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            store.requests_of(operation, 4)
            peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
        result = data.nbytes if operation is operations[0] else 0
        assert peak - result < bound + 2**18


def test_the_first_error_is_raised_after_all_requests_have_ended() -> None:
    store, array = create([Bytes()])

    class FailingStore(FarStore):
        def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
            if key == "c/3/3":
                raise OSError("the line is cut")
            return super().get(key, byte_range)

    failing = FailingStore()
    failing.values = store.values
    with pytest.raises(StoreError, match=r"c/3/3.*the line is cut"):
        zarrlite.open_array(failing, mode="r")[...]
    assert failing.under_way == 0
    assert threads._in_flight == {}
    assert np.array_equal(array[...], DATA)  # the thread pool still works


def test_nested_requests_complete_even_if_all_threads_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MAX_REQUESTS", 2)
    monkeypatch.setattr(threads, "_waiting_pool", None)
    store, array = create([ShardingIndexed((8, 8), [Bytes()])], 32)
    store.limits = Limits(concurrency=16, gap=0)
    array = zarrlite.open_array(store, mode="r")
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(array[::16, ::16]), daemon=True)
    reader.start()
    reader.join(60)
    assert np.array_equal(found, [DATA[::16, ::16]])


def test_results_come_in_order_and_abandoned_jobs_are_not_started() -> None:
    started: list[int] = []
    place = threads.place("test", 8)

    def job(n: int) -> int:
        started.append(n)
        time.sleep(0.002 * (n % 3))
        return n

    assert list(threads.ahead(job, range(50), place)) == list(range(50))
    started.clear()
    results = threads.ahead(job, range(1000), place)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert len(started) <= 9
    assert list(threads.ahead(job, [], place)) == []


def test_members_of_a_group_are_opened_and_copied_at_once() -> None:
    store = FarStore()
    group = zarrlite.create_group(store)
    for i in range(20):
        group.create_array(f"a{i:02}", data=DATA[i], chunks=(64,))
    # The calling thread yields members. It opens one itself only if no other thread has begun to open it.
    assert store.requests_of(lambda: dict(group.members()), 15, more=1) == 20
    assert store.requests_of(lambda: set(group), 15, more=1) == 20
    target = MemoryStore()
    assert store.requests_of(lambda: zarrlite.copy(group, target), 16) == 61
    assert zarrlite.open_array(target, mode="r", path="a07")[...].tolist() == DATA[7].tolist()


def test_copies_hold_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    store, array = create([Bytes()])
    monkeypatch.setattr(threads, "MAX_IN_FLIGHT_BYTES", 4 * 128)  # room for four chunks
    target = MemoryStore()
    assert store.requests_of(lambda: zarrlite.copy(array, target), 4) == 65
    assert np.array_equal(zarrlite.open_array(target, mode="r")[...], DATA)


def test_values_are_copied_at_once() -> None:
    store, _ = create([Bytes()])
    target = FarStore()
    assert target.requests_of(lambda: zarrlite.copy_store(store, target), 16) == 2 * 65  # reads sizes, writes values
    assert np.array_equal(zarrlite.open_array(target, mode="r")[...], DATA)
    assert store.requests_of(lambda: zarrlite.copy_store(store, {}, dry_run=True), 16) == 65  # reads only sizes


@pytest.mark.parametrize("codecs", [[Bytes()], COMPRESSED], ids=["raw", "zstd"])
def test_all_objects_of_an_array_are_checked_at_once(codecs: Any) -> None:
    store, _ = create(codecs)
    store.values.set("c/3/3", b"damage")
    problems: list[Any] = []
    store.requests_of(lambda: problems.extend(check(store)), 15, first_round=20, more=1)
    assert {problem.key for problem in problems} == {"c/3/3"}


def group_of_small_arrays(store: FarStore) -> None:
    group = zarrlite.create_group(store)
    for i in range(20):
        group.create_array(f"a{i:02}", data=DATA[i], chunks=(64,), dimension_names=["x"])
    store.values.set("a07/c/0", b"damage")
    store.values.set("a09/zarr.json", b"{}")


def test_the_nodes_of_a_group_are_checked_at_once() -> None:
    store = FarStore()
    group_of_small_arrays(store)
    problems: list[Any] = []
    store.requests_of(lambda: problems.extend(check(store)), 15, first_round=2, more=1)
    assert [(problem.key, problem.kind) for problem in problems] == [
        ("a07/c/0", "data"),
        ("a09/zarr.json", "metadata"),
        ("a09/zarr.json", "metadata"),
    ]


def test_the_documents_of_a_group_are_validated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FarStore()
    group_of_small_arrays(store)
    monkeypatch.setattr(validate_command, "split", lambda location: (store, ""))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        store.requests_of(lambda: main(["validate", "anywhere", "--json"]), 15, first_round=3, more=1)
    report = json.loads(output.getvalue())
    assert report["documents"] == 21
    assert {fault["document"] for fault in report["faults"]} == {"a09/zarr.json"}

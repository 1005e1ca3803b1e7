"""CachedStore: laws, avoided requests, versions, size limits, damaged files, and concurrent readers and writers."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrlite
from tests.stores.versioned_store import VersionedStore
from zarrlite import ByteRange, CachedStore
from zarrlite.buffers.source import read_current
from zarrlite.errors import ArgumentError, StoreError
from zarrlite.stores import LocalStore, MemoryStore, Store
from zarrlite.stores.range_cache import DirectoryCache, MemoryCache, RangeCache, Version
from zarrlite.testing import StoreLaws

KINDS = ("memory", "directory")


@pytest.fixture(params=KINDS)
def cached(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., CachedStore]:
    """A function that returns a cached store, whose cache is in memory or in a directory."""
    return lambda store, max_bytes=2**20: CachedStore(
        store, tmp_path / "cache" if request.param == "directory" else None, max_bytes
    )


class TestCachedStoreInMemory(StoreLaws):
    def make_store(self) -> Store:
        return CachedStore(VersionedStore())


class TestCachedStoreInMemoryOfAStoreWithoutVersions(StoreLaws):
    def make_store(self) -> Store:
        return CachedStore(MemoryStore(), max_bytes=100)


class TestCachedStoreInADirectory(StoreLaws):
    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def make_store(self) -> Store:
        return CachedStore(VersionedStore(), self.new.mktemp("cache"))


class TestCachedStoreInADirectoryOfAStoreWithoutVersions(TestCachedStoreInADirectory):
    def make_store(self) -> Store:
        return CachedStore(LocalStore(self.new.mktemp("store")), self.new.mktemp("cache"))


# Requests


def test_values_and_ranges_are_requested_once(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", bytes(range(100)))
    store.set("c/1", b"other")
    view = cached(store)
    for _ in range(3):
        assert view.get("c/0", ByteRange(10, 20)) == bytes(range(10, 20))
        assert view.get("c/0", ByteRange(-5)) == bytes(range(95, 100))
        assert view.get("c/0", ByteRange(12, 15)) == bytes(range(12, 15))
        assert view.get("c/1") == b"other"
        assert view.get("c/1", ByteRange(1, -1)) == b"the"
    assert [key for key, _ in store.requests] == ["c/0", "c/0", "c/1"]


def test_a_range_beyond_the_end_is_the_whole_value(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", b"0123")
    view = cached(store)
    for _ in range(2):
        assert view.get_partial_values([("c/0", ByteRange(0, 100), None)]) == [b"0123"]
        assert view.get_partial_values([("c/0", ByteRange(2, 4), 4)]) == [b"23"]
    assert len(store.requests) == 1


def test_only_the_parts_that_are_missing_are_requested(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", bytes(range(100)))
    view = cached(store)
    ranges = [ByteRange(10 * n, 10 * n + 5) for n in range(1, 5)]
    assert view.get("c/0", ranges[1]) == bytes(range(20, 25))
    store.requests.clear()
    found = view.get_partial_values([("c/0", byte_range) for byte_range in ranges])
    assert [bytes(part) for part in found] == [bytes(range(r.start, r.stop or 0)) for r in ranges]
    assert [byte_range for _, byte_range in store.requests] == [ranges[0], *ranges[2:]]


@pytest.mark.parametrize("key", ["zarr.json", "a/zarr.json", "a/.zarray", ".zmetadata", "a/attributes.json", "none"])
def test_documents_and_missing_keys_are_not_cached(cached: Any, key: str) -> None:
    store = VersionedStore()
    view = cached(store)
    for value in (b"first", b"second", b"third"):
        if key != "none":
            store.set(key, value)
        expected = None if key == "none" else value
        assert view.get(key) == view.source(key).read_one() == expected
    store.set(key, b"new")
    assert view.get(key) == b"new"


def test_a_store_without_versions_caches_whole_values_only(cached: Any) -> None:
    store = VersionedStore(versioned=False)
    store.set("c/0", b"0123456789")
    view = cached(store)
    for _ in range(2):
        assert view.get("c/0", ByteRange(2, 4)) == b"23"
    assert len(store.requests) == 2
    for _ in range(2):
        assert view.get("c/0") == b"0123456789"
        assert view.get("c/0", ByteRange(2, 4)) == b"23"
    assert len(store.requests) == 3


def test_an_array_is_read_once(cached: Any) -> None:
    data = np.arange(10_000, dtype="int32").reshape(100, 100)
    for keywords in (
        {"chunks": (10, 10)},
        {"chunks": (10, 10), "shards": (50, 50)},
        {"chunks": 50, "compressors": None},
    ):
        store = VersionedStore()
        view = cached(store)
        array = zarrlite.create_array(view, data=data, overwrite=True, **keywords)  # type: ignore[arg-type]
        for _ in range(2):
            assert (array[...] == data).all()
            assert (array[3:70:7, 5] == data[3:70:7, 5]).all()
            assert array[33, 44] == data[33, 44]
        store.requests.clear()
        assert (array[3:70:7, 5] == data[3:70:7, 5]).all()
        assert array[33, 44] == data[33, 44]
        assert store.requests == []
        array[33, 44] = -1
        assert array[33, 44] == -1
        view.erase_prefix("")


# Versions


def test_another_version_drops_every_range_of_its_key(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", b"old value")
    store.set("c/1", b"stays")
    view = cached(store)
    assert view.get("c/0", ByteRange(4, 9)) == b"value"
    assert view.get("c/1", ByteRange(1, 5)) == b"tays"
    store.set("c/0", b"new thing")  # as if by another writer
    assert view.get("c/0", ByteRange(4, 9)) == b"value"
    assert view.get("c/0", ByteRange(1, 3)) == b"ew"
    if view.cache is not None:  # the files of the old version have been removed
        assert len([*files(Path(view.cache))]) == 2
    assert view.get("c/0", ByteRange(4, 9)) == b"thing"
    store.requests.clear()
    assert view.get("c/1", ByteRange(1, 5)) == b"tays"
    assert store.requests == []


def test_parts_of_one_call_are_of_one_version(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", b"old value")
    view = cached(store)
    view.get("c/0", ByteRange(4, 9))
    store.set("c/0", b"new thing")
    assert view.get_partial_values([("c/0", ByteRange(1, 3)), ("c/0", ByteRange(4, 9))]) == [b"ew", b"thing"]


def test_a_source_starts_over_when_its_value_was_replaced(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", b"old value")
    view = cached(store)
    view.get("c/0", ByteRange(4, 9))
    store.set("c/0", b"new thing")
    source = view.source("c/0")
    attempts: list[list[bytes]] = []

    def read() -> bytes:
        attempts.append([])
        for byte_range in (ByteRange(4, 9), ByteRange(1, 3)):
            attempts[-1].append(bytes(source.read_one(byte_range) or b""))
        return b" ".join(attempts[-1])

    assert read_current([source], read) == b"thing ew"
    assert attempts == [[b"value"], [b"thing", b"ew"]]


def test_a_source_without_versions_never_mixes_the_store_and_the_cache(cached: Any) -> None:
    store = VersionedStore(versioned=False)
    store.set("c/0", b"old value")
    view = cached(store)
    view.get("c/0")
    store.set("c/0", b"new thing")
    source = view.source("c/0")
    view._cache.drop(["c/0"])
    assert source.read_one(ByteRange(1, 3)) == b"ew"
    generation = view._cache.generation("c/0")
    view._cache.store("c/0", generation, Version("ab", 9), (0, 9), b"old value")  # simulates a slower reader
    assert source.read_one(ByteRange(4, 9)) == b"thing"


def test_a_writer_sees_what_it_wrote(cached: Any) -> None:
    store = VersionedStore()
    view = cached(store)
    for number in range(5):
        value = b"%d" % number
        for write in (
            lambda value=value: view.set("c/0", value),
            lambda value=value: view.set_many([("c/0", value)]),
            lambda value=value: view.set_many(iter([("c/0", value)])),
            lambda value=value: view.update("c/0", lambda old: value),
            lambda value=value: view.set_partial_values([("c/0", 0, value)]),
        ):
            view.get("c/0")
            write()
            assert view.get("c/0") == value == store.get("c/0")
        for erase in (lambda: view.erase("c/0"), lambda: view.erase_prefix("c/"), lambda: view.erase_values(["c/0"])):
            view.set("c/0", value)
            assert view.get("c/0") == value
            erase()
            assert view.get("c/0") is None


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(KINDS), max_bytes=st.sampled_from([1, 40, 100, 10_000]))
def test_any_sequence_of_operations_returns_the_values_of_the_store(
    data: st.DataObject, kind: str, max_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = VersionedStore(versioned=data.draw(st.booleans()))
    view = CachedStore(store, tmp_path_factory.mktemp("cache") if kind == "directory" else None, max_bytes)
    for step in range(data.draw(st.integers(1, 25))):
        key = data.draw(st.sampled_from(["c/0", "c/1", "d"]))
        operation = data.draw(st.sampled_from(["get", "get", "parts", "source", "set", "erase", "update"]))
        ranges = [
            ByteRange(start, stop)
            for start, stop in data.draw(
                st.lists(st.tuples(st.integers(-30, 30), st.none() | st.integers(-30, 60)), min_size=1, max_size=3)
            )
        ]
        value = store.values.get(key, (0, None))[1]
        expected = [None if value is None else value[start:stop] for start, stop in ranges]
        if operation == "get":
            assert [content(view.get(key, byte_range)) for byte_range in ranges] == expected
        elif operation == "parts":
            assert [content(part) for part in view.get_partial_values([(key, r) for r in ranges])] == expected
        elif operation == "source":
            found = view.source(key).read(ranges)
            assert ([None] * len(ranges) if found is None else [*map(content, found)]) == expected
        elif operation == "set":
            view.set(key, bytes([step]) * data.draw(st.integers(0, 50)))
        elif operation == "erase":
            view.erase(key)
        else:
            view.update(key, lambda old: None if old is None else bytes(old) + b"+")
        assert held(view) <= max_bytes


def content(part: Any) -> bytes | None:
    return None if part is None else bytes(part)


def held(view: CachedStore) -> int:
    """Return how many bytes the cache holds."""
    if view.cache is None:
        cache: Any = view._cache
        assert cache._total == sum(map(len, cache._ranges.values()))
        return int(cache._total)
    return sum(path.stat().st_size for path in files(Path(view.cache)))


def files(cache: Path) -> Iterator[Path]:
    return (path for path in cache.glob("*/*/*") if path.is_file())


# Bounds


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_recently_used_ranges_are_dropped_first(kind: str, tmp_path: Path) -> None:
    cache: RangeCache = MemoryCache(1000) if kind == "memory" else DirectoryCache(str(tmp_path), 1000, None)
    version = Version("ab", 200)
    for number in range(4):
        cache.store(f"c/{number}", cache.generation(f"c/{number}"), version, (0, 200), bytes([number]) * 200)
    for number in (0, 2):
        assert cache.find(f"c/{number}", version, (0, 200)) == bytes([number]) * 200
    for number in (4, 5):
        cache.store(f"c/{number}", cache.generation(f"c/{number}"), version, (0, 200), bytes([number]) * 200)
    kept = [number for number in range(6) if cache.find(f"c/{number}", version, (0, 200)) is not None]
    assert kept in ([0, 2, 3, 4, 5], [0, 2, 4, 5])  # a cache in a directory may drop more than necessary
    assert 1 not in kept


def test_values_larger_than_the_cache_are_served_but_not_cached(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", bytes(1000))
    view = cached(store, 999)
    for _ in range(2):
        assert view.get("c/0") == bytes(1000)
    assert len(store.requests) == 2
    assert held(view) == 0


def test_a_cache_directory_opened_with_a_smaller_limit_is_reduced_to_it(tmp_path: Path) -> None:
    store = VersionedStore()
    for number in range(10):
        store.set(f"c/{number}", bytes(100))
    view = CachedStore(store, tmp_path, 10_000)
    for number in range(10):
        view.get(f"c/{number}")
    assert held(view) > 1000
    assert held(CachedStore(store, tmp_path, 500)) <= 500


@pytest.mark.parametrize("max_bytes", [0, -1, 1.5, True, None, "1"])
def test_invalid_sizes_are_refused(max_bytes: Any) -> None:
    with pytest.raises(ArgumentError, match="max_bytes must be a positive integer"):
        CachedStore(MemoryStore(), max_bytes=max_bytes)


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="store must be a Store, not dict"):
        CachedStore({})  # type: ignore[arg-type]
    CachedStore(LocalStore("/a"), tmp_path)
    with pytest.raises(ArgumentError, match=r"a directory for one store, .* contains values of LocalStore\('/a'\)"):
        CachedStore(LocalStore("/b"), tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot be used"):
        CachedStore(MemoryStore(), tmp_path / "file")


# Damage


def test_damaged_files_are_never_served(tmp_path: Path) -> None:
    store = VersionedStore()
    store.set("c/0", bytes(range(100)))
    store.set("c/1", bytes(range(100, 200)))
    view = CachedStore(store, tmp_path)
    generator = random.Random(1)
    for trial in range(100):
        for key in ("c/0", "c/1"):
            view.get(key)
            view.get(key, ByteRange(10, 20))
        first, second = generator.sample(sorted(files(tmp_path)), 2)
        content = bytearray(first.read_bytes())
        if trial % 4 == 0:
            del content[generator.randrange(len(content)) :]
        elif trial % 4 == 1:
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        elif trial % 4 == 2:
            content += bytes(5)
        else:
            content[:] = second.read_bytes()
        first.write_bytes(content)
        for key, value in (("c/0", bytes(range(100))), ("c/1", bytes(range(100, 200)))):
            assert view.get(key, ByteRange(10, 20)) == value[10:20]
            assert view.get(key) == value
            assert view.source(key).read_one(ByteRange(5, 30)) == value[5:30]


def test_a_damaged_state_is_repaired(tmp_path: Path) -> None:
    store = VersionedStore()
    store.set("c/0", bytes(100))
    for state in (b"", b"\xff" * 8, b"\x7f" * 8200, os.urandom(8200)):
        view = CachedStore(store, tmp_path, 1000)
        (tmp_path / "state").write_bytes(state)
        for number in range(20):
            store.set(f"d/{number}", bytes(100))
            assert view.get(f"d/{number}") == bytes(100)
        assert held(CachedStore(store, tmp_path, 1000)) <= 1000
    for name in ("state", "origin"):
        (tmp_path / name).unlink()
    assert view.get("c/0") == bytes(100)
    view.set("c/0", b"new")
    assert view.get("c/0") == b"new"


def test_values_can_be_read_after_the_cache_directory_is_deleted(tmp_path: Path) -> None:
    import shutil

    store = VersionedStore()
    store.set("c/0", b"value")
    view = CachedStore(store, tmp_path / "cache")
    view.get("c/0")
    shutil.rmtree(tmp_path / "cache")
    assert view.get("c/0") == b"value"
    with pytest.raises(StoreError, match="cannot be changed, and may be out of date"):
        view.set("c/0", b"new")


# Concurrency


def test_readers_never_cache_a_value_that_was_replaced_meanwhile(cached: Any) -> None:
    store = VersionedStore()
    store.set("c/0", b"old")
    view = cached(store)
    fetched, replaced = threading.Event(), threading.Event()
    fetch = store.fetch

    def slow(key: str, byte_range: ByteRange) -> Any:
        found = fetch(key, byte_range)
        if threading.current_thread() is reader:
            fetched.set()
            assert replaced.wait(60)
        return found

    store.fetch = slow  # type: ignore[method-assign]
    for read in (lambda: view.get("c/0"), lambda: view.get("c/0", ByteRange(1, 3))):
        fetched.clear(), replaced.clear()
        reader = threading.Thread(target=read)
        reader.start()
        assert fetched.wait(60)
        view.set("c/0", b"new")
        replaced.set()
        reader.join()
        assert view.get("c/0") == b"new"
        assert view.get("c/0", ByteRange(1, 3)) == b"ew"
        store.set("c/0", b"old")
        view.erase("c/1")
        view._cache.drop(["c/0"])


def test_threads_that_read_and_write_see_whole_versions_and_their_own_writes(cached: Any) -> None:
    store = VersionedStore()
    view = cached(store, 3000)
    keys = [f"c/{number}" for number in range(4)]
    for key in keys:
        view.set(key, bytes(200))
    errors: list[BaseException] = []

    def work(number: int) -> None:
        generator = random.Random(number)
        try:
            for step in range(150):
                key = keys[number]
                value = bytes([generator.randrange(256)]) * generator.choice([100, 200, 300])
                if step % 3 == 0:
                    view.set(key, value)  # no other thread writes this key
                    assert view.get(key) == value
                    assert view.get(key, ByteRange(10, 20)) == value[:10]
                source = view.source(generator.choice(keys))
                parts = read_current(
                    [source], lambda s=source: [s.read_one(ByteRange(5 * n, 5 * n + 4)) for n in range(3)]
                )
                assert len({bytes(part) for part in parts}) == 1, parts
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert held(view) <= 3000


def _share(root: str, cache: str, number: int, failures: Any) -> None:
    view = CachedStore(LocalStore(root), cache, 20_000)
    generator = random.Random(number)
    try:
        for step in range(120):
            value = bytes([generator.randrange(1, 256)]) * 1000
            if step % 4 == 0:
                view.set(f"c/{number}", value)  # no other process writes this key
                assert view.get(f"c/{number}") == value
            found = bytes(view.get(f"c/{generator.randrange(4)}") or b"")
            assert len(set(found)) <= 1
            assert len(found) in (0, 1000)
            assert sum(path.stat().st_size for path in files(Path(cache)) if path.exists()) <= 20_000
    except FileNotFoundError:
        pass  # a file was removed while its size was looked up
    except BaseException as error:
        failures.put(repr(error))
        raise


def test_processes_share_a_directory(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    failures = context.Queue()
    root, cache = str(tmp_path / "store"), str(tmp_path / "cache")
    children = [context.Process(target=_share, args=(root, cache, number, failures)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 3
    store = VersionedStore()
    view = CachedStore(LocalStore(root), cache)
    assert held(view) <= 20_000
    for number in range(3):
        assert view.get(f"c/{number}") == LocalStore(root).get(f"c/{number}")
    assert store.requests == []


def _kill_while_storing(cache: str, ready: Any) -> None:
    store = VersionedStore()
    view = CachedStore(store, cache, 50_000)
    ready.set()
    for number in range(10**9):
        store.set(f"c/{number % 100}", bytes([number % 256]) * 1000)
        view._cache.drop([f"c/{number % 100}"])
        view.get(f"c/{number % 100}")


def test_a_killed_process_leaves_a_directory_that_can_be_used(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for trial in range(5):
        ready = context.Event()
        child = context.Process(target=_kill_while_storing, args=(str(tmp_path), ready))
        child.start()
        assert ready.wait(60)
        child.join(0.02 * (trial + 1))
        child.kill()
        child.join()
        store = VersionedStore()
        view = CachedStore(store, tmp_path, 50_000)
        assert held(view) <= 50_000
        for number in range(100):
            found = bytes(view.get(f"c/{number}") or b"")
            assert len(found) in (0, 1000)
            assert len(set(found)) <= 1
        view.set("c/0", b"1")
        assert view.get("c/0") == b"1"


def test_a_pickle_has_the_same_arguments(tmp_path: Path) -> None:
    for cache in (None, tmp_path):
        view = CachedStore(LocalStore(tmp_path / "store"), cache, 1000)
        view.set("c/0", b"value")
        loaded = pickle.loads(pickle.dumps(view))
        assert loaded == view
        assert hash(loaded) == hash(view)
        assert loaded.get("c/0") == b"value"
        assert loaded.location() == view.store.location()
        assert loaded.limits == view.store.limits


def test_a_forked_child_starts_with_an_empty_cache_in_memory() -> None:
    store = VersionedStore()
    store.set("c/0", b"value")
    view = CachedStore(store)
    view.get("c/0")
    cache: Any = view._cache
    with cache._lock:  # simulates another thread that holds the lock
        pid = os.fork()
        if not pid:
            os._exit(0 if view.get("c/0") == b"value" and len(store.requests) == 2 else 1)
    assert os.waitpid(pid, 0)[1] == 0

"""On a server that misbehaves, every operation reads or writes the right data, or raises an error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from remote.bad_server import BadServer

import zarrlite
from zarrlite import StoreError, ZarrliteError
from zarrlite.buffers.source import ReplacedError
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd

TRIALS = 50
SHARDS = [ShardingIndexed((4, 8), [Bytes(), Zstd()])]
CHAINS: list[list[Any]] = [[Bytes()], [Bytes(), Zstd(), Crc32c()], SHARDS, [ShardingIndexed((4, 4), [Bytes()])]]


@pytest.fixture(scope="module")
def bad_server() -> Iterator[BadServer]:
    with BadServer() as server:
        yield server


def trials() -> Iterator[np.random.Generator]:
    for seed in range(TRIALS):
        yield np.random.default_rng(seed)


def selections(rng: np.random.Generator) -> list[Any]:
    """Return selections: the whole array, a box, a strided one and a single element."""
    (a, b), (c, d) = np.sort(rng.integers(0, 33, (2, 2)), axis=1)
    step = int(rng.integers(1, 9))
    return [..., (slice(a, b), slice(c, d)), (slice(a, None, step), slice(c, None, step)), (int(a % 32), int(c % 32))]


def check_reads(array: zarrlite.Array, data: Any, rng: np.random.Generator, may_fail: bool = False) -> int:
    """Check some reads, and return how many of them failed. Reads may fail only if `may_fail` is true."""
    failed = 0
    for selection in selections(rng):
        try:
            found = array[selection]
        except ZarrliteError:
            assert may_fail
            failed += 1
        else:
            assert np.array_equal(found, data[selection]), selection
    return failed


@pytest.mark.parametrize(
    "fault", ["", "range ignored", "cut", "unavailable", "slow", "weak ETag", "no ETag", "no ETag,no time"]
)
def test_reads_return_the_right_data_or_fail_if_the_server_misbehaves(bad_server: BadServer, fault: str) -> None:
    for number, rng in enumerate(trials()):
        data = rng.integers(0, 1000, (32, 32), "u2")
        bad_server.behave()
        store = bad_server.store(timeout=0.4 if fault == "slow" else 60)
        array = zarrlite.create_array(store, data=data, chunks=(16, 16), codecs=CHAINS[number % len(CHAINS)])
        bad_server.faults = {*filter(None, fault.split(","))}
        check_reads(array, data, rng)


@pytest.mark.parametrize("tags", ["", "weak ETag", "no ETag", "no ETag,no time"])
def test_a_value_that_is_replaced_between_two_ranges_is_read_from_one_version(bad_server: BadServer, tags: str) -> None:
    """The versions differ in size, because a weak ETag and a time in seconds cannot distinguish equal sizes."""
    for number, rng in enumerate(trials()):
        chain = CHAINS[2 + number % 2]
        bad_server.behave()
        versions = [rng.integers(1, 1000, (32, 32), "u2") for _ in range(2)]
        versions[1][:8] = 0  # inner chunks of zeros are not stored, so this shard is smaller
        stored: list[dict[str, bytes]] = []
        for version in versions:
            array = zarrlite.create_array(
                bad_server.store(), data=version, chunks=(32, 32), codecs=chain, overwrite=True
            )
            stored.append({key: value for key, (value, *_) in bad_server.values.items()})

        def replace(key: str, value: bytes, stored: Any = stored) -> bytes:
            return stored[1][key] if value == stored[0][key] and key.startswith("c/") else stored[0][key]  # type: ignore[no-any-return]

        bad_server.replace = replace
        bad_server.faults = {"replaced", *filter(None, tags.split(","))}
        for selection in (*selections(rng), (slice(None, None, 5), 3)):
            with contextlib.suppress(ReplacedError, StoreError):
                found = array[selection]
                assert any(np.array_equal(found, version[selection]) for version in versions), selection


@pytest.mark.parametrize("fault", ["cut", "unavailable", "lost", "slow"])
def test_updates_are_applied_once_even_if_answers_are_lost(bad_server: BadServer, fault: str) -> None:
    for number, rng in enumerate(trials()):
        data = rng.integers(1, 1000, (32, 32), "u2")
        bad_server.behave()
        store = bad_server.store(timeout=0.4 if fault == "slow" else 60)
        array = zarrlite.create_array(store, data=data, chunks=(16, 16), codecs=CHAINS[number % len(CHAINS)])
        bad_server.faults = {fault}
        for _ in range(4):
            row, column = (int(i) for i in rng.integers(0, 32, 2))
            array[row, column:] = data[row, column:] = int(rng.integers(1, 1000))
        for _ in range(4):  # the sum shows whether any increment is made twice
            store.update("count", lambda old: b"%d" % (int(bytes(old or b"0")) + 1))
        assert store.set("new", b"1", new=True)
        assert not store.set("new", b"2", new=True)
        bad_server.faults = set()
        assert np.array_equal(array[...], data)
        assert store.get("count") == b"4"


def test_updates_are_made_once_although_they_arrive_late() -> None:
    """The server makes an update only when the store sends it again. The store then finds that it has been made."""
    with BadServer() as server:
        store = server.store()
        store.set("count", b"0")
        store.update("count", lambda old: b"1")  # the store finds out that the server honours conditional requests
        server.faults = {"late"}
        for _ in range(3):
            store.update("count", lambda old: b"%d" % (int(bytes(old or b"")) + 1))
        assert store.get("count") == b"4"
        assert store.set("new", b"1", new=True)
        server.faults = set()
        assert not store.set("new", b"2", new=True)
        assert store.get("new") == b"1"


@pytest.mark.parametrize("fault", ["If-Match ignored", "If-None-Match ignored"])
def test_updates_are_refused_if_one_of_the_conditions_is_ignored(fault: str) -> None:
    with BadServer() as server:
        server.faults = {fault}
        store = server.store()
        with pytest.raises(StoreError, match=r"must not be updated: the server ignores conditional.*single_writer"):
            store.update("a", lambda old: b"1")
        assert not server.values


def test_updates_are_refused_if_conditions_are_ignored() -> None:
    with BadServer() as server:
        server.faults = {"condition ignored"}
        for rng in trials():
            store = server.store()
            for change in (
                lambda store=store: store.update("a", lambda old: b"1"),
                lambda store=store: store.set("a", b"1", new=True),
                lambda store=store: zarrlite.create_array(store, data=rng.random(4)),
            ):
                with pytest.raises(
                    StoreError, match=r"must not be updated: the server ignores conditional.*single_writer"
                ):
                    change()
            assert not server.values  # the store has also erased the key with which it tested the server
        data = np.arange(64)
        for _ in trials():
            store = server.store(single_writer=True)
            array = zarrlite.create_array(store, data=data, chunks=(32,), codecs=CHAINS[0], overwrite=True)
            array[5:9] = 7
            assert np.array_equal(array[...], np.where((data >= 5) & (data < 9), 7, data))


@pytest.mark.parametrize("fault", ["weak ETag", "no ETag"])
def test_updates_are_refused_without_a_strong_etag(fault: str) -> None:
    with BadServer() as server:
        server.faults = {fault}
        store = server.store()
        store.set("a", b"1")
        with pytest.raises(StoreError, match=r"only a strong ETag can reveal other writers.*single_writer"):
            store.update("a", lambda old: b"2")
        assert bytes(store.get("a") or b"") == b"1"


def test_a_server_that_is_down_is_an_error() -> None:
    with BadServer() as server:
        store = server.store(retries=2)
    attempts: list[Callable[[], Any]] = [
        lambda: store.get("a"),
        lambda: store.size("a"),
        lambda: list(store.list()),
        lambda: store.set("a", b"2"),
        lambda: store.erase("a"),
        lambda: zarrlite.open(store, mode="r"),
    ]
    for attempt in attempts:
        with pytest.raises(StoreError):
            attempt()

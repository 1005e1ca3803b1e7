"""Writers that create, change and resize the same nodes at the same time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import MemoryStore, NodeExistsError
from zarrlite.stores import MappingStore

TIMEOUT = 60  # seconds; the processes need less than one
PROCESSES = 4
ROUNDS = 12


def race(work: Callable[[int, int], Any], rounds: int = ROUNDS, processes: int = PROCESSES) -> list[list[Any]]:
    """Run `work(round, worker)` in several processes that start each round together. Returns the results by round."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this platform has no fork")
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(processes), context.SimpleQueue()

    def run(worker: int) -> None:
        try:
            for n in range(rounds):
                barrier.wait(TIMEOUT)
                results.put((n, worker, work(n, worker)))
        except BaseException:
            barrier.abort()  # so that the other processes do not wait any longer
            raise

    workers = [context.Process(target=run, args=(i,)) for i in range(processes)]
    for process in workers:
        process.start()
    try:
        found: list[list[Any]] = [[None] * processes for _ in range(rounds)]
        for process in workers:
            process.join(TIMEOUT)
        assert [process.exitcode for process in workers] == [0] * processes
        while not results.empty():
            n, worker, result = results.get()
            found[n][worker] = result
        return found
    finally:
        for process in workers:
            process.kill()
            process.join()


def attempt(create: Callable[[], Any]) -> bool:
    """Whether a node is created. Returns False if it already exists."""
    try:
        create()
    except NodeExistsError:
        return False
    return True


CREATE: dict[str, Callable[[Path, str, int], Any]] = {
    "create_array": lambda root, name, i: zarrlite.create_array(root, name=name, data=[i + 1] * 8, chunks=3),
    "create_array, other chunks": lambda root, name, i: zarrlite.create_array(
        root, name=name, data=[i + 1] * 8, chunks=i + 1, attributes={"by": i}
    ),
    "open_array": lambda root, name, i: zarrlite.open_array(root, path=name, mode="w-", data=[i + 1] * 8, chunks=3),
}


@pytest.mark.parametrize("create", CREATE.values(), ids=CREATE)
def test_only_one_of_several_processes_creates_an_array(
    create: Callable[[Path, str, int], Any], tmp_path: Path
) -> None:
    zarrlite.create_group(tmp_path)
    created = race(lambda n, i: attempt(lambda: create(tmp_path, f"g{n}/a", i)))
    for n, results in enumerate(created):
        assert results.count(True) == 1
        # the values are those of the process that succeeded: the others removed and stored nothing
        assert zarrlite.open_array(tmp_path, path=f"g{n}/a", mode="r")[...].tolist() == [results.index(True) + 1] * 8


def test_only_one_of_several_processes_creates_a_group(tmp_path: Path) -> None:
    def create(n: int, i: int) -> bool:
        return attempt(lambda: zarrlite.create_group(tmp_path / f"{n}", attributes={"by": i}))

    for n, results in enumerate(race(create)):
        assert results.count(True) == 1
        assert zarrlite.open_group(tmp_path / f"{n}", mode="r").attrs["by"] == results.index(True)


TOLERANT: dict[str, Callable[[Path], Any]] = {
    "open_group": lambda path: zarrlite.open_group(path, mode="a"),
    "open_array": lambda path: zarrlite.open_array(path, mode="a", shape=4, dtype="u1"),
    "open": lambda path: zarrlite.open(path, path="deep/down", mode="a"),
    "require_group": lambda path: zarrlite.open_group(path, mode="a").require_group("a/b"),
    "require_array": lambda path: zarrlite.open_group(path, mode="a").require_array("a", shape=4, dtype="u1"),
}


@pytest.mark.parametrize("function", TOLERANT.values(), ids=TOLERANT)
def test_every_process_opens_the_node_that_one_of_them_creates(function: Callable[[Path], Any], tmp_path: Path) -> None:
    race(lambda n, i: function(tmp_path / f"{n}") and None)


def test_a_resize_loses_no_appended_data(tmp_path: Path) -> None:
    for n in range(ROUNDS):
        zarrlite.create_array(tmp_path, name=f"{n}", data=np.arange(1, 21, dtype="u1"), chunks=3)

    def work(n: int, i: int) -> None:
        array = zarrlite.open_array(tmp_path, path=f"{n}", mode="r+")
        if i:
            array.append(np.full(6, 100 + i))
        else:
            array.resize(19)

    race(work, processes=3)
    for n in range(ROUNDS):
        found = zarrlite.open_array(tmp_path, path=f"{n}", mode="r")[...].tolist()
        assert found[:19] == list(range(1, 20))
        rest = found[19:]  # appended after the resize, which removes the values of earlier appends
        whole = [rest[k : k + 6] for k in range(0, len(rest), 6)]
        assert all(values in ([101] * 6, [102] * 6) for values in whole), found


def test_consolidated_metadata_is_correct_after_any_race(tmp_path: Path) -> None:
    for n in range(ROUNDS):
        zarrlite.create_group(tmp_path / f"{n}").create_array("a", shape=4, dtype="u1")

    def work(n: int, i: int) -> None:
        root = zarrlite.open_group(tmp_path / f"{n}", mode="r+")
        for k in range(4):
            if i == 0:
                root.consolidate_metadata()
            elif i == 1:
                root["a"].attrs[f"{k}"] = n
            elif i == 2:
                root.create_group(f"g{k}/h")
            else:
                root.create_group(f"x{k}")
                del root[f"x{k}"]

    race(work)
    for n in range(ROUNDS):
        found = [
            {path: dict(node.attrs) for path, node in reader.members(None)}
            for reader in (
                zarrlite.open_group(tmp_path / f"{n}", mode="r", use_consolidated=use) for use in (True, False)
            )
        ]
        assert found[0] == found[1]
        assert found[0]["a"] == {f"{k}": n for k in range(4)}
        assert len(found[0]) == 1 + 4 * 2


# Another writer, the rival, acts once, at the worst moment: when a key is locked or stored.


class Contested(MemoryStore):
    """A store in which another writer acts once, before a key is locked or after it is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.rivals: dict[tuple[str, str], Callable[[Any], object]] = {}

    def _let_rival_act(self, *moment: str) -> None:
        rival = self.rivals.pop(moment, None)  # type: ignore[call-overload]
        if rival is not None:
            rival(MappingStore(self._mapping))

    def lock(self, key: str) -> Any:
        self._let_rival_act("lock", key)
        return super().lock(key)

    def set(self, key: str, value: Any, new: bool = False) -> bool:
        stored = super().set(key, value, new)
        self._let_rival_act("set", key)
        return stored


def test_an_array_created_at_the_last_moment_is_kept() -> None:
    store = Contested()
    store.rivals["lock", "a/zarr.json"] = lambda place: zarrlite.create_array(place, name="a", data=[1, 2, 3])
    with pytest.raises(NodeExistsError):
        zarrlite.create_array(store, name="a", data=[4, 5, 6])
    assert zarrlite.open_array(store, path="a", mode="r")[...].tolist() == [1, 2, 3]


def test_an_array_created_at_the_last_moment_can_be_overwritten() -> None:
    store = Contested()
    store.rivals["lock", "a/zarr.json"] = lambda place: zarrlite.create_array(place, name="a", data=[1, 2, 3], chunks=1)
    zarrlite.create_array(store, name="a", shape=3, dtype="int64", chunks=1, overwrite=True)
    assert zarrlite.open_array(store, path="a", mode="r")[...].tolist() == [0, 0, 0]


def test_mode_a_opens_a_node_created_at_the_last_moment() -> None:
    store = Contested()
    store.rivals["lock", "g/zarr.json"] = lambda place: zarrlite.create_group(
        place, path="g", attributes={"by": "rival"}
    )
    assert zarrlite.open_group(store, path="g", mode="a").attrs["by"] == "rival"


def test_a_node_is_not_created_below_an_array_that_appears_at_the_last_moment() -> None:
    store = Contested()
    zarrlite.create_group(store)
    store.rivals["lock", "zarr.json"] = lambda place: zarrlite.create_array(place, name="a", data=[1])
    with pytest.raises(NodeExistsError, match="'a' is an array"):
        zarrlite.create_group(store, path="a/below")
    assert sorted(store.list()) == ["a/c/0", "a/zarr.json", "zarr.json"]


def test_data_appended_while_chunks_are_removed_is_kept() -> None:
    store = Contested()
    array = zarrlite.create_array(store, data=list(range(1, 21)), chunks=3)
    store.rivals["set", "zarr.json"] = lambda place: zarrlite.open_array(place, mode="r+").append([100] * 6)
    array.resize(19)
    assert zarrlite.open_array(store, mode="r")[...].tolist() == [*range(1, 20), *[100] * 6]


def test_documents_that_change_during_consolidation_are_not_missed() -> None:
    store = Contested()
    root = zarrlite.create_group(store)
    root.create_group("a")
    store.rivals["lock", "zarr.json"] = lambda place: zarrlite.open_group(place, path="a").attrs.update(n=1)
    root.consolidate_metadata()
    assert zarrlite.open_group(store, mode="r", use_consolidated=True)["a"].attrs["n"] == 1

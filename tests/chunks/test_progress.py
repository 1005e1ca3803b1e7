"""Progress reports of reads, writes and copies."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import MemoryStore
from zarrlite.stores import Limits


class Reports(list[tuple[int, int]]):
    """A callback that records its calls, and checks that the numbers increase."""

    def __call__(self, done: int, total: int) -> None:
        if self and self[-1] != (self[-1][1], self[-1][1]):
            assert done > self[-1][0]
            assert total == self[-1][1]
        self.append((done, total))

    def take(self) -> tuple[int, int]:
        """Return the number of reports and the total, and forget the reports. The last report must be complete."""
        last, count = self[-1], len(self)
        assert last[0] == last[1]
        self.clear()
        return count, last[1]


class FarStore(MemoryStore):
    limits = Limits(concurrency=8)


@pytest.mark.parametrize("store", [MemoryStore, FarStore])
@pytest.mark.parametrize(
    "keywords", [{"chunks": (4, 5)}, {"chunks": (2, 5), "shards": (4, 5)}, {"chunks": (4, 5), "compressors": None}]
)
def test_reads_and_writes_report_their_chunks(store: Any, keywords: Any) -> None:
    reports = Reports()
    data = np.arange(600).reshape(20, 30)
    array = zarrlite.create_array(store(), data=data, progress=reports, **keywords)
    assert reports.take()[1] == 30
    for read, total in (
        (lambda a: a[...], 30),
        (lambda a: a[3:5, 2:11], 2 * 3),
        (lambda a: a[0:4, 0:5], 1),
        (lambda a: a.oindex[[0, 19], [0, 1, 29]], 2 * 2),
        (lambda a: a.vindex[[0, 1, 19], [0, 1, 29]], 2),
    ):
        read(array)
        assert reports.take()[1] == total
    array[3:5, 2:11] = 1
    assert reports.take()[1] == 6
    array[0, 0] = 1
    assert reports.take() == (1, 1)
    array.append(data[:4])
    assert reports.take()[1] == 6
    assert array[5, 5] == data[5, 5]
    array[0:0]
    assert reports == []


def test_long_reads_from_a_remote_store_report_each_chunk() -> None:
    reports = Reports()
    array = zarrlite.open_array(FarStore(), mode="w", data=np.zeros((20, 30)), chunks=(4, 5), progress=reports)
    assert reports.take() == (30, 30)
    array[...]
    assert reports.take() == (30, 30)


def test_groups_pass_the_progress_callback_to_members_and_pickles_drop_it() -> None:
    reports = Reports()
    group = zarrlite.open_group(MemoryStore(), progress=reports, chunk_cache=2**20)
    group.create_array("a", data=np.arange(10), chunks=2)
    assert reports.take()[1] == 5
    group["a"][...]  # type: ignore[index]
    assert reports.take()[1] == 5
    for node in (group, group["a"]):
        assert pickle.loads(pickle.dumps(node)).options.progress is None


def test_a_copy_reports_its_values() -> None:
    reports = Reports()
    source = zarrlite.create_array(MemoryStore(), data=np.arange(10), chunks=2)
    target = zarrlite.copy(source, MemoryStore(), progress=reports)
    assert reports.take() == (6, 6)
    target[...]
    assert reports == []


def test_an_exception_of_the_callback_ends_the_operation() -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Enough

    store = MemoryStore()
    with pytest.raises(Enough):
        zarrlite.create_array(store, data=np.arange(10), chunks=2, progress=stop)
    assert list(store.list()) == []
    source = zarrlite.create_array(store, data=np.arange(10), chunks=2)
    with pytest.raises(Enough):
        zarrlite.open_array(store, progress=stop)[...]
    target = MemoryStore()
    with pytest.raises(Enough):
        zarrlite.copy(source, target, progress=stop)
    with pytest.raises(zarrlite.NodeNotFoundError):
        zarrlite.open(target, mode="r")

"""Scratch memory: buffers that a thread reuses."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from zarrlite.buffers import scratch
from zarrlite.tuning import MAX_SCRATCH_BYTES, SCRATCH_ALIGNMENT, SCRATCH_BUFFERS


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "kept", threading.local())


def test_a_released_buffer_is_reused() -> None:
    memory = scratch.acquire(100)
    assert len(memory) == 100
    scratch.release(memory)
    assert scratch.acquire(50) is memory


def test_an_acquired_buffer_is_not_handed_out_again_before_its_release() -> None:
    first = scratch.acquire(100)
    scratch.release(first)
    assert scratch.acquire(100) is first
    assert scratch.acquire(100) is not first


def test_the_smallest_buffer_that_is_large_enough_is_acquired() -> None:
    small, large = scratch.acquire(10), scratch.acquire(100)
    scratch.release(large)
    scratch.release(small)
    assert scratch.acquire(10) is small
    assert scratch.acquire(10) is large


def test_a_buffer_that_is_too_small_is_kept_for_later() -> None:
    small = scratch.acquire(10)
    scratch.release(small)
    assert len(scratch.acquire(100)) == 100
    assert scratch.acquire(10) is small


def test_the_largest_buffers_are_kept() -> None:
    pieces = [scratch.acquire(size) for size in (30, 10, 20)]
    for piece in pieces:
        scratch.release(piece)
    assert SCRATCH_BUFFERS == 2
    assert [len(scratch.acquire(1)) for _ in range(3)] == [20, 30, 1]


def test_a_huge_buffer_is_not_kept() -> None:
    memory = scratch.acquire(MAX_SCRATCH_BYTES + 1)
    scratch.release(memory)
    assert scratch.acquire(1) is not memory


def test_each_thread_has_its_own_buffers() -> None:
    memory = scratch.acquire(100)
    scratch.release(memory)
    found: list[memoryview] = []
    thread = threading.Thread(target=lambda: found.append(scratch.acquire(100)))
    thread.start()
    thread.join()
    assert found[0] is not memory


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1000])
def test_buffers_are_aligned_and_writable(size: int) -> None:
    memory = scratch.acquire(size)
    assert (len(memory), memory.readonly, memory.format) == (size, False, "B")
    if size:
        assert np.frombuffer(memory, "u1").ctypes.data % SCRATCH_ALIGNMENT == 0

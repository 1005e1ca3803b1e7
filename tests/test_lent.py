"""Memory that a thread uses again and again."""

from __future__ import annotations

import threading

import pytest

from zarrlite.buffers import scratch


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_local", threading.local())


def test_what_is_given_back_is_taken_again() -> None:
    memory = scratch.acquire(100)
    assert len(memory) == 100
    scratch.release(memory)
    assert scratch.acquire(50) is memory


def test_what_is_taken_is_nobody_elses() -> None:
    first = scratch.acquire(100)
    scratch.release(first)
    assert scratch.acquire(100) is first
    assert scratch.acquire(100) is not first


def test_the_smallest_that_is_large_enough_is_taken() -> None:
    small, large = scratch.acquire(10), scratch.acquire(100)
    scratch.release(large)
    scratch.release(small)
    assert scratch.acquire(10) is small
    assert scratch.acquire(10) is large


def test_the_largest_are_kept() -> None:
    pieces = [scratch.acquire(size) for size in (30, 10, 20)]
    for piece in pieces:
        scratch.release(piece)
    assert [len(scratch.acquire(1)) for _ in range(3)] == [20, 30, 1]


def test_huge_memory_is_not_kept() -> None:
    memory = scratch.acquire(scratch.MOST + 1)
    scratch.release(memory)
    assert scratch.acquire(1) is not memory


def test_a_thread_has_memory_of_its_own() -> None:
    memory = scratch.acquire(100)
    scratch.release(memory)
    found: list[memoryview] = []
    thread = threading.Thread(target=lambda: found.append(scratch.acquire(100)))
    thread.start()
    thread.join()
    assert found[0] is not memory

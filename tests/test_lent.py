"""Memory that a thread uses again and again."""

from __future__ import annotations

import threading

import pytest

from zarrlite.buffers import scratch


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_local", threading.local())


def test_what_is_given_back_is_taken_again() -> None:
    memory = scratch.take(100)
    assert len(memory) == 100
    scratch.give(memory)
    assert scratch.take(50) is memory


def test_what_is_taken_is_nobody_elses() -> None:
    first = scratch.take(100)
    scratch.give(first)
    assert scratch.take(100) is first
    assert scratch.take(100) is not first


def test_the_smallest_that_is_large_enough_is_taken() -> None:
    small, large = scratch.take(10), scratch.take(100)
    scratch.give(large)
    scratch.give(small)
    assert scratch.take(10) is small
    assert scratch.take(10) is large


def test_the_largest_are_kept() -> None:
    pieces = [scratch.take(size) for size in (30, 10, 20)]
    for piece in pieces:
        scratch.give(piece)
    assert [len(scratch.take(1)) for _ in range(3)] == [20, 30, 1]


def test_huge_memory_is_not_kept() -> None:
    memory = scratch.take(scratch.MOST + 1)
    scratch.give(memory)
    assert scratch.take(1) is not memory


def test_a_thread_has_memory_of_its_own() -> None:
    memory = scratch.take(100)
    scratch.give(memory)
    found: list[memoryview] = []
    thread = threading.Thread(target=lambda: found.append(scratch.take(100)))
    thread.start()
    thread.join()
    assert found[0] is not memory

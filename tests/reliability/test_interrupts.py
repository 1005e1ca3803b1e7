"""Ctrl-C leaves no lock, descriptor or temporary file, and the process can continue."""

from __future__ import annotations

import gc
import signal
import sys
import weakref
from collections.abc import Iterator

import pytest

from tests.reliability import interrupts
from tests.reliability.scenes import SCENES


@pytest.mark.parametrize("name", SCENES)
def test_interrupted_operation_leaves_nothing_behind_and_works_again(name: str) -> None:
    interrupts.run_scene(SCENES[name], interrupts.SAMPLE // len(SCENES), seed=0).check()


class _Resource:
    """An object that can be referenced weakly."""


def _numbers() -> Iterator[int]:
    yield 1
    yield 2


def _operation(alive: list[weakref.ref[_Resource]]) -> None:
    resource = _Resource()
    alive.append(weakref.ref(resource))
    numbers = _numbers()
    for _ in numbers:
        abs(-1)


def test_tracer_keeps_nothing_of_the_interrupted_operation_alive() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alive: list[weakref.ref[_Resource]] = []
    survey = interrupts.Tracer()
    sys.settrace(survey)
    _operation(alive)
    sys.settrace(None)
    for moment in range(len(survey.places)):
        sys.settrace(interrupts.Tracer(moment))
        try:
            _operation(alive)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
    signal.signal(signal.SIGINT, before)
    gc.collect()
    assert len(alive) > 5
    assert [reference() for reference in alive] == [None] * len(alive)

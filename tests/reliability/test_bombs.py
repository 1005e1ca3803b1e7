"""Small documents and chunks that expand to huge sizes cost no more memory and work than their size justifies."""

from __future__ import annotations

import importlib.util

import pytest
from required import lacking

from tests.reliability import bombs


@pytest.mark.parametrize("name", bombs.BOMBS)
def test_bomb_is_refused_or_harmless(name: str) -> None:
    if name.startswith("xarray") and importlib.util.find_spec("xarray") is None:
        lacking("xarray is not installed")
    bombs.run_bomb(name, bombs.SAMPLE // len(bombs.BOMBS), seed=0).check()


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (lambda: bytearray(2**40), "out of memory"),
        (lambda: sum(1 for _ in range(10**6)), "work"),
        (lambda: [][0], "foreign IndexError"),
        (lambda: None, "done"),
    ],
    ids=["memory", "work", "foreign", "done"],
)
def test_exceeded_limits_are_detected(action: object, outcome: str) -> None:
    assert bombs.in_child(action, 10_000)[0] == outcome  # type: ignore[arg-type]


def test_growth_of_memory_is_measured() -> None:
    def fill() -> None:
        assert len(bytes(1) * (200 * bombs.MIB)) == 200 * bombs.MIB

    assert 190 * bombs.MIB < bombs.in_child(fill, None)[1] < 300 * bombs.MIB

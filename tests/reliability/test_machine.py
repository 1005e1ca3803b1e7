"""Arrays with random stacks of extensions behave like numpy arrays."""

from __future__ import annotations

from tests.reliability import machine


def test_random_operations_on_random_stacks_agree_with_numpy() -> None:
    figures = machine.run(machine.SAMPLE, seed=0)
    assert not figures.failures, figures.failures[0].description

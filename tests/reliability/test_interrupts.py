"""Ctrl-C leaves no lock, descriptor or temporary file, and the process can continue."""

from __future__ import annotations

import pytest

from tests.reliability import interrupts
from tests.reliability.scenes import SCENES


@pytest.mark.parametrize("name", SCENES)
def test_interrupted_operation_leaves_nothing_behind_and_works_again(name: str) -> None:
    interrupts.run_scene(SCENES[name], interrupts.SAMPLE // len(SCENES), seed=0).check()

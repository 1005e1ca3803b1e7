"""A process killed at any file-system call leaves the old state, the new one, or an acceptable one in between."""

from __future__ import annotations

import pytest

from tests.reliability import crash
from tests.reliability.scenes import SCENES


@pytest.mark.parametrize("name", SCENES)
def test_killed_writer_leaves_an_acceptable_state_and_the_operation_works_again(name: str) -> None:
    crash.run_scene(SCENES[name], crash.SAMPLE // len(SCENES), seed=0).check()

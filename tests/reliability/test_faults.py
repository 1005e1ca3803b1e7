"""A request to a user's store that fails, once or permanently, leaves old or new data, and no lock."""

from __future__ import annotations

import pytest

from tests.reliability import faults
from tests.reliability.scenes import SCENES

ANYWHERE = [name for name, scene in SCENES.items() if not scene.local]


@pytest.mark.parametrize("name", ANYWHERE)
def test_failing_request_leaves_an_acceptable_state_and_the_operation_works_again(name: str) -> None:
    faults.run_scene(SCENES[name], faults.SAMPLE // len(ANYWHERE), seed=0).check()

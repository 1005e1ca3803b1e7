"""With `fsync=True`, a power cut leaves an acceptable state or, once the operation has returned, the new state."""

from __future__ import annotations

import pytest

from tests.reliability import power
from tests.reliability.scenes import SCENES

DURABLE = [name for name, scene in SCENES.items() if power.is_durable(scene)]


@pytest.mark.parametrize("name", DURABLE)
def test_power_cut_leaves_an_acceptable_state_and_loses_nothing_acknowledged(name: str) -> None:
    power.run_scene(SCENES[name], power.SAMPLE // len(DURABLE), seed=0).check()

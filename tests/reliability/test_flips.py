"""Damage to a stored object leads to an error or is harmless, never to wrong data under a checksum; fsck finds it."""

from __future__ import annotations

import pytest

from tests.layout.arrays import ARRAYS
from tests.reliability import flips


@pytest.mark.parametrize("kind", ARRAYS)
def test_damage_is_detected_and_found_by_fsck(kind: str) -> None:
    flips.run_kind(kind, flips.SAMPLE // len(ARRAYS), seed=0).check()

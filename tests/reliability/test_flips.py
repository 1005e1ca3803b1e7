"""Damage to a stored object is harmless or is found by readers and fsck; with checksums, no wrong data is returned."""

from __future__ import annotations

import pytest

from tests.layout.arrays import ARRAYS
from tests.reliability import flips


@pytest.mark.parametrize("kind", ARRAYS)
def test_damage_is_detected_and_found_by_fsck(kind: str) -> None:
    flips.run_kind(kind, flips.SAMPLE // len(ARRAYS), seed=0).check()

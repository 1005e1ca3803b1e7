"""Full disks, few descriptors, file size limits, read-only and vanished directories do not harm stored data."""

from __future__ import annotations

import pytest
from required import lacking

from tests.reliability import conditions


@pytest.mark.parametrize("condition", conditions.AMOUNTS)
def test_operation_fails_cleanly_and_works_again(condition: str) -> None:
    reason = conditions.why_not(condition)
    if reason:
        lacking(reason)
    conditions.run_condition(condition, conditions.SAMPLE // len(conditions.AMOUNTS), seed=0).check()

"""Readers never see a mixture of two writes, or an error, while another process writes."""

from __future__ import annotations

import pytest

from tests.reliability import races


@pytest.mark.parametrize("kind", races.RACING)
def test_readers_see_one_write_while_another_process_writes(kind: str) -> None:
    races.run_kind(kind, races.SAMPLE // len(races.RACING), seed=0).check()


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([10, 11, 12, 13], True),
        ([0, 0, 0, 0], True),
        ([-5, 11, 12, -5], True),
        ([-5, 0, 0, -5], True),
        ([10, 11, 12, 23], False),
        ([10, 11, 22, 23], False),
        ([-5, 11, 12, 13], False),
        ([-5, 11, 12, -6], False),
        ([0, 11, 12, 13], False),
        ([10, 0, 0, 13], False),
    ],
    ids=str,
)
def test_values_of_two_writes_are_recognized(values: list[int], verdict: bool) -> None:
    assert races.is_of_one_write(values) is verdict

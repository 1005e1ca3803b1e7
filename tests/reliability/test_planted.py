"""The list of planted faults: each can be planted, and each kind of trial has one that it must catch."""

from __future__ import annotations

import pytest

from tests.mutations.run import ROOT
from tests.reliability.__main__ import KINDS
from tests.reliability.bombs import BOMBS
from tests.reliability.planted import PLANTED, Planted
from tests.reliability.scenes import SCENES


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: f"{fault.file}: {fault.old.strip().splitlines()[0]}")
def test_fault_can_be_planted_and_names_trials_that_exist(fault: Planted) -> None:
    assert (ROOT / "zarrlite" / fault.file).read_text("utf-8").count(fault.old) == 1
    assert fault.trial in KINDS
    assert any(fault.only in name for name in (*SCENES, *BOMBS))


def test_every_kind_of_trial_has_a_planted_fault() -> None:
    assert sorted({fault.trial for fault in PLANTED}) == sorted(KINDS)

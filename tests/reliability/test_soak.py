"""Two processes that work on the same arrays for long lose nothing, and neither grows."""

from __future__ import annotations

from tests.reliability import soak


def test_two_processes_agree_with_their_models_and_do_not_grow() -> None:
    soak.run(soak.SAMPLE, seed=0).check()

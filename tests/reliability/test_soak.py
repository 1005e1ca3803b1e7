"""Two processes that work on the same arrays for a long time lose no data, and their memory does not grow."""

from __future__ import annotations

from tests.reliability import soak


def test_two_processes_agree_with_their_models_and_do_not_grow() -> None:
    soak.run(soak.SAMPLE, seed=0).check()

"""The scenes themselves: without a failure, readers see the old state, then the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.scenes import SCENES, equal, judge, reference
from zarrlite import LocalStore, MemoryStore


@pytest.mark.parametrize("name", SCENES)
def test_states_without_a_failure_are_accepted_as_old_and_new(name: str, tmp_path: Path) -> None:
    scene = SCENES[name]
    folders = iter(range(9))
    old, new = reference(scene, lambda: LocalStore(tmp_path / str(next(folders))))
    assert judge(scene, old, new, new).outcome == "new"
    assert judge(scene, old, new, old).outcome == ("new" if equal(old, new) else "old")
    if not scene.local:
        in_memory = reference(scene, MemoryStore)
        assert equal(in_memory[0], old)
        assert equal(in_memory[1], new)

"""If the operation of a `Scene` does not fail, readers see the old state before it and the new state after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.scenes import SCENES, equal, judge, reference
from zarrlite import LocalStore, MemoryStore, threads


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


@pytest.mark.parametrize(
    "name", [name for name in SCENES if name.startswith("several threads: ") and "erase" not in name]
)
def test_several_threads_write(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "workers", lambda: 2)
    store = LocalStore(tmp_path)
    SCENES[name].prepare(store)
    monkeypatch.setattr(threads, "_pool", None)
    SCENES[name].operate(store)
    assert threads._pool is not None
    threads._pool.shutdown()

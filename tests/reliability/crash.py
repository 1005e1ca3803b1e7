"""Crashes: an operation is killed at one of its file-system calls, and a new store examines the result.

Rules
- A forked child performs the operation and exits, without any cleanup, before or after a call that changes the file
  system, or halfway through a write. When the child ends, its locks and descriptors are released.
- The state must be acceptable (`scenes.judge`), and the operation must work when it is run again. Afterwards no lock
  file is left, and no mark of an unfinished resize or removal. The journal of an erased chunk may remain until that
  chunk is written again; it has no effect.
- If an operation writes into a stored object, an incomplete write may damage the chunk being written, as documented.
- Every operation is tried with directory listings sorted by name and in reverse, because file systems list names in
  any order, and files are erased in the order in which they are listed.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.reliability import shim
from tests.reliability.children import KILLED, Stage, run_child, staged
from tests.reliability.report import Figures
from tests.reliability.scenes import SCENES, Scene, Verdict, equal, judge
from zarrlite import LocalStore

SAMPLE = 600  # trials
MARK = re.compile(r"__zarrlite\.(resize|removal|lock)")  # lock files, and marks of unfinished operations


class Point(NamedTuple):
    """A point at which an operation is killed."""

    when: str
    call: int  # counted from 0
    backwards: bool  # whether the entries of directories are listed in reverse alphabetical order

    def __str__(self) -> str:
        return f"{self.when}:{self.call}:{'backwards' if self.backwards else 'forwards'}"


def run(trials: int | None, seed: int) -> Figures:
    """Kill the operations of all `SCENES`, at all points or at a sample of them."""
    figures = Figures("crash", seed)
    for scene in SCENES.values():
        run_scene(scene, None if trials is None else max(1, trials // len(SCENES)), seed, figures)
    return figures


def run_scene(scene: Scene, trials: int | None, seed: int, figures: Figures | None = None) -> Figures:
    """Kill the operation of one `Scene`."""
    figures = figures or Figures("crash", seed)
    with staged(scene) as stage:
        points = [point for backwards in (False, True) for point in _points(stage, backwards)]
        if trials is not None:
            points = random.Random(f"{seed} {scene.name}").sample(points, min(trials, len(points)))
        for point in points:
            _try(stage, point, figures)
    return figures


def replay(spec: str) -> Figures:
    """Kill an operation at one point."""
    name, when, call, order = spec.rsplit(":", 3)
    figures = Figures("crash", 0)
    with staged(SCENES[name]) as stage:
        _try(stage, Point(when, int(call), order == "backwards"), figures)
    return figures


def _points(stage: Stage, backwards: bool) -> Iterator[Point]:
    """Run the operation once, and list its points."""
    sizes: list[int] = []

    def count(call: shim.Call) -> Any:
        sizes.append(len(call.data))
        return call.make()

    def work() -> bytes:
        shim.install(count, backwards=backwards)
        stage.scene.operate(LocalStore(path))
        return json.dumps(sizes).encode()

    with stage.copy() as path:
        code, output = run_child(work)
    if code:
        raise RuntimeError(f"{stage.scene.name} fails without a crash: {output.decode()}")
    for number, size in enumerate(json.loads(output)):
        yield Point("before", number, backwards)
        yield Point("after", number, backwards)
        if size > 1:
            yield Point("halfway", number, backwards)


def _try(stage: Stage, point: Point, figures: Figures) -> None:
    scene = stage.scene
    with stage.copy() as path:
        code, output = run_child(lambda: _operate(scene, path, point))
        verdict = judge(scene, stage.old, stage.new, stage.look(path))
        if code not in (0, KILLED):
            verdict = Verdict("foreign", f"the operation fails: {output.decode()}")
        elif verdict.outcome in ("unreadable", "mixed") and not scene.atomic and point.when == "halfway":
            figures.passed(scene.name, "damaged, as documented")
            return
        elif verdict.good and scene.repeatable:
            verdict = _repeat(stage, path) or verdict
    if verdict.good:
        figures.passed(scene.name, verdict.outcome)
    else:
        figures.failed(scene.name, verdict.outcome, f"{scene.name}:{point}", verdict.description)


def _operate(scene: Scene, path: str, point: Point) -> None:
    calls = 0

    def kill(call: shim.Call) -> Any:
        nonlocal calls
        calls += 1
        if calls != point.call + 1:
            return call.make()
        if point.when == "after":
            call.make()
        elif point.when == "halfway" and call.data:  # threads may change the order of calls, so this may not be a write
            call.half().make()
        os._exit(KILLED)

    shim.install(kill, backwards=point.backwards)
    scene.operate(LocalStore(path))


def _repeat(stage: Stage, path: str) -> Verdict | None:
    """Run the operation again after a crash. Returns None if this leads to the new state."""
    try:
        stage.scene.operate(LocalStore(path))
    except Exception as error:
        return Verdict("stuck", f"the operation cannot be repeated: {type(error).__name__}: {error}")
    if not equal(stage.look(path), stage.new):
        return Verdict("stuck", "the operation, repeated, does not lead to the new state")
    left = [name for _, _, names in os.walk(path) for name in names if MARK.match(name)]
    return Verdict("left", f"the operation, repeated, leaves {left}") if left else None

"""Real conditions: full disks, too few descriptors, limited file sizes, read-only and vanished directories.

Rules
- An operation runs in a forked child under one condition. It ends with an error of the library, or succeeds.
- A new reader, to which the condition does not apply, finds every chunk and document in its old or new version. No
  temporary file is left, and the child has no additional open descriptor.
- Once the condition has ended, the operation can be repeated and leads to the new state.
- Full disks are tmpfs mounts, which need root. Read-only directories affect only ordinary users, so root becomes an
  ordinary user in the child. If a condition cannot be created, the report notes that, and its trials are skipped.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import random
import resource
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.reliability.children import run_child, staged
from tests.reliability.report import Figures
from tests.reliability.scenes import GOOD, SCENES, Scene, State, equal, judge
from zarrlite import LocalStore, ZarrliteError
from zarrlite.tools.layout import leftovers

SAMPLE = 180  # trials
PAGE = 4096  # bytes; a file in a tmpfs takes whole pages
DISK = 4 * 2**20  # bytes; size of the full disk
NOBODY = 65534  # id of an ordinary user
Trial = tuple[str, str, int]  # condition, name of a `Scene`, amount (one of those listed in `AMOUNTS`)

# condition -> amounts to try
AMOUNTS: dict[str, list[int]] = {
    "full disk": [0, 1, 2, 3, 5, 8],  # free pages
    "file size": [0, 1, 10, 17, 40, 100, 700],  # largest file, in bytes
    "descriptors": [0, 1, 2, 3, 4, 6],  # number of descriptors that can still be opened
    "read-only": [0o555, 0o500, 0o444, 0o000],  # mode of all directories
    "closed chunks": [0o555, 0o444, 0o000],  # mode of the directories that contain the chunks
    "vanished": [0, 1],  # 0: the directory of the node has vanished; 1: that of the store
}


def run(trials: int | None, seed: int) -> Figures:
    """Run randomly chosen trials, or all of them."""
    figures = Figures("conditions", seed)
    for condition in AMOUNTS:
        reason = why_not(condition)
        if reason:
            figures.notes.append(f"{condition} left out: {reason}")
        else:
            run_condition(condition, None if trials is None else max(1, trials // len(AMOUNTS)), seed, figures)
    return figures


def run_condition(condition: str, trials: int | None, seed: int, figures: Figures | None = None) -> Figures:
    """Run trials under one condition."""
    figures = figures or Figures("conditions", seed)
    chosen: list[Trial] = [(condition, scene, amount) for scene in SCENES for amount in AMOUNTS[condition]]
    if trials is not None:
        chosen = sorted(random.Random(f"{seed} {condition}").sample(chosen, min(trials, len(chosen))))
    for name, of_scene in itertools.groupby(chosen, key=lambda trial: trial[1]):
        with staged(SCENES[name]) as stage:
            for trial in of_scene:
                _try(figures, trial, stage.old, stage.new)
    return figures


def replay(spec: str) -> Figures:
    """Repeat one trial."""
    figures = Figures("conditions", 0)
    condition, name, amount = spec.split("|")
    with staged(SCENES[name]) as stage:
        _try(figures, (condition, name, int(amount)), stage.old, stage.new)
    return figures


def why_not(condition: str) -> str | None:
    """Return the reason why a condition cannot be created here. Returns None if it can."""
    if condition == "full disk":
        with tempfile.TemporaryDirectory() as directory:
            if not _mount(directory):
                return "a tmpfs cannot be mounted"
            subprocess.run(["umount", directory], check=True)
    return None


@contextlib.contextmanager
def _directory(condition: str) -> Iterator[str]:
    """Create a directory for a store, on a separate disk if the disk is to be full."""
    base = tempfile.mkdtemp()
    os.chmod(base, 0o755)
    is_mounted = condition == "full disk" and _mount(base)
    try:
        yield os.path.join(base, "store")
    finally:
        if is_mounted:
            subprocess.run(["umount", base], check=True)
        else:
            _allow(base)
        shutil.rmtree(base)


def _mount(directory: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", directory]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def _try(figures: Figures, trial: Trial, old: State, new: State) -> None:
    condition, name, amount = trial
    with _directory(condition) as root:
        outcome, description = _judge(condition, SCENES[name], amount, root, old, new)
    if outcome in GOOD or outcome == "gone":
        figures.passed(f"{condition}: {name}", outcome)
    else:
        figures.failed(f"{condition}: {name}", outcome, f"{condition}|{name}|{amount}", description)


def _judge(condition: str, scene: Scene, amount: int, root: str, old: State, new: State) -> tuple[str, str]:
    store = LocalStore(root)
    scene.prepare(store)
    os.makedirs(root, exist_ok=True)
    with CONDITIONS[condition](root, amount) as limit:
        work = partial(_measure, lambda: scene.operate(LocalStore(root)), limit)
        status, answer = run_child(lambda: json.dumps(work()).encode())
    outcome, description = json.loads(answer) if status == 0 else ("foreign", answer.decode())
    if outcome in ("foreign", "descriptors"):
        return outcome, description
    left = [leftover.key for leftover in leftovers.find(store, "")]
    if left:
        return "leftover", f"{left} after {description}"
    if condition == "vanished":
        return "gone", ""
    verdict = judge(scene, old, new, scene.look(LocalStore(root)))
    if not verdict.good:
        return verdict.outcome, f"{verdict.description} after {description}"
    if outcome == "done" and verdict.outcome != "new":
        return "not done", "the operation reports success and has done nothing, or not all of it"
    if scene.repeatable:
        scene.operate(LocalStore(root))
        if not equal(scene.look(LocalStore(root)), new):
            return "not repeatable", f"the repetition does not lead to the new state, after {description}"
    return verdict.outcome, ""


def _measure(action: Callable[[], object], limit: Callable[[], object]) -> tuple[str, str]:
    """Run an action under a limit. Return the outcome and a description."""
    before = _descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit()
    try:
        action()
        outcome, description = "done", "success"
    except (ZarrliteError, RuntimeError) as error:  # `run_command` raises RuntimeError for a nonzero exit code
        outcome, description = "refused", f"{type(error).__name__}: {error}"
        if isinstance(error, RuntimeError) and "defect of zarrlite" in str(error):
            outcome = "foreign"
    except Exception as error:
        outcome, description = "foreign", f"{type(error).__name__}: {error}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    gc.collect()
    after = _descriptors()
    if outcome != "foreign" and after != before:
        return "descriptors", f"{after - before} descriptors are left, after {description}"
    return outcome, description


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# conditions: context managers that prepare a directory and yield a function for the child to call


@contextlib.contextmanager
def _full_disk(root: str, pages: int) -> Iterator[Callable[[], object]]:
    filling = os.path.join(os.path.dirname(root), "filling")
    descriptor = os.open(filling, os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while os.write(descriptor, bytes(PAGE)) == PAGE:
            pass
    os.ftruncate(descriptor, os.fstat(descriptor).st_size - pages * PAGE)
    os.close(descriptor)
    yield lambda: None
    os.remove(filling)


@contextlib.contextmanager
def _file_size(root: str, largest: int) -> Iterator[Callable[[], object]]:
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@contextlib.contextmanager
def _few_descriptors(root: str, more: int) -> Iterator[Callable[[], object]]:
    def limit() -> None:
        opened = {int(name) for name in os.listdir("/proc/self/fd")}  # including the descriptor that `listdir` uses
        free = [number for number in range(max(opened) + 1 + more) if number not in opened]
        free.append(max(opened))
        resource.setrlimit(resource.RLIMIT_NOFILE, (sorted(free)[more], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    yield limit


@contextlib.contextmanager
def _read_only(root: str, mode: int, only: str = "") -> Iterator[Callable[[], object]]:
    """Restrict the permissions of all directories, or of those with a given name.

    The child runs as an ordinary user, who owns the directories.
    """
    for directory, _, names in os.walk(root, topdown=False):
        for name in names:
            _give(os.path.join(directory, name))
        _give(directory)
        if only in ("", os.path.basename(directory)):
            os.chmod(directory, mode)
    yield _become_nobody
    _allow(root)


def _give(path: str) -> None:
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def _become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _allow(root: str) -> None:
    """Restore all permissions, from the top down, because the owner is not root."""
    for directory, directories, names in os.walk(root):
        for name in directories:
            os.chmod(os.path.join(directory, name), stat.S_IRWXU)
        for name in names:
            os.chmod(os.path.join(directory, name), 0o600)


@contextlib.contextmanager
def _vanished(root: str, whole: int) -> Iterator[Callable[[], object]]:
    shutil.rmtree(root if whole else os.path.join(root, "a"), ignore_errors=True)
    yield lambda: None


CONDITIONS: dict[str, Any] = {
    "full disk": _full_disk,
    "file size": _file_size,
    "descriptors": _few_descriptors,
    "read-only": _read_only,
    "closed chunks": partial(_read_only, only="c"),
    "vanished": _vanished,
}

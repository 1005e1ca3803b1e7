"""Power cuts: an operation's calls are recorded, and the disks that a power cut may leave are reconstructed from them.

Rules
- Operations run with `fsync=True`. Two models determine which of an operation's calls have reached the disk.
- The ordered model is a file system with a journal, such as ext4 and xfs: all calls up to some point have reached the
  disk, and this point is not before the last fsync of any file.
- The strict model assumes only what POSIX promises: an fsync of a file makes its earlier writes durable, and an fsync
  of a directory makes the earlier changes to its entries durable. Any subset of the other calls may also have
  reached the disk. A write that is not durable may have extended the file without storing the data (zeros), or may be
  half complete.
- A cut before the operation returns may leave any state that a crash may leave. A cut after it has returned may leave
  only the new state: acknowledged changes are durable.
- If an operation writes into a stored object, a cut before it returns may damage that object, as documented.
"""

from __future__ import annotations

import itertools
import os
import pickle
import random
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.reliability import shim
from tests.reliability.children import Stage, run_child, staged
from tests.reliability.report import Figures
from tests.reliability.scenes import SCENES, Scene, Verdict, equal, judge
from zarrlite import LocalStore

SAMPLE = 1000  # trials
MOST = 64  # if the strict model allows more states at a moment, about this many are chosen at random
ROOT = 0  # number of the root directory
SKIPPED, DONE, ZEROS, HALF = range(4)  # fates of a call that was not synced; the last two apply only to writes
DURABLE = "acknowledged"

Tree = dict[str, bytes]  # path -> content of a file


class Call(NamedTuple):
    """A recorded call. Files and directories have numbers, like inodes."""

    name: str  # "enter" (adds a directory entry), "leave" (removes one), "move", "write", "truncate", "sync"
    number: int  # the changed file or directory
    entry: str = ""
    target: int = -1  # the file or directory that the entry refers to; -1 if a file was removed
    offset: int = 0
    data: bytes = b""
    source: tuple[int, str] = (-1, "")  # "move": the name that disappears


class Disk:
    """Files and directories by number."""

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.directories: dict[int, dict[str, int]] = {ROOT: {}}

    def copy(self) -> Disk:
        disk = Disk()
        disk.files = dict(self.files)
        disk.directories = {number: dict(names) for number, names in self.directories.items()}
        return disk

    def apply(self, call: Call, fate: int = DONE) -> None:
        """Apply a call according to its fate."""
        if call.name == "enter":
            self.directories.setdefault(call.number, {})[call.entry] = call.target
        elif call.name == "leave":
            names = self.directories.setdefault(call.number, {})
            if not self.directories.get(names.get(call.entry, -1)):  # a directory that is not empty cannot be removed
                names.pop(call.entry, None)
        elif call.name == "move":
            self.directories.setdefault(call.source[0], {}).pop(call.source[1], None)
            self.directories.setdefault(call.number, {})[call.entry] = call.target
        elif call.name == "write":
            data = call.data[: len(call.data) // 2] if fate == HALF else call.data
            old = self.files.get(call.number, b"").ljust(call.offset, b"\0")
            if fate == ZEROS:
                data = old[call.offset : call.offset + len(data)].ljust(len(data), b"\0")
            self.files[call.number] = old[: call.offset] + data + old[call.offset + len(data) :]
        elif call.name == "truncate":
            self.files[call.number] = self.files.get(call.number, b"")[: call.offset].ljust(call.offset, b"\0")

    def tree(self, number: int = ROOT, prefix: str = "") -> Tree:
        """Return the files that can be reached from the root."""
        tree: Tree = {}
        for name, target in self.directories.get(number, {}).items():
            if target in self.directories:
                tree.update(self.tree(target, f"{prefix}{name}/"))
            else:
                tree[prefix + name] = self.files.get(target, b"")
        return tree


class Recorder:
    """A hook that makes every call and records it."""

    def __init__(self, root: str) -> None:
        self.calls: list[Call] = []
        self.disk = Disk()
        self._lock = threading.Lock()
        self._count = ROOT
        self._numbers = {os.stat(root).st_ino: ROOT}  # inode numbers are reused, so each new file gets a new number
        self._read(root, ROOT)

    def _read(self, path: str, number: int) -> None:
        for entry in os.scandir(path):
            target = self.disk.directories[number][entry.name] = self._new(entry.stat())
            if entry.is_dir():
                self.disk.directories[target] = {}
                self._read(entry.path, target)
            else:
                with open(entry.path, "rb") as file:
                    self.disk.files[target] = file.read()

    def _new(self, info: os.stat_result) -> int:
        self._count += 1
        self._numbers[info.st_ino] = self._count
        return self._count

    def _number(self, place: Any) -> int:
        """Return the number assigned to the file or directory at a path, or to an open file."""
        return self._numbers[os.stat(place).st_ino]

    def _split(self, path: str) -> tuple[int, str]:
        directory, name = os.path.split(path)
        return self._number(directory), name

    def __call__(self, call: shim.Call) -> Any:
        with self._lock:  # another thread must not use a new file or directory before it has a number
            return self._record(call)

    def _record(self, call: shim.Call) -> Any:
        offset = os.lseek(call.args[0], 0, os.SEEK_CUR) if call.name in ("write", "writev") else 0
        if call.name in ("replace", "rename"):
            number, name = self._split(call.args[1])
            moved = Call("move", number, name, self._number(call.args[0]), source=self._split(call.args[0]))
        removed = self._number(call.args[0]) if call.name == "rmdir" else -1
        existed = call.name == "open" and os.path.lexists(call.args[0])
        result = call.make()
        add = self.calls.append
        if call.name == "open":
            flags = call.args[1]
            if shim.is_tmpfile(flags):
                self._new(os.fstat(result))
            elif not existed:
                add(Call("enter", *self._split(call.args[0]), self._new(os.fstat(result))))
            elif flags & os.O_TRUNC:
                add(Call("truncate", self._number(result)))
        elif call.name in ("write", "writev"):
            add(Call("write", self._number(call.args[0]), offset=offset, data=call.data[:result]))
        elif call.name == "pwrite":
            add(Call("write", self._number(call.args[0]), offset=call.args[2], data=call.data[:result]))
        elif call.name in ("truncate", "ftruncate"):
            add(Call("truncate", self._number(call.args[0]), offset=call.args[1]))
        elif call.name in ("replace", "rename"):
            add(moved)
        elif call.name == "link":
            add(Call("enter", *self._split(call.args[1]), self._number(call.args[1])))
        elif call.name == "mkdir":
            add(Call("enter", *self._split(call.args[0]), self._new(os.stat(call.args[0]))))
        elif call.name in ("unlink", "remove", "rmdir"):
            add(Call("leave", *self._split(call.args[0]), removed))
        elif call.name in ("fsync", "fdatasync"):
            add(Call("sync", self._number(call.args[0])))
        else:
            raise RuntimeError(f"the disk model does not support os.{call.name}")
        return result


class Cut(NamedTuple):
    """A power cut: the moment, and the fate of each call before it that was not synced."""

    model: str
    moment: int  # number of calls that were made before the cut
    fates: str = ""

    def __str__(self) -> str:
        return f"{self.model}:{self.moment}:{self.fates}"


class Recording:
    """The calls of an operation, and the disks that a power cut can leave."""

    def __init__(self, stage: Stage) -> None:
        def work() -> bytes:
            recorder = Recorder(path)
            shim.install(recorder)
            stage.scene.operate(LocalStore(path, fsync=True))
            return pickle.dumps((recorder.disk, recorder.calls))

        with stage.copy() as path:
            code, output = run_child(work)
        if code:
            raise RuntimeError(f"{stage.scene.name} fails without a power cut: {output.decode()}")
        self.base, self.calls = pickle.loads(output)

    def loose(self, moment: int) -> list[int]:
        """Return the indices of the calls before `moment` that are not durable in the strict model.

        If the removal of a directory is durable, so are the earlier changes to its entries.
        """
        synced: set[int] = set()
        loose = []
        for i in reversed(range(moment)):
            call = self.calls[i]
            if call.name == "sync":
                synced.add(call.number)
            elif call.number not in synced or (call.name == "move" and call.source[0] not in synced):
                loose.append(i)
            elif call.name == "leave":
                synced.add(call.target)
        return loose[::-1]

    def cuts(self, seed: int) -> Iterator[Cut]:
        """Yield the power cuts of both models."""
        end = len(self.calls)
        last_sync = max([i for i, call in enumerate(self.calls) if call.name == "sync"], default=-1)
        yield from (Cut("ordered", moment) for moment in range(end))
        yield from (Cut(f"ordered {DURABLE}", moment) for moment in range(last_sync + 1, end + 1))
        for moment in range(end + 1):
            model = f"strict {DURABLE}" if moment == end else "strict"
            yield from (Cut(model, moment, fates) for fates in self._fates(moment, seed))

    def _fates(self, moment: int, seed: int) -> Iterator[str]:
        # the states in which all of these calls are done, or none of them, are always included
        choices = [f"{DONE}{SKIPPED}" + f"{ZEROS}{HALF}" * (self.calls[i].name == "write") for i in self.loose(moment)]
        if 4 ** len(choices) <= MOST:
            yield from map("".join, itertools.product(*choices))
            return
        chance = random.Random(f"{seed} {moment}")
        found = {"".join(choice[0] for choice in choices), "".join(choice[1] for choice in choices)}
        for _ in range(MOST):
            found.add("".join(map(chance.choice, choices)))
        yield from sorted(found)

    def tree(self, cut: Cut) -> Tree:
        """Return the files on the disk after a power cut."""
        fates = dict(zip(self.loose(cut.moment), map(int, cut.fates), strict=True)) if cut.fates else {}
        disk = self.base.copy()
        for i, call in enumerate(self.calls[: cut.moment]):
            fate = fates.get(i, DONE)
            if fate != SKIPPED:
                disk.apply(call, fate)
        return disk.tree()


def run(trials: int | None, seed: int) -> Figures:
    """Cut the power during and after the operations of all `SCENES`."""
    figures = Figures("power", seed)
    scenes = [scene for scene in SCENES.values() if is_durable(scene)]
    for scene in scenes:
        run_scene(scene, None if trials is None else max(1, trials // len(scenes)), seed, figures)
    return figures


def is_durable(scene: Scene) -> bool:
    """Whether an operation supports `fsync=True`. The command line does not."""
    return not scene.local


def run_scene(scene: Scene, trials: int | None, seed: int, figures: Figures | None = None) -> Figures:
    """Cut the power during and after the operation of one `Scene`."""
    figures = figures or Figures("power", seed)
    with staged(scene) as stage:
        recording = Recording(stage)
        cuts = list(recording.cuts(seed))
        if trials is not None:
            cuts = random.Random(f"{seed} {scene.name}").sample(cuts, min(trials, len(cuts)))
        known: dict[tuple[bool, frozenset[Any]], Verdict] = {}  # many cuts leave the same disk
        for cut in cuts:
            tree = recording.tree(cut)
            key = DURABLE in cut.model, frozenset(tree.items())
            verdict = known[key] = known.get(key) or _judge(stage, cut, tree)
            _count(figures, scene, cut, verdict)
    return figures


def replay(spec: str) -> Figures:
    """Cut the power once."""
    name, model, moment, fates = spec.rsplit(":", 3)
    figures = Figures("power", 0)
    with staged(SCENES[name]) as stage:
        cut = Cut(model, int(moment), fates)
        _count(figures, stage.scene, cut, _judge(stage, cut, Recording(stage).tree(cut)))
    return figures


def _judge(stage: Stage, cut: Cut, tree: Tree) -> Verdict:
    with stage.empty() as path:
        for name, content in tree.items():
            os.makedirs(os.path.dirname(f"{path}/{name}"), exist_ok=True)
            with open(f"{path}/{name}", "wb") as file:
                file.write(content)
        seen = stage.look(path)
    verdict = judge(stage.scene, stage.old, stage.new, seen)
    if DURABLE not in cut.model:
        return verdict
    if verdict.good and not equal(seen, stage.new):
        return Verdict("undone", f"after the operation has returned, the state is {verdict.outcome}")
    return verdict


def _count(figures: Figures, scene: Scene, cut: Cut, verdict: Verdict) -> None:
    if verdict.good:
        figures.passed(scene.name, verdict.outcome)
    elif verdict.outcome in ("unreadable", "mixed") and not scene.atomic and DURABLE not in cut.model:
        figures.passed(scene.name, "damaged, as documented")
    else:
        figures.failed(scene.name, verdict.outcome, f"{scene.name}:{cut}", verdict.description)

"""Interrupts: Ctrl-C in the middle of an operation, after which the process continues.

Rules
- There are two kinds of interrupts: a signal that is pending when CPython checks for signals at a chosen bytecode (a
  call of a C function, the start of a function or the end of a loop iteration), and a SIGINT from another process at a
  random time.
- Half of the bytecodes are chosen from those around calls that change files. For the others, the source location is
  chosen first, so that code that runs once is as likely to be interrupted as a loop.
- Afterwards, while the interrupted process is still alive, no lock is held (checked by another process), no additional
  descriptor is open, there is no temporary file, and the state is acceptable (`scenes.judge`). Then another thread of
  that process repeats the operation, which leads to the new state.
- An operation that ends before the interrupt, or ends without raising KeyboardInterrupt, must lead to the new state.
"""

from __future__ import annotations

import dis
import fcntl
import functools
import gc
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from _thread import interrupt_main
from collections import defaultdict
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from tests.reliability import shim
from tests.reliability.children import Stage, run_and_exit, run_child, staged
from tests.reliability.report import Figures
from tests.reliability.scenes import SCENES, Scene, Verdict, equal, judge
from zarrlite import LocalStore

SAMPLE = 450  # trials
FULL = 100  # trials per `Scene` in a full run
SIGNALS = 0.3  # fraction of the trials in which another process sends a signal
# this many signal checks before and after each call that changes files; half of the bytecodes are chosen from these
BEFORE, AFTER = 5, 25
PATIENCE = 120.0  # seconds; an operation normally takes milliseconds, and after this time it counts as blocked
TEMPORARY = "__zarrlite.tmp."

# CPython checks for signals at the end of these instructions. A call of a Python function checks at its RESUME.
_LOOKS = ("RESUME", "JUMP_BACKWARD", "CALL", "CALL_FUNCTION_EX", "CALL_KW")

_UNSEEN = (__file__, shim.__file__)  # hooks are not traced, so that moments have the same numbers with and without them


@functools.cache
def _looks(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions after which CPython checks for signals."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opname in _LOOKS)


class Tracer:
    """A trace function that lists the moments when CPython checks for signals, or sends a signal before one of them."""

    def __init__(self, send_at: int | None = None) -> None:
        self.places: list[tuple[str, int, int]] = []  # file, line and offset of each moment
        self._send_at = send_at

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call":
            if frame.f_code.co_filename in _UNSEEN:
                return None
            frame.f_trace = self  # Python 3.14 does not enable opcode events for a frame without a trace function
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode" and frame.f_lasti in _looks(frame.f_code):
            if self._send_at is None:
                self.places.append((frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lasti))
            elif not self._send_at:
                sys.settrace(None)
                # `map` makes the call, because CPython would check for signals at the end of a CALL instruction
                for _ in map(interrupt_main, (signal.SIGINT,)):
                    return None
            else:
                self._send_at -= 1
        return self


def run(trials: int | None, seed: int) -> Figures:
    """Interrupt the operations of all `SCENES`."""
    figures = Figures("interrupts", seed)
    for scene in SCENES.values():
        run_scene(scene, FULL if trials is None else max(1, trials // len(SCENES)), seed, figures)
    return figures


def run_scene(scene: Scene, trials: int, seed: int, figures: Figures | None = None) -> Figures:
    """Interrupt the operation of one `Scene`."""
    figures = figures or Figures("interrupts", seed)
    chance = random.Random(f"{seed} {scene.name}")
    with staged(scene) as stage:
        places, critical, duration = _survey(stage)
        for _ in range(trials):
            if chance.random() < SIGNALS:
                _try(stage, "signal", str(chance.uniform(0, 1.2 * duration)), figures)
            else:
                moments = critical if chance.random() < 0.5 else chance.choice(places)
                _try(stage, "bytecode", str(chance.choice(moments)), figures)
    return figures


def replay(spec: str) -> Figures:
    """Interrupt an operation once. A signal arrives at about the same time as in the trial that is repeated."""
    name, way, when = spec.rsplit(":", 2)
    figures = Figures("interrupts", 0)
    with staged(SCENES[name]) as stage:
        _try(stage, way, when, figures)
    return figures


def _survey(stage: Stage) -> tuple[list[list[int]], list[int], float]:
    """Return the signal checks of an operation by source location, those around changes to files, and its duration."""

    def work() -> bytes:
        start = time.perf_counter()
        stage.scene.operate(LocalStore(path))
        duration = time.perf_counter() - start
        shutil.rmtree(path)
        shutil.copytree(stage.template, path)
        tracer = Tracer()
        calls: list[int] = []

        def mark(call: shim.Call) -> Any:
            calls.append(len(tracer.places))
            return call.make()

        shim.install(mark)
        _trace(stage.scene, path, tracer)
        places = defaultdict(list)
        for moment, place in enumerate(tracer.places):
            places[place].append(moment)
        around = {moment for call in calls for moment in range(call - BEFORE, call + AFTER)}
        critical = sorted(around & set(range(len(tracer.places))))
        return json.dumps((list(places.values()), critical, duration)).encode()

    with stage.copy() as path:
        code, output = run_child(work)
    if code:
        raise RuntimeError(f"{stage.scene.name} fails without an interrupt: {output.decode()}")
    places, critical, duration = json.loads(output)
    return places, critical, duration


def _trace(scene: Scene, path: str, tracer: Tracer) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store = LocalStore(path)
    sys.settrace(tracer)
    try:
        scene.operate(store)
    finally:
        sys.settrace(None)


def _try(stage: Stage, way: str, when: str, figures: Figures) -> None:
    with stage.copy() as path:
        verdict, is_late = _interrupt(stage, path, way, when)
    if verdict.good:
        manner = "too late" if is_late else verdict.outcome
        figures.passed(stage.scene.name, f"signal {manner}" if way == "signal" else manner)
    else:
        spec = f"{stage.scene.name}:{way}:{when}"
        figures.failed(stage.scene.name, verdict.outcome, spec, verdict.description)


def _interrupt(stage: Stage, path: str, way: str, when: str) -> tuple[Verdict, bool]:
    """Interrupt a child, and examine what it left while it is alive. Also returns whether the operation had ended."""
    child = _Child(stage.scene, path, way, when)
    try:
        if way == "signal":
            child.read()  # the operation is about to begin
            end = time.perf_counter() + float(when)
            while time.perf_counter() < end:
                pass
            os.kill(child.pid, signal.SIGINT)
        left = child.read()
        return _examine(stage, path, child, left), left["late"]
    finally:
        child.end()


def _examine(stage: Stage, path: str, child: _Child, left: dict[str, Any]) -> Verdict:
    """Judge the state that a child left, and let the child repeat the operation."""
    left["locked"] = _locked(path)
    for outcome in ("foreign", "locked", "temporaries", "descriptors"):
        if left[outcome]:
            return Verdict(outcome, f"after the interrupt: {outcome}: {left[outcome]}")
    verdict = judge(stage.scene, stage.old, stage.new, stage.look(path))
    if left["late"] and verdict.good and verdict.outcome != "new":
        return Verdict("not done", f"the operation reports success, and the state is {verdict.outcome}")
    if not verdict.good or not stage.scene.repeatable:
        return verdict
    again = child.read(b"again")["again"]
    if again:
        return Verdict("blocked" if "blocked" in again else "stuck", again)
    if not equal(stage.look(path), stage.new):
        return Verdict("stuck", "the operation, repeated, does not lead to the new state")
    return verdict


def _locked(path: str) -> list[str]:
    """Return the files and directories that another process has locked."""
    locked = []
    for directory, _, names in os.walk(path):
        for place in [directory, *(f"{directory}/{name}" for name in names)]:
            fd = os.open(place, os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                locked.append(os.path.relpath(place, path))
            finally:
                os.close(fd)
    return locked


class _Child:
    """A forked process that is interrupted in an operation, reports what it left, and repeats it on request."""

    def __init__(self, scene: Scene, path: str, way: str, when: str) -> None:
        receive, self._send = os.pipe()
        self._receive, send = os.pipe()
        self._unread = b""
        self.pid = os.fork()
        if not self.pid:
            os.close(self._send)
            os.close(self._receive)
            run_and_exit(lambda: _live(scene, path, way, when, receive, send), 2)
        os.close(receive)
        os.close(send)

    def read(self, request: bytes = b"") -> Any:
        """Read a line from the child, after sending it a request if there is one."""
        if request:
            os.write(self._send, request + b"\n")
        while b"\n" not in self._unread:
            data = os.read(self._receive, 65536)
            if not data:
                raise RuntimeError("the child has ended")
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def end(self) -> None:
        """End the child, which is waiting for requests or blocked."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._send)
        os.close(self._receive)


def _live(scene: Scene, path: str, way: str, when: str, receive: int, send: int) -> None:
    def tell(value: Any) -> None:
        os.write(send, json.dumps(value).encode() + b"\n")

    gc.freeze()  # garbage collections then skip the parent's objects, and do not copy its memory
    before = _descriptors()
    error, is_late = "", False
    try:
        if way == "signal":
            _await_signal(scene, path, lambda: tell("ready"))
        else:
            _trace(scene, path, Tracer(int(when)))
        is_late = True
    except KeyboardInterrupt:
        pass
    except BaseException as other:
        error = f"the operation raises {type(other).__name__}: {other}"
    gc.collect()
    descriptors = [name for number, name in _descriptors().items() if number not in before]
    temporaries = [name for _, _, names in os.walk(path) for name in names if TEMPORARY in name]
    tell({"late": is_late, "foreign": error, "descriptors": descriptors, "temporaries": temporaries})
    os.read(receive, 100)
    outcome = ["it is blocked"]
    thread = threading.Thread(target=_repeat, args=(scene, path, outcome), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    tell({"again": outcome[-1]})
    os.read(receive, 100)


def _await_signal(scene: Scene, path: str, begin: Callable[[], None]) -> None:
    """Run an operation. A signal that arrives before the operation ends raises KeyboardInterrupt."""
    is_over = False

    def handle(*arguments: object) -> None:
        if not is_over:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    store = LocalStore(path)
    begin()
    try:
        scene.operate(store)
    finally:
        is_over = True


def _repeat(scene: Scene, path: str, outcome: list[str]) -> None:
    try:
        scene.operate(LocalStore(path))
        outcome.append("")
    except BaseException as error:
        outcome.append(f"the operation, repeated, raises {type(error).__name__}: {error}")


def _descriptors() -> dict[str, str]:
    """Return the open descriptors and their targets."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the descriptor that `listdir` used, which is already closed
            continue
    return found

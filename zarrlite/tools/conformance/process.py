"""A harness as a process: start it, send it requests, stop it, and kill it if it misbehaves.

Rules
- Every wait has a time limit and every line a maximum length; a harness can neither block the runner nor fill its
  memory.
- A fault (crash, timeout, garbage) ends the process, so that a late line is never taken for the next answer.
- Each process leads its own process group, and its descendants inherit a mark in their environment. The process is
  killed together with its group and, where /proc shows environments, with all processes that have the mark. A
  descendant that leaves the group and clears its environment is not found.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import selectors
import signal
import subprocess
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Any, Literal

from zarrlite.tools.conformance import protocol
from zarrlite.tools.conformance.protocol import Json, ProtocolError
from zarrlite.tools.conformance.steps import Step

MAX_LINE = 64 * 1024 * 1024  # bytes; a longer line of output is cut, and the answer is garbage
MAX_ERROR_LINE = 1000  # bytes; a longer line on stderr is split
ERROR_LINES = 20  # lines of stderr that are kept
START_LIMIT = 60.0  # seconds until `start` must be answered; imports are slow on a busy machine
MARK = "ZARRLITE_HARNESS"  # environment variable that marks a harness and its descendants with a unique value
MAX_SWEEPS = 100  # maximum number of searches for marked processes, which may keep starting new ones
STOP_LIMIT = 2.0  # seconds; a process that has not exited this long after `stop` is killed
_ERROR_LINE = re.compile(r"(?!\s+(at|File)\b).*(Error|Exception|panicked|memory allocation)")
_WAITS_FOR_PIPES = os.name != "nt"  # on Windows, a harness that does not read its input blocks the runner
FaultKind = Literal["crash", "timeout", "garbage"]


class HarnessFault(Exception):
    """A harness broke the protocol; `kind` becomes the result of the request."""

    def __init__(self, kind: FaultKind, message: str) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind


class Harness:
    """One process of a harness."""

    def __init__(self, command: Sequence[str], limit: float) -> None:
        self.command = list(command)
        self.limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors: deque[bytes] = deque(maxlen=ERROR_LINES)
        self._number = 0
        self._mark = f"{MARK}={uuid.uuid4().hex}"

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> Json:
        """Start the process, and return its answer to `start`."""
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, **dict([self._mark.split("=")])},
            )
        except OSError as error:
            raise HarnessFault("crash", f"cannot be started: {error}") from error
        if _WAITS_FOR_PIPES:
            os.set_blocking(process.stdin.fileno(), False)  # type: ignore[union-attr]
        self._process, self._lines, self._errors = process, queue.SimpleQueue(), deque(maxlen=ERROR_LINES)
        threading.Thread(target=_read_lines, args=(process.stdout, self._lines), daemon=True).start()
        self._error_reader = threading.Thread(target=_keep_last_lines, args=(process.stderr, self._errors), daemon=True)
        self._error_reader.start()
        return self._exchange(protocol.start_message(), START_LIMIT, protocol.parse_start)

    def ask(self, case: str, step: Step) -> Json:
        """Send one request, and return the answer."""
        self._number += 1
        number = self._number
        message = protocol.run_message(number, case, step)
        return self._exchange(message, self.limit, lambda line: protocol.parse_answer(line, number, step.op))

    def stop(self) -> None:
        """Ask the process to exit, and kill it if it does not exit."""
        if self._process is None:
            return
        with contextlib.suppress(OSError, HarnessFault):
            self._send(protocol.stop_message(), STOP_LIMIT)
            self._process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_LIMIT)
        self._kill()

    def _exchange(self, message: Json, limit: float, parse: Callable[[bytes], Json]) -> Json:
        """Send a message and return the parsed answer; kill the process on any fault."""
        try:
            try:
                self._send(message, limit)
            except OSError:
                raise HarnessFault("crash", self._describe_exit()) from None
            try:
                line = self._lines.get(timeout=limit)
            except queue.Empty:
                raise HarnessFault("timeout", f"no answer within {limit:g} s") from None
            if line is None:
                raise HarnessFault("crash", self._describe_exit())
            try:
                return parse(line)
            except ProtocolError as error:
                text = line[:200].decode("utf-8", "replace").strip()
                raise HarnessFault("garbage", f"{error}: {text}") from None
        except BaseException:
            self._kill()
            raise

    def _send(self, message: Json, limit: float) -> None:
        """Write a message; raises HarnessFault if the process does not read it in time."""
        fd = self._process.stdin.fileno()  # type: ignore[union-attr]
        data, deadline = memoryview(protocol.to_line(message)), time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            if _WAITS_FOR_PIPES:
                selector.register(fd, selectors.EVENT_WRITE)
            while data:
                if _WAITS_FOR_PIPES and not selector.select(max(0.0, deadline - time.monotonic())):
                    raise HarnessFault("timeout", f"did not read its input within {limit:g} s")
                data = data[os.write(fd, data) :]

    def _describe_exit(self) -> str:
        """Describe how the process ended, with the last error line on stderr."""
        process: Any = self._process
        try:
            code = process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            return "closed its output"
        self._error_reader.join(STOP_LIMIT)  # the last lines may not have been read yet
        if code >= 0:
            exit_text = f"exited with code {code}"
        elif -code in set(signal.Signals):
            exit_text = f"killed by {signal.Signals(-code).name}"
        else:
            exit_text = f"killed by signal {-code}"
        lines = [line for line in b"".join(self._errors).decode("utf-8", "replace").splitlines() if line.strip()]
        error_lines = [line for line in lines if _ERROR_LINE.match(line)] or lines
        return f"{exit_text}: {error_lines[-1].strip()[:300]}" if error_lines else exit_text

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        _kill_marked(self._mark)
        process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]


def _kill_marked(mark: str) -> None:
    """Kill the processes that have a mark in their environment, and those that they start in the meantime."""
    for _ in range(MAX_SWEEPS):
        marked = [pid for pid in _process_ids() if mark.encode() in _environment(pid)]
        if not marked:
            return
        for pid in marked:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _process_ids() -> list[int]:
    """Return the ids of all processes. Returns an empty list if there is no /proc."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return []


def _environment(pid: int) -> list[bytes]:
    """Return the environment of a process. Returns an empty list if it has ended or belongs to another user."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().split(b"\0")
    return []


def _read_lines(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    """Queue the lines of a stream, then None. A line that is too long is truncated and cannot be a valid answer."""
    with stream:
        while line := stream.readline(MAX_LINE):
            lines.put(line)
            if not line.endswith(b"\n"):
                break
    lines.put(None)


def _keep_last_lines(stream: IO[bytes], lines: deque[bytes]) -> None:
    with stream:
        while line := stream.readline(MAX_ERROR_LINE):
            lines.append(line)

"""A harness as a process: started, asked, stopped, and ended when it does not behave.

Rules
- Every wait has a limit, every line a largest length; nothing a harness does can hold or fill the runner.
- A fault (crash, timeout, garbage) ends the process, so that no late line is taken for another answer.
- A process is the leader of its own group: what it started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO, Any, Literal

from zarrlite.tools.conformance import protocol
from zarrlite.tools.conformance.protocol import Json, ProtocolError
from zarrlite.tools.conformance.steps import Step

LONGEST_LINE = 64 * 1024 * 1024
START_LIMIT = 60.0  # seconds; imports on a busy machine take a while
STOP_LIMIT = 2.0
_TELLING = re.compile(r"(?!\s+(at|File)\b).*(Error|Exception|panicked|memory allocation)")
FaultKind = Literal["crash", "timeout", "garbage"]


class HarnessFault(Exception):
    """A harness that did not answer as it must; `kind` is the result of what it was asked."""

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
        self._errors: deque[bytes] = deque(maxlen=20)
        self._number = 0

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> Json:
        """Start the process; what it says about itself."""
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise HarnessFault("crash", f"cannot be started: {error}") from error
        self._process, self._lines, self._errors = process, queue.SimpleQueue(), deque(maxlen=20)
        threading.Thread(target=_pump, args=(process.stdout, self._lines), daemon=True).start()
        self._listener = threading.Thread(target=_tail, args=(process.stderr, self._errors), daemon=True)
        self._listener.start()
        return self._exchange(protocol.start_message(), START_LIMIT, protocol.parse_start)

    def ask(self, case: str, step: Step) -> Json:
        """The answer to one request."""
        self._number += 1
        number = self._number
        message = protocol.run_message(number, case, step)
        return self._exchange(message, self.limit, lambda line: protocol.parse_answer(line, number, step.op))

    def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._send(protocol.stop_message())
            self._process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_LIMIT)
        self._end()

    def _exchange(self, message: Json, limit: float, parse: Any) -> Json:
        try:
            try:
                self._send(message)
            except OSError:
                raise HarnessFault("crash", self._last_words()) from None
            try:
                line = self._lines.get(timeout=limit)
            except queue.Empty:
                raise HarnessFault("timeout", f"no answer within {limit:g} s") from None
            if line is None:
                raise HarnessFault("crash", self._last_words())
            try:
                answer: Json = parse(line)
            except ProtocolError as error:
                text = line[:200].decode("utf-8", "replace").strip()
                raise HarnessFault("garbage", f"{error}: {text}") from None
            return answer
        except BaseException:
            self._end()
            raise

    def _send(self, message: Json) -> None:
        stdin: Any = self._process.stdin  # type: ignore[union-attr]
        stdin.write(protocol.to_line(message))
        stdin.flush()

    def _last_words(self) -> str:
        """How it ended, and the last line on stderr that tells of an error."""
        process: Any = self._process
        try:
            code = process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            return "closed its output"
        self._listener.join(STOP_LIMIT)  # what was written last may not have been read yet
        if code < 0:
            how = (
                f"ended by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"ended by signal {-code}"
            )
        else:
            how = f"ended with code {code}"
        said = [line for line in b"".join(self._errors).decode("utf-8", "replace").splitlines() if line.strip()]
        telling = [line for line in said if _TELLING.match(line)] or said
        return f"{how}: {telling[-1].strip()[:300]}" if telling else how

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]


def _pump(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    """Lines of stdout, then None; a line that is too long is cut and so is no answer."""
    with stream:
        while line := stream.readline(LONGEST_LINE):
            lines.put(line)
            if not line.endswith(b"\n"):
                break
    lines.put(None)


def _tail(stream: IO[bytes], kept: deque[bytes]) -> None:
    with stream:
        while line := stream.readline(1000):
            kept.append(line)

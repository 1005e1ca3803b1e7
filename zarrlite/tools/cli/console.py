"""Output of commands: text, tables, JSON, colours and progress.

Rules
- Results go to stdout; errors, warnings and progress go to stderr.
- Colours and progress are for terminals only; there are no colours if NO_COLOR is set or TERM is "dumb".
- On a terminal, rich is used for tables and progress if it is installed. Otherwise, and in pipes, all output is plain
  text.
- Names and values from files pass through `clean` before they are printed, so that they cannot control the terminal.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

_STYLES = {"good": "32", "bad": "31", "warn": "33", "bold": "1", "dim": "2", "name": "36", "number": "35"}
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COLOR_CODES = re.compile("\x1b\\[[0-9;]*m")
_MIN_COLUMN = 20  # characters; on a narrow terminal, values are wrapped to lines of at least this width
_REDRAW_SECONDS = 0.1  # seconds; a progress bar is redrawn at most this often


def clean(text: object) -> str:
    r"""Escape line breaks and everything else that would control a terminal.

    >>> print(clean("two\nlines"))
    two\nlines
    """
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], str(text))


class Styled(str):
    """Text that has passed through `clean` and may contain colour codes."""


class Progress(Protocol):
    """A display of the progress of a task."""

    def advance(self, n: int = 1) -> None:
        """Count `n` more steps as done."""


class Console:
    """The output streams of a command."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None, *, as_json: bool = False) -> None:
        self.stdout = sys.stdout if stdout is None else stdout
        self.stderr = sys.stderr if stderr is None else stderr
        self.as_json = as_json
        allowed = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.color = allowed and self.stdout.isatty()
        self._error_color = allowed and self.stderr.isatty()

    def print(self, text: str = "") -> None:
        """Print one or more lines to stdout."""
        self.stdout.write(f"{text}\n")

    def style(self, text: object, name: str) -> Styled:
        """Return clean text, coloured on a terminal. `name` is one of good, bad, warn, bold, dim, name and number."""
        return Styled(_paint(clean(text), name) if self.color else clean(text))

    def json(self, value: Any) -> None:
        """Print a JSON document to stdout. Values that JSON cannot represent are printed as strings."""
        try:
            text = json.dumps(value, indent=2, allow_nan=False, default=str)
        except ValueError:  # attributes may contain NaN and infinities, which JSON cannot represent
            text = json.dumps(_with_text(value), indent=2, default=str)
        self.print(text)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows under headers. Numeric columns are right-aligned."""
        right = [bool(rows) and all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(headers))]
        cells = [[_cell(value) for value in row] for row in rows]
        lines: list[list[str]] = [[self.style(header, "bold") for header in headers], *cells]
        widths = [max(_width(line[i]) for line in lines) for i in range(len(headers))]
        if self.columns is not None and sum(widths) + 2 * (len(widths) - 1) > self.columns:
            self._records(headers, cells)
            return
        if self.color and _have_rich():
            self._rich_table(headers, cells, right)
            return
        for line in lines:
            padded = (_pad(cell, width, r) for cell, width, r in zip(line, widths, right, strict=True))
            self.print("  ".join(padded).rstrip())

    @property
    def columns(self) -> int | None:
        """The width of the terminal in characters. None if stdout is not a terminal."""
        return shutil.get_terminal_size().columns if self.stdout.isatty() else None

    def _records(self, headers: Sequence[str], cells: list[list[str]]) -> None:
        """Print each cell on a line of its own. A terminal would break the lines of a wide table within words."""
        for i, line in enumerate(cells):
            if i:
                self.print()
            self.pairs([(header, cell) for header, cell in zip(headers, line, strict=True) if cell])

    def pairs(self, rows: Sequence[tuple[str, Any]]) -> None:
        """Print names and values, one pair per line. A long value is wrapped if the terminal is narrow."""
        width = max((len(name) for name, _ in rows), default=0)
        room = sys.maxsize if self.columns is None else max(self.columns - width - 3, _MIN_COLUMN)
        for name, value in rows:
            text = _COLOR_CODES.sub("", value) if isinstance(value, Styled) else clean(value)
            lines = (
                textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
                if len(text) > room
                else [text]
            )
            self.print(f"{self.style(f'{name:<{width}}', 'bold')} : {self.style(lines[0], 'name')}")
            for line in lines[1:]:
                self.print(f"{'':<{width}}   {self.style(line, 'name')}")

    def _rich_table(self, headers: Sequence[str], cells: list[list[str]], right: list[bool]) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console as RichConsole
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for header, r in zip(headers, right, strict=True):
            table.add_column(Text(header), justify="right" if r else "left", overflow="fold")
        for line in cells:
            table.add_row(*(Text.from_ansi(cell) for cell in line))
        RichConsole(file=self.stdout, highlight=False).print(table)

    def warn(self, message: str) -> None:
        """Print a warning to stderr."""
        self._print_to_stderr("zarrlite: warning: ", "warn", message)

    def error(self, message: str) -> None:
        """Print an error to stderr."""
        self._print_to_stderr("", "bad", message)

    def _print_to_stderr(self, label: str, name: str, message: str) -> None:
        self.stdout.flush()  # keeps the order of output if both streams are the same file
        line = label + clean(message)
        self.stderr.write((_paint(line, name) if self._error_color else line) + "\n")
        self.stderr.flush()

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[Progress]:
        """Show progress on a terminal while the block runs. The block must report `total` steps with `advance`."""
        if not self.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield _NoProgress()
        elif _have_rich():
            yield from self._rich_progress(label, total)
        else:
            bar = _Bar(self.stderr, label, total)
            try:
                yield bar
            finally:
                bar.clear()

    def _rich_progress(self, label: str, total: int) -> Iterator[Progress]:
        from rich.console import Console as RichConsole
        from rich.progress import Progress as RichProgress

        with RichProgress(console=RichConsole(file=self.stderr), transient=True) as display:
            task = display.add_task(clean(label).replace("[", "\\["), total=total)
            yield _Rich(lambda n: display.advance(task, n))


class _NoProgress:
    def advance(self, n: int = 1) -> None:
        """Do nothing, since progress is shown only on terminals."""


class _Rich:
    def __init__(self, advance: Any) -> None:
        self._advance = advance

    def advance(self, n: int = 1) -> None:
        self._advance(n)


class _Bar:
    """A line on a terminal that is redrawn in place."""

    def __init__(self, stream: TextIO, label: str, total: int) -> None:
        self._stream, self._label, self._total = stream, clean(label), total
        self._done, self._drawn = 0, 0.0
        self.advance(0)

    def advance(self, n: int = 1) -> None:
        self._done += n
        now = time.monotonic()
        if now - self._drawn >= _REDRAW_SECONDS:
            self._drawn = now
            share = self._done / self._total if self._total else 1.0
            self._stream.write(f"\r\x1b[K{self._label} {self._done}/{self._total} ({share:.0%})")
            self._stream.flush()

    def clear(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()


def _have_rich() -> bool:
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


def _paint(text: str, name: str) -> str:
    return f"\x1b[{_STYLES[name]}m{text}\x1b[0m"


def _cell(value: Any) -> str:
    """Return the text of a table cell."""
    return value if isinstance(value, Styled) else clean(value)


def _width(text: str) -> int:
    return len(_COLOR_CODES.sub("", text))


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _with_text(value: Any) -> Any:
    """Return a value in which NaN and infinities, which JSON cannot represent, are replaced by strings."""
    if isinstance(value, dict):
        return {name: _with_text(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text(item) for item in value]
    return json.dumps(value) if isinstance(value, float) and not math.isfinite(value) else value

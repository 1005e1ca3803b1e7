"""The entry point: find the module of a command, run it, and turn errors into one line and an exit code.

Rules
- A command is a module of this package with `HELP` (one line), `EXAMPLE`, `add_arguments(parser)` and
  `run(args, console)`, which returns the exit code.
- Showing help or a usage error imports neither numpy nor the library. Only the module of the given command is imported.
- Exit codes: 0 success, 1 a problem was found, 2 wrong usage, 3 not found, 4 an extension is not supported,
  130 (SIGINT) after Ctrl-C, 141 (SIGPIPE) if the reader closes the pipe.
- Every error is one line on stderr. Only `python -X dev -m zarrlite ...` shows a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from zarrlite.errors import (
    ArgumentError,
    DependencyError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    SelectionError,
    ZarrliteError,
)
from zarrlite.tools.cli.console import Console, clean

SUCCESS, PROBLEM, USAGE, NOT_FOUND, UNSUPPORTED = range(5)
INTERRUPTED, PIPE_CLOSED = 130, 141

COMMANDS = {  # module in zarrlite.tools.cli -> its HELP, repeated here so that showing help imports no module
    "info": "describe an array or a group",
    "tree": "show a hierarchy, one line for each node",
    "ls": "list the nodes of a group, or the stored objects of an array",
    "header": "show the metadata of a hierarchy with all attributes",
    "dump": "print values as text, CSV, JSON or .npy",
    "validate": "report every fault in a document, a node or a hierarchy",
    "fsck": "check every stored object",
    "explain": "explain a stored object or a chunk byte by byte",
    "diff": "compare two arrays or hierarchies",
    "copy": "copy an array or a hierarchy without re-encoding it",
    "reencode": "copy an array with different chunks, shards, codecs or keys",
    "consolidate": "copy the metadata of all nodes below a group into its document",
    "v2": "write the metadata that makes a Zarr v2 hierarchy readable as Zarr v3",
    "n5": "write the metadata that makes an N5 container readable as Zarr",
    "tiff": "write the metadata that makes a folder of TIFF files readable as Zarr",
    "serve": "serve an array or a hierarchy over HTTP",
    "conformance": "test an implementation of Zarr v3",
    "completion": "print the script that completes the command in a shell",
    "demo": "show a short tour",
}


class Parser(argparse.ArgumentParser):
    """An argument parser that reports wrong usage in one line, with a pointer to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {clean(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:  # raised before the command began or after it ended
        if sys.flags.dev_mode:
            raise
        Console().error("zarrlite: interrupted")
        return INTERRUPTED
    except SystemExit as stop:  # raised by argparse
        return stop.code if isinstance(stop.code, int) else SUCCESS
    except OSError as error:  # raised by a write to standard output
        with contextlib.suppress(OSError, ValueError):  # discard the rest of the buffer
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return PIPE_CLOSED
        Console().error(f"zarrlite: standard output cannot be written: {error.strerror}")
        return PROBLEM


def _prepare_streams() -> None:
    """Replace closed standard streams, and make the others accept any text."""
    if sys.stdout is None or sys.stderr is None:  # closed by the parent process
        devnull = open(os.devnull, "w")  # noqa: SIM115
        sys.stdout, sys.stderr = sys.stdout or devnull, sys.stderr or devnull
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # file names may contain text that cannot be encoded
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in COMMANDS:
        return _run_without_command(arguments)
    name = arguments[0]
    console = Console()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        if not sys.flags.dev_mode:  # raised if an interrupt left a directory listing open
            warnings.simplefilter("ignore", ResourceWarning)
        warnings.showwarning = lambda message, *_: console.warn(str(message))
        try:
            module = importlib.import_module(f"zarrlite.tools.cli.{name}")
            args = _parse(command_parser(name), arguments[1:])
            console.as_json = args.json is True
            code: int = module.run(args, console)
            return code
        except (KeyboardInterrupt, Exception) as error:
            if isinstance(error, BrokenPipeError) or sys.flags.dev_mode:
                raise
            console.error(f"zarrlite {name}: {describe(error)}")
            return exit_code(error)


def command_parser(name: str) -> Parser:
    """Return the parser of a command."""
    module: Any = importlib.import_module(f"zarrlite.tools.cli.{name}")
    parser = Parser(
        prog=f"zarrlite {name}",
        description=_wrapped("", f"{module.HELP[0].upper()}{module.HELP[1:]}."),
        epilog=f"example:\n  {module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    module.add_arguments(parser)
    return parser


def _parse(parser: Parser, arguments: list[str]) -> argparse.Namespace:
    """Parse arguments; options may appear anywhere among them."""
    try:
        return parser.parse_intermixed_args(arguments)
    except TypeError:  # a command with subcommands
        return parser.parse_args(arguments)
    except AttributeError as error:
        # argparse restores saved values at the end, which raises AttributeError if Ctrl-C came before they were saved
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


def _run_without_command(arguments: list[str]) -> int:
    """Handle `--help`, `--version`, and a missing or unknown command."""
    width = max(map(len, COMMANDS))
    parser = Parser(
        prog="zarrlite",
        usage="zarrlite COMMAND ...",
        description=_wrapped("", "Inspect, check, compare, copy and convert Zarr v3 arrays and hierarchies."),
        epilog="commands:\n"
        + "\n".join(_wrapped(f"  {name:<{width}}  ", line) for name, line in COMMANDS.items())
        + "\n\nexample:\n  zarrlite info image.zarr\n  zarrlite COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    args, rest = parser.parse_known_args(arguments)
    if args.version:
        print(f"zarrlite {importlib.import_module('zarrlite').__version__}")
        return SUCCESS
    if not rest:
        return parser.error("a command is required")
    import difflib

    similar = difflib.get_close_matches(rest[0], COMMANDS, 1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    return parser.error(f"unknown command {rest[0]!r}{hint}")


def _wrapped(label: str, text: str) -> str:
    """Return a label and the text after it, wrapped between words to the width of the terminal."""
    width = max(shutil.get_terminal_size().columns, len(label) + 20)
    return textwrap.fill(text, width, initial_indent=label, subsequent_indent=" " * len(label), break_long_words=False)


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, DependencyError) or (
        isinstance(error, MetadataError) and all(fault.kind == "unknown-extension" for fault in error.problems)
    ):
        return UNSUPPORTED
    if isinstance(error, NodeNotFoundError):
        return NOT_FOUND
    if isinstance(error, (ArgumentError, SelectionError, NodeExistsError)):
        return USAGE
    return PROBLEM


def describe(error: BaseException) -> str:
    """Describe an error in one line. In messages, `overwrite=True` becomes the option `--overwrite`."""
    if isinstance(error, KeyboardInterrupt):
        return "; ".join(["interrupted", *map(str, error.args)])
    if isinstance(error, MemoryError):
        return "out of memory; select less"
    if isinstance(error, (ZarrliteError, OSError)):
        return str(error).replace("overwrite=True", "--overwrite")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    position = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return f"internal error, please report it: {type(error).__name__} at {position}: {error}"

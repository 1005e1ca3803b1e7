"""The command: finds the module that was asked for, runs it, and turns what went wrong into one line and an exit code.

Rules
- Help and wrong usage load neither numpy nor the library; of the commands only the one that was given is loaded.
- Exit codes: 0 fine, 1 a problem was found, 2 usage, 3 not found, 4 an extension that is not supported; as everywhere
  130 after Ctrl-C, and 141 if nobody reads on.
- Every error is one line on stderr. A traceback is shown by `python -X dev -m zarrlite ...` only.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
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

FINE, PROBLEM, USAGE, NOT_FOUND, UNSUPPORTED = range(5)
INTERRUPTED, PIPE_CLOSED = 130, 141

COMMANDS = {  # each is the module of that name in zarrlite.tools.cli
    "info": "what an array or a group is",
    "tree": "a hierarchy, one line for each node",
    "ls": "the nodes of a group, or the stored objects of an array",
    "dump": "values as text, CSV or .npy",
    "validate": "every fault of a document, a node or a hierarchy",
    "fsck": "check every stored object",
    "explain": "one stored object or chunk, byte by byte",
    "diff": "what differs between two arrays or hierarchies",
    "copy": "copy an array or a hierarchy as it is stored",
    "reencode": "copy an array with other chunks, shards, codecs or keys",
    "n5": "make the metadata that reads an N5 container",
    "tiff": "make the metadata that reads a folder of TIFF files",
    "conformance": "test an implementation of Zarr v3",
    "demo": "a short tour",
}


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line that says where the help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {clean(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None or sys.stderr is None:  # closed by who started it
        nowhere = open(os.devnull, "w")  # noqa: SIM115
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # names of files need not be text that can be written
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:  # before or after the command itself
        if sys.flags.dev_mode:
            raise
        Console().error("zarrlite: interrupted")
        return INTERRUPTED
    except SystemExit as stop:  # of argparse
        return stop.code if isinstance(stop.code, int) else FINE
    except OSError as error:  # of standard output
        with contextlib.suppress(OSError, ValueError):  # what is still in the buffer goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return PIPE_CLOSED
        Console().error(f"zarrlite: standard output cannot be written: {error.strerror}")
        return PROBLEM


def _run(given: list[str]) -> int:
    if not given or given[0] not in COMMANDS:
        return _without_command(given)
    name = given[0]
    console = Console()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        if not sys.flags.dev_mode:  # an interrupt may leave a directory listing open
            warnings.simplefilter("ignore", ResourceWarning)
        warnings.showwarning = lambda message, *_: console.warn(str(message))
        try:
            module = importlib.import_module(f"zarrlite.tools.cli.{name}")
            args = _parse(_parser(name, module), given[1:])
            console.as_json = args.json is True
            code: int = module.run(args, console)
            return code
        except (KeyboardInterrupt, Exception) as error:
            if isinstance(error, BrokenPipeError) or sys.flags.dev_mode:
                raise
            console.error(f"zarrlite {name}: {describe(error)}")
            return exit_code(error)


def _parser(name: str, module: Any) -> Parser:
    parser = Parser(
        prog=f"zarrlite {name}",
        description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
        epilog=f"example:\n  {module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    module.add_arguments(parser)
    return parser


def _parse(parser: Parser, given: list[str]) -> argparse.Namespace:
    """The arguments, with options in any place among them."""
    try:
        return parser.parse_intermixed_args(given)
    except TypeError:  # a command that has commands of its own
        return parser.parse_args(given)


def _without_command(given: list[str]) -> int:
    """`--help`, `--version`, or a mistake."""
    width = max(map(len, COMMANDS))
    parser = Parser(
        prog="zarrlite",
        usage="zarrlite COMMAND ...",
        description="Every question about Zarr v3 arrays.",
        epilog="commands:\n"
        + "\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items())
        + "\n\nexample:\n  zarrlite info image.zarr\n  zarrlite COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    args, rest = parser.parse_known_args(given)
    if args.version:
        print(f"zarrlite {importlib.import_module('zarrlite').__version__}")
        return FINE
    if not rest:
        return parser.error("a command is needed")
    import difflib

    near = difflib.get_close_matches(rest[0], COMMANDS, 1)
    return parser.error(f"there is no command {rest[0]!r}" + (f"; {near[0]!r} is one" if near else ""))


def exit_code(error: BaseException) -> int:
    """The exit code that an error stands for."""
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
    """An error in one line."""
    if isinstance(error, KeyboardInterrupt):
        return "; ".join(["interrupted", *map(str, error.args)])
    if isinstance(error, MemoryError):
        return "needs more memory than there is; select less"
    if isinstance(error, (ZarrliteError, OSError)):
        return str(error).replace("overwrite=True", "--overwrite")
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return f"a defect of zarrlite, please report it: {type(error).__name__} at {where}: {error}"

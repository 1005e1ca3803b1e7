"""The command's entry point: help, usage errors, exit codes and imports."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import zarrlite
from zarrlite.errors import (
    ArgumentError,
    ChecksumError,
    DependencyError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    SelectionError,
    StoreError,
    UnknownExtensionError,
)
from zarrlite.tools.cli import main as cli

ROOT = Path(zarrlite.__file__).parents[1]
EXIT_CODES = {
    ArgumentError("x"): 2,
    SelectionError("x"): 2,
    NodeExistsError("x"): 2,
    NodeNotFoundError("x"): 3,
    UnknownExtensionError("x", kind="unknown-extension"): 4,
    MetadataError("x", kind="unknown-extension"): 4,
    DependencyError("x"): 4,
    MetadataError("x", problems=(MetadataError("x"), MetadataError("y", kind="unknown-extension"))): 1,
    MetadataError("x"): 1,
    ChecksumError("x"): 1,
    StoreError("x"): 1,
    MemoryError(): 1,
    ZeroDivisionError(): 1,
    KeyboardInterrupt(): 130,
}


@pytest.mark.parametrize(("error", "code"), EXIT_CODES.items(), ids=lambda x: type(x).__name__)
def test_every_error_has_an_exit_code(error, code):
    assert cli.exit_code(error) == code


def test_an_internal_error_is_described_in_one_line_with_its_position():
    try:
        raise ZeroDivisionError("one\ntwo")
    except ZeroDivisionError as error:
        text = cli.describe(error)
    assert text.startswith("internal error, please report it: ZeroDivisionError at test_main.py:")


def test_the_help_lists_every_command(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    ran = run("--help")
    assert (ran.code, ran.err) == (0, "")
    for name, line in cli.COMMANDS.items():
        assert f"  {name:<11}  {line}\n" in ran.out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_json_output_and_help_with_an_example(name, run):
    module = importlib.import_module(f"zarrlite.tools.cli.{name}")
    ran = run(name, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert cli.COMMANDS[name] == module.HELP
    assert module.EXAMPLE.startswith(f"zarrlite {name}")
    assert f"example:\n  {module.EXAMPLE}" in ran.out
    assert "--json" in ran.out


def test_ctrl_c_outside_of_a_command_prints_one_line(run, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    assert run("info", "a.zarr") == (130, "", "zarrlite: interrupted\n")


def test_warnings_are_shown_except_those_about_unclosed_resources(run, monkeypatch):
    def warn(args, console):
        warnings.warn("unclosed", ResourceWarning, stacklevel=1)
        warnings.warn("careful", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(importlib.import_module("zarrlite.tools.cli.info"), "run", warn)
    assert run("info", "a.zarr") == (0, "", "zarrlite: warning: careful\n")


WRONG_USAGE = {
    (): "zarrlite: a command is required (see zarrlite --help)\n",
    ("infoo",): "zarrlite: unknown command 'infoo'; did you mean 'info'? (see zarrlite --help)\n",
    ("xyzzy",): "zarrlite: unknown command 'xyzzy' (see zarrlite --help)\n",
    ("info",): "zarrlite info: the following arguments are required: location (see zarrlite info --help)\n",
    ("info", "a", "--nope"): "zarrlite info: unrecognized arguments: --nope (see zarrlite info --help)\n",
    ("info", ""): "zarrlite info: '' is not the path of a directory\n",
    ("info", "nothing://x/y"): (
        "zarrlite info: store must be a path or a URL that fsspec knows, not 'nothing://x/y':"
        " Protocol not known: nothing\n"
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG_USAGE.items(), ids=map(" ".join, WRONG_USAGE))
def test_wrong_usage_prints_one_line_and_makes_the_exit_code_2(arguments, message, run):
    assert run(*arguments) == (2, "", message)


def test_the_version_of_the_command_is_the_version_of_the_library(run):
    assert run("--version") == (0, f"zarrlite {zarrlite.__version__}\n", "")


PRINT_IMPORTED_MODULES = (
    "import sys; from zarrlite.tools.cli.main import main; main({!r}); "
    "import json; print(json.dumps(sorted(sys.modules)))"
)


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], {"numpy", "zarrlite.nodes.array", "rich", "zarrlite.tools.cli.info"}),
        (["nope"], {"numpy", "zarrlite.nodes.array", "rich", "zarrlite.tools.cli.info"}),
        (
            ["info", "nope"],
            {"rich", "zarrlite.tools.cli.diff", "zarrlite.tools.cli.dump", "subprocess", "jsonschema", "csv"},
        ),
    ],
    ids=["help", "unknown command", "info"],
)
def test_only_the_modules_that_a_command_needs_are_imported(arguments, absent):
    done = subprocess.run(
        [sys.executable, "-c", PRINT_IMPORTED_MODULES.format(arguments)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert not absent & imported
    assert "zarrlite.tools.cli.console" in imported


def test_nan_in_attributes_is_text_in_json(hierarchy, run):
    path = Path("a.zarr/zarr.json")
    path.write_text(path.read_text().replace('"me"', "[NaN, -Infinity]"))
    rows = run("info", "a.zarr", "--json").json
    assert '["NaN", "-Infinity"]' in json.dumps(rows)
    assert run("tree", "a.zarr").code == 0

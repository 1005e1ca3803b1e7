"""The types that users see: mypy --strict accepts correct code and finds the mistakes in incorrect code."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from required import lacking

import zarrlite

PACKAGE = Path(zarrlite.__file__).parent
FOLDER = Path(__file__).parent / "user_code"
GOOD, BAD = FOLDER / "good_code.py", FOLDER / "bad_code.py"


@pytest.fixture(scope="module")
def errors() -> dict[str, list[tuple[int, str]]]:
    """Run mypy on both files; return the line and the code of every error, keyed by file name."""
    if importlib.util.find_spec("mypy") is None:
        lacking("mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--config-file=", f"--cache-dir={PACKAGE.parent / '.mypy_cache'}", GOOD.name, BAD.name]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, env=environment)
    assert not done.stderr
    found: dict[str, list[tuple[int, str]]] = {GOOD.name: [], BAD.name: []}
    for file, line, code in re.findall(r"^(\w+\.py):(\d+): error: .* \[([a-z-]+)\]$", done.stdout, re.MULTILINE):
        found[file].append((int(line), code))
    assert sum(map(len, found.values())) == done.stdout.count(": error: "), done.stdout
    return found


def test_the_package_declares_that_it_has_types() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_mypy_accepts_correct_code(errors: dict[str, list[tuple[int, str]]]) -> None:
    assert errors[GOOD.name] == []


def test_correct_code_runs(tmp_path: Path) -> None:
    namespace: dict[str, object] = {"__name__": "good_code"}
    exec(compile(GOOD.read_text(encoding="utf-8"), GOOD, "exec", dont_inherit=True), namespace)
    namespace["open_everything"](tmp_path / "a.zarr")  # type: ignore[operator]
    assert namespace["handle_errors"](tmp_path / "a.zarr" / "numbers") == zarrlite.__version__  # type: ignore[operator]
    assert namespace["use_submodules"]()  # type: ignore[operator]
    assert namespace["use_decorators"]()  # type: ignore[operator]
    assert namespace["use_names_of_zarr_python"]() == ["C", None, "C", "array", "int16"]  # type: ignore[operator]


def test_mypy_finds_every_mistake(errors: dict[str, list[tuple[int, str]]]) -> None:
    lines = BAD.read_text(encoding="utf-8").splitlines()
    expected = [(i, line.rpartition("  # ")[2]) for i, line in enumerate(lines, 1) if "  # " in line]
    assert len(expected) > 40
    assert sorted({*errors[BAD.name]}) == expected

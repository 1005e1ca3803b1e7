"""The page about explain and fsck: its examples print the output shown, and its pictures are up to date."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import zarrlite

DOCS = Path(zarrlite.__file__).parents[1] / "docs"
PAGE = DOCS / "explain-and-fsck.md"


def test_every_example_prints_the_output_shown_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    count = 0
    for language, content in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(content, PAGE.name, "exec", dont_inherit=True), namespace)
        for example in content.split("$ zarrlite ")[1:]:
            command, _, expected = example.partition("\n")
            ran = run(*shlex.split(command))
            assert expected in ("", ran.out), command
            count += 1
    assert count == 4
    for name in ("explain.svg", "array.svg"):
        assert (DOCS / "pictures" / name).read_text("utf-8") == (tmp_path / name).read_text("utf-8"), name

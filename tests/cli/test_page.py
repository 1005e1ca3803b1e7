"""The page about the command: every example prints the output shown below it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import zarrlite

PAGE = Path(zarrlite.__file__).parents[1] / "docs" / "cli.md"


def comparable(text: str) -> str:
    """Replace numbers that depend on the version of a compressor."""
    return re.sub(r" +", " ", re.sub(r"\d{4,}( \(.*?\))?", "N", text)).rstrip("\n")


def test_every_example_prints_the_output_shown_below_it(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    count = 0
    for language, content in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(content, PAGE.name, "exec", dont_inherit=True), namespace)
            continue
        for example in content.split("$ zarrlite ")[1:]:
            command, _, expected = example.partition("\n")
            ran = run(*shlex.split(command))
            output = (ran.out + ran.err).replace(str(tmp_path), "/data")
            assert comparable(output) == comparable(expected), command
            count += 1
    assert count >= 20

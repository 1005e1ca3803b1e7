"""The pages about the command: their examples print the output shown, and their pictures are up to date."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import zarrlite

DOCS = Path(zarrlite.__file__).parents[1] / "docs"


def run_examples(page: Path, run: Any, folder: Path) -> int:
    """Run the Python blocks and the commands of a page, compare the output, and return the number of commands.

    Commands whose output the shell redirects to a file are skipped. Pages show the current directory as `/data`.
    """
    namespace: dict[str, object] = {}
    count = 0
    for language, content in re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(content, page.name, "exec", dont_inherit=True), namespace)
        for example in content.split("$ zarrlite ")[1:]:
            command, _, expected = example.partition("\n")
            if ">" not in command:
                ran = run(*shlex.split(command))
                assert expected in ("", (ran.out + ran.err).replace(str(folder), "/data")), command
                count += 1
    return count


@pytest.mark.parametrize(("name", "count"), [("explain-and-fsck.md", 4), ("cli.md", 27)])
def test_every_example_prints_the_output_shown_below_it(
    name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_examples(DOCS / name, run, tmp_path) == count
    for picture in tmp_path.glob("*.svg"):
        assert (DOCS / "pictures" / picture.name).read_text("utf-8") == picture.read_text("utf-8"), picture.name

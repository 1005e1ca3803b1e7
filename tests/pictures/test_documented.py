"""The pictures on the pages about extensions show the bytes of the array in the first example of each page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import zarrlite
from zarrlite.layout import explain
from zarrlite.tools.pictures import explained_svg

DOCS = Path(zarrlite.__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", ["concat-parts", "pad", "sharding", "suffix"])
def test_the_picture_of_a_page_shows_the_bytes_of_its_first_example(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{name}.md").read_text("utf-8")
    assert f"](pictures/{name}.svg)" in text
    namespace: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0], namespace)
    array = namespace["a"]
    # on the page about sharding, the picture shows a whole shard; on other pages, all objects of one chunk
    objects = explain(array, "c/0/0") if name == "sharding" else explain(array, chunk=(0, 0))
    assert (DOCS / f"pictures/{name}.svg").read_text("utf-8") == explained_svg(objects)

"""Pictures are well-formed, bounded in size and harmless, and are drawn without reading the store."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layout.arrays import ARRAYS, make

import zarrlite
from zarrlite import Array, Group, Store
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.layout import explain
from zarrlite.metadata.documents import GroupMetadata
from zarrlite.tools.cli.main import main
from zarrlite.tools.pictures import explained_html, explained_svg

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\"'&\0\x1b\ud800\u202e"
STORABLE = EVIL[:-4]  # without the characters that documents cannot contain
KNOWN = {"svg", "g", "rect", "line", "path", "polygon", "text", "title", "div", "table", "caption", "tbody", "tr", "th"}
KNOWN |= {"td", "details", "summary", "pre"}
SVG = "{http://www.w3.org/2000/svg}"


class Closed(Store):
    """A store that fails on every access."""

    read_only = True

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        raise AssertionError(f"{key} was read")

    def list(self) -> Any:
        raise AssertionError("the store was listed")

    size = get  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise AssertionError("the store was shown")


def parse(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(markup)


def harmless(root: ElementTree.Element) -> bool:
    """Whether all elements belong to pictures and tables, and no attribute runs code or loads anything."""
    names = {element.tag.replace(SVG, "") for element in root.iter()}
    attributes = {name for element in root.iter() for name in element.attrib}
    return names <= KNOWN and not any(name.startswith("on") or "href" in name for name in attributes)


def words(root: ElementTree.Element) -> str:
    return "\n".join(text for element in root.iter() for text in (element.text, element.tail) if text)


def array(shape: Any = (8, 8), path: str = "", **keywords: Any) -> Array:
    """Create an array in a store that fails on every access."""
    created = zarrlite.create_array({}, shape=shape, **{"dtype": "uint16", **keywords})
    return Array(Closed(), path, created.metadata)


@pytest.mark.parametrize("kind", ARRAYS)
def test_pictures_of_arrays_are_drawn_from_metadata_alone(kind: str) -> None:
    node = Array(Closed(), "", ARRAYS[kind]().metadata)
    for markup in (node.to_svg(), node._repr_html_()):
        root = parse(markup)
        assert harmless(root)
        assert "one stored" in words(root)
    assert node.to_svg().startswith("<svg ")


SHAPES: dict[str, dict[str, Any]] = {
    "no dimensions": {"shape": ()},
    "no elements": {"shape": (0, 5)},
    "no elements at all": {"shape": (0,)},
    "one dimension": {"shape": (7,), "chunks": (3,)},
    "chunks larger than the array": {"shape": (3, 4), "chunks": (100, 100)},
    "a line": {"shape": (10**9,), "chunks": (1,)},
    "a huge plane": {"shape": (2**40, 2**40), "chunks": (2**10, 2**12), "shards": (2**20, 2**20)},
    "a thin plane": {"shape": (1, 2**40), "chunks": (1, 2**12)},
    "a cuboid": {"shape": (5, 6, 7), "chunks": (2, 2, 2), "shards": (4, 2, 4)},
    "many dimensions": {"shape": (2,) * 30, "chunks": (1,) * 30},
    "a huge shard": {"shape": (2**24,), "chunks": (1,), "shards": (2**24,)},
}


@pytest.mark.parametrize("keywords", SHAPES.values(), ids=SHAPES)
def test_pictures_of_every_shape_are_bounded(keywords: dict[str, Any]) -> None:
    node = array(**keywords)
    for markup in (node.to_svg(), node._repr_html_()):
        assert len(list(parse(markup).iter())) < 400
        assert len(markup) < 60_000
        assert "nan" not in markup
        assert "inf" not in markup


def test_the_grid_is_labelled_with_its_shards_and_chunks() -> None:
    node = array((1000, 750), chunks=(100, 100), shards=(500, 500), dimension_names=["y", None])
    text = words(parse(node.to_svg()))
    assert "y 1000: 2 shards of 500, chunks of 100" in text
    assert "750: 2 shards of 500, chunks of 100" in text
    assert "shard c/0/0" in text
    node = array((9, 3, 4, 5), chunks=(2, 3, 4, 5), dimension_names=["t", "z", "y", "x"])
    text = words(parse(node.to_svg()))
    assert [line for line in text.split("\n") if line[:2] in ("t ", "z ", "y ", "x ")] == [
        "x 5: 1 chunk of 5",
        "z 3: 1 chunk of 3 (to the back)",
        "t 9: 5 chunks of 2",
        "y 4: 1 chunk of 4",
    ]


def test_chunks_are_drawn_to_scale_and_beyond_the_edge_of_the_array() -> None:
    root = parse(array((8, 6), chunks=(4, 4), compressors=None).to_svg())
    lines = [line.attrib for line in root.iter(f"{SVG}line")]
    assert [(line["x1"], line["y1"], line["x2"], line["y2"]) for line in lines] == [
        ("115", "0", "115", "230"),
        ("0", "115", "230", "115"),
    ]
    widths = [(rect.attrib["width"], rect.attrib["height"]) for rect in root.iter(f"{SVG}rect")]
    assert widths[:4] == [("230", "230"), ("172.5", "230"), ("115", "115"), ("172.5", "230")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("raw", ["one stored chunk, c/0/0: 32 B", "4 × 4 uint16", "32 B"]),
        ("big endian and transposed", ["one stored chunk, c/0/0: 32 B (after transpose)", "4 × 4 uint16"]),
        (
            "gzip and crc32c",
            ["one stored chunk, c/0/0: the size varies", "gzip frame", "compressed from 32 B", "crc32c"],
        ),
        ("shard", ["one stored shard, c/0/0: the size varies", "3 more", "index · 68 B", "4 entries", "4 × 16 B"]),
        ("parts", ["concat-parts: the same bytes in 2 objects", "c/0/0.crc", "the rest"]),
        ("draft shards", ["sharding: 6 chunks in one object, c/0/0", "5 more", "6 × 16 B"]),
        ("parts in draft shards", ["sharding: 4 parts in one object, c/0/0", "32 B each"]),
        ("n5", ["block header", "12 B", "gzip frame"]),
        ("two paddings", ["offset", "16 B", "pad", "5 B"]),
    ],
)  # fmt: skip
def test_the_bytes_of_a_chunk_are_drawn_with_their_sizes(kind: str, expected: list[str]) -> None:
    text = words(parse(make(kind).to_svg())).split("\n")
    assert [line for line in expected if line not in text] == []


def evil_group() -> Group:
    documents = {
        STORABLE.replace("/", ""): {"node_type": "array", "shape": [EVIL], "data_type": {"name": EVIL}},
        "b": {"node_type": "array", "shape": EVIL, "data_type": [EVIL]},
        "c": {},
    }
    return Group(Closed(), STORABLE, GroupMetadata({EVIL: EVIL}, documents))


def evil_array() -> Array:
    metadata = zarrlite.create_array(
        {},
        shape=(2, 2),
        dtype="string",
        fill_value=STORABLE,
        dimension_names=[STORABLE, STORABLE],
        chunk_key_encoding={"name": "suffix", "configuration": {"suffix": "<script>"}},
    ).metadata
    return Array(Closed(), STORABLE, metadata.with_attributes({EVIL: EVIL}))


@pytest.mark.parametrize("node", [evil_array(), evil_group()], ids=["array", "group"])
def test_markup_in_names_and_attributes_is_shown_as_text(node: Any) -> None:
    for markup in (node.to_svg(), node._repr_html_()):
        root = parse(markup)
        assert harmless(root)
        assert "document.title" in words(root)
        assert "<script" not in markup
        assert "<img" not in markup


def test_explained_objects_are_drawn() -> None:
    node = make("shard in parts")
    root = parse(explained_svg(explain(node, chunk=(0, 0))))
    text = words(root)
    for expected in ("c/0/0.shard.head: 8 bytes", "inner chunk (0, 1) · 21 B", "entry (1, 1)", "29 + 21", "checksum"):
        assert expected in text
    assert harmless(root)
    page = explained_html(explain(node, chunk=(0, 0)), EVIL)
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page


def test_damaged_bytes_are_drawn_in_red() -> None:
    node = make("gzip and crc32c")
    node.store.set("c/0/0", b"x" + bytes(node.store.get("c/0/0"))[1:])
    root = parse(explained_svg(explain(node, "c/0/0")))
    assert [r.attrib["fill"] for r in root.iter(f"{SVG}rect")] == ["#e6f1fb", "#ffc9c5", "#ffc9c5"]
    assert "the stored checksum is" in words(root)


def test_a_picture_of_thousands_of_chunks_is_small() -> None:
    node = zarrlite.create_array({}, data=np.arange(1, 5001, dtype="u2"), chunks=(1,), shards=(5000,))
    assert len(explained_svg(explain(node, "c/0", most=10**6))) < 20_000


@pytest.mark.parametrize("consolidated", [False, True])
def test_a_group_shows_the_members_in_its_consolidated_metadata(consolidated: bool) -> None:
    store = zarrlite.MemoryStore()
    root = zarrlite.create_group(store, attributes={"title": "x"})
    for i in range(60):
        root.create_array(f"a/{i:02}", shape=(3, 4), dtype="int8")
    if consolidated:
        root = zarrlite.consolidate_metadata(store)
    node = Group(Closed(), "", root.metadata)
    svg, page = words(parse(node.to_svg())), words(parse(node._repr_html_()))
    if consolidated:
        assert "3 × 4  int8" in svg
        assert "and 21 more" in svg
        assert "61, as copied into this group's document" in page
    else:
        assert "call .tree() to list the members" in svg
        assert "call .tree() to list them" in page


def test_importing_the_library_does_not_import_the_modules_for_pictures() -> None:
    code = "import sys, zarrlite; print({'zarrlite.tools.pictures', 'zarrlite.layout'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_browser_runs_no_code_from_names_and_attributes(tmp_path: Path, dump_dom: Callable[[Path], str]) -> None:
    body = evil_array()._repr_html_() + evil_group()._repr_html_() + evil_group().to_svg()
    page = tmp_path / "page.html"
    page.write_text(f'<meta charset="utf-8"><title>safe</title><body>{body}</body>', encoding="utf-8")
    shown = dump_dom(page)
    assert "<title>safe</title>" in shown
    assert shown.count("<svg") == 4


def size(markup: str) -> tuple[float, float]:
    root = parse(markup)
    return float(root.attrib["width"]), float(root.attrib["height"])


def test_the_picture_of_a_large_shard_fits_into_a_page_and_into_its_frame() -> None:
    node = zarrlite.create_array({}, data=np.arange(4096, dtype="u2"), chunks=(8,), shards=(4096,))
    markup = explained_svg(explain(node, "c/0"))
    width, height = size(markup)
    assert width < 900
    frame, *boxes = [rect.attrib for rect in parse(markup).iter(f"{SVG}rect")]
    assert len(boxes) > 10
    for inner in boxes:
        for start, length in (("x", "width"), ("y", "height")):
            assert float(inner[start]) >= float(frame[start])
            assert float(inner[start]) + float(inner[length]) <= float(frame[start]) + float(frame[length]) + 0.1
    assert float(frame["height"]) < height


def test_a_page_has_a_table_with_the_lines_that_the_command_prints(tmp_path: Path) -> None:
    zarrlite.create_array(tmp_path / "a.zarr", data=np.arange(8, dtype="u2"), compressors=["crc32c"], filters=None)
    assert main(["explain", str(tmp_path / "a.zarr"), "c/0", "--html", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<th>start</th><th>size</th><th>what</th>" in text
    assert '<td class="number">16</td><td class="number">4</td><td class="text">  checksum</td>' in text


def test_a_long_table_of_a_page_is_cut_off_and_counted() -> None:
    objects = explain(make("raw"), "c/0/0")
    page = explained_html(objects, "x", ["n"], [[[i] for i in range(1200)]])
    assert '<td class="number">999</td>' in page
    assert '<td class="number">1000</td>' not in page
    assert "<p>200 more lines</p>" in page


def test_the_card_of_an_array_in_a_notebook_is_low() -> None:
    for keywords in ({}, {"chunks": (100, 100), "shards": (500, 500)}):
        grid, strip = parse(array((1000, 1000), **keywords)._repr_html_()).iter(f"{SVG}svg")
        assert float(grid.attrib["height"]) < 190
        assert float(strip.attrib["height"]) < 100


def test_no_size_is_shown_for_compressed_data_whose_size_before_is_not_known() -> None:
    text = words(parse(array(compressors=["zstd", "gzip"]).to_svg()))
    assert "size varies" in text
    assert "of varies" not in text

"""`zarrlite explain`: text, JSON and pictures that explain every byte."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import n5
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

SHARD = """\
c/0/0  50 bytes
start  size  what                  by                detail            bytes
    0    50  chunk (0, 0)                            holds [0:2, 0:2]
    0     8    leading padding     pad               as configured     3c 48 45 41 44 45 52 3e  <HEADER>
    8     6    inner chunk (0, 0)  sharding_indexed
    8     2      elements          bytes             (1, 2) uint8      01 02                    ..
   10     4      checksum          crc32c            03f89f52, right   52 9f f8 03              R...
   14    36    index of 2 chunks   sharding_indexed  1 absent
   14    32      entries           sharding_indexed
   14    16        entry (0, 0)    sharding_indexed  -> 6 bytes at 0   00 00 00 00 00 00 00 00  ........
   30    16        entry (1, 0)    sharding_indexed  absent            ff ff ff ff ff ff ff ff  ........
   46     4      checksum          crc32c            b45af467, right   67 f4 5a b4              g.Z.
"""


@pytest.fixture
def shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an object that consists of a header and a shard. Only one of the shard's two inner chunks is stored."""
    monkeypatch.chdir(tmp_path)
    codecs = [ShardingIndexed((1, 2), [Bytes(), Crc32c()]), Pad("start", 8, b"<HEADER>")]
    zarrlite.create_array("a.zarr", data=np.array([[1, 2], [0, 0]], "u1"), chunks=(2, 2), codecs=codecs)
    return tmp_path / "a.zarr/c/0/0"


def test_a_shard_is_explained_line_by_line(shard: Path, process: Any) -> None:
    assert process("explain", "a.zarr", "c/0/0") == (0, SHARD, "")


@pytest.mark.parametrize(
    "arguments", [("a.zarr", "--chunk", "0,0"), ("a.zarr/c/0/0",), ("a.zarr/c/0", "0"), ("a.zarr", "c/0/0")]
)
def test_an_object_is_named_by_key_coordinates_or_path(shard: Path, run: Any, arguments: Any) -> None:
    assert run("explain", *arguments).out == run("explain", "a.zarr", "c/0/0").out


def test_the_key_may_begin_with_the_path_of_the_array(hierarchy: Path, run: Any) -> None:
    expected = run("explain", "a.zarr/raw/image", "c/0/0")
    assert expected.code == 0
    assert "holds [0:4, 0:4]" in expected.out
    assert run("explain", "a.zarr", "raw/image/c/0/0") == expected
    assert run("explain", "a.zarr/raw/image/c/0/0") == expected


def test_damage_is_shown_and_makes_the_exit_code_1(shard: Path, run: Any) -> None:
    data = bytearray(shard.read_bytes())
    data[8] ^= 1
    shard.write_bytes(data)
    ran = run("explain", "a.zarr", "c/0/0")
    assert (ran.code, ran.err) == (1, "")
    (line,) = [line for line in ran.out.split("\n") if "the stored checksum is" in line]
    assert "crc32c            the stored checksum is 03f89f52, but that of the data is 105a0725" in line
    shard.write_bytes(b"")
    ran = run("explain", "a.zarr", "c/0/0")
    assert (ran.code, ran.err) == (1, "")
    assert "has only 0 bytes, but pad alone adds 8" in ran.out


def test_json_output_has_the_tree_of_ranges(shard: Path, run: Any) -> None:
    ran = run("explain", "a.zarr", "c/0/0", "--json")
    assert ran.code == 0
    (stored,) = ran.json
    assert (stored["key"], stored["size"]) == ("c/0/0", 50)
    assert [child["what"] for child in stored["layout"]["children"]] == [
        "leading padding",
        "inner chunk (0, 0)",
        "index of 2 chunks",
    ]


def test_chunks_in_parts_and_in_draft_shards_are_explained(tmp_path: Path, run: Any) -> None:
    zarrlite.create_array(
        tmp_path,
        data=np.arange(1, 5, dtype="u1"),
        chunks=(1,),
        codecs=[Bytes()],
        storage_transformers=[Sharding((4,)), ConcatParts([Part(""), Part(".index", 64)])],
    )
    ran = run("explain", tmp_path, "c/0")
    assert [line for line in ran.out.split("\n") if line.startswith("c/")] == ["c/0  4 bytes", "c/0.index  64 bytes"]
    assert run("explain", tmp_path, "c/2").out == run("explain", tmp_path, "--chunk", "2").out
    assert "    2     1      chunk (2)" in run("explain", tmp_path, "c/2").out


def test_only_the_first_entries_of_a_large_shard_are_shown_without_all(tmp_path: Path, run: Any) -> None:
    data = np.arange(1, 1001, dtype="u2")
    zarrlite.create_array(tmp_path, data=data, chunks=(1,), shards=(1000,), compressors=None)
    ran = run("explain", tmp_path, "c/0")
    assert len(ran.out.split("\n")) < 70
    assert "984 more" in ran.out
    assert "inner chunk (16) to inner chunk (999)" in ran.out
    assert len(run("explain", tmp_path, "c/0", "--all").out.split("\n")) > 3000


def test_the_decoded_form_of_a_frame_is_shown_below_it(tmp_path: Path, run: Any) -> None:
    codecs = [Transpose((1, 0)), Bytes("big"), Crc32c(), Zstd()]
    zarrlite.create_array(tmp_path, data=np.zeros((2, 2), "u2") + 1, chunks=(2, 2), codecs=codecs)
    lines = [line.rstrip() for line in run("explain", tmp_path, "c/0/0").out.split("\n")[3:-1]]
    assert "-> 12 bytes  " in lines[0]
    assert lines[1:] == [
        "    0    12      = decoded by zstd  zstd",
        "    0     8      =   elements       bytes   (2, 2) uint16 big endian; after transpose",
        "    8     4      =   checksum       crc32c  8b10e093, right",
    ]


def test_n5_blocks_and_chunks_that_share_bytes_are_explained(tmp_path: Path, run: Any) -> None:
    n5.create_array(tmp_path / "n5", shape=(2, 2), dtype="u1", chunks=(2, 2))[...] = 1
    n5.write_documents(tmp_path / "n5")
    out = run("explain", tmp_path / "n5", "0/0").out
    assert "number of dimensions  n5_default  2" in out
    codecs = [ShardingIndexed((1,), [Bytes()], [Bytes()])]
    zarrlite.create_array(tmp_path / "a", data=np.array([1, 2], "u1"), chunks=(2,), codecs=codecs)
    path = tmp_path / "a/c/0"
    path.write_bytes(path.read_bytes()[:18] + bytes(8) + path.read_bytes()[26:])  # both entries point at byte 0
    ran = run("explain", tmp_path / "a", "c/0")
    assert ran.code == 0
    assert "the same bytes as inner chunk (0)" in ran.out


def test_svg_and_html_files_are_written(shard: Path, run: Any, tmp_path: Path) -> None:
    ran = run("explain", "a.zarr", "c/0/0", "--svg", "a.svg", "--html", "a.html")
    assert ran.code == 0
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "inner chunk (0, 0)" in page


def test_a_browser_renders_the_picture(shard: Path, run: Any, tmp_path: Path, dump_dom: Callable[[Path], str]) -> None:
    assert run("explain", "a.zarr", "c/0/0", "--html", "a.html").code == 0
    assert dump_dom(tmp_path / "a.html").count("<rect") >= 8


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("a.zarr",), 2, "pass the key of an object in a.zarr, such as c/0/0, or --chunk"),
        (("a.zarr", "c/9/9"), 3, "/ has nothing stored for 'c/9/9': the grid has (1, 1) chunks"),
        (("a.zarr", "--chunk", "x"), 2, "--chunk must be integers, such as 0,1, not 'x'"),
        (("a.zarr", "--chunk", "1"), 2, "(1) is not a chunk of an array with 2 dimensions"),
        (("b.zarr", "c/0/0"), 3, "b.zarr does not exist"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(shard: Path, run: Any, arguments: Any, code: int, message: str) -> None:
    assert run("explain", *arguments) == (code, "", f"zarrlite explain: {message}\n")


def test_a_group_is_refused(hierarchy: Path, run: Any) -> None:
    ran = run("explain", "a.zarr", "c/0")
    assert (ran.code, ran.err) == (3, "zarrlite explain: a.zarr is a group, not an array\n")

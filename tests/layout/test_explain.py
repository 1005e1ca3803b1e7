"""Explanations of stored objects: ranges cover every byte without overlaps, and damaged ranges have a fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout.arrays import ARRAYS, DATA, make
from transformer_stacks import ENCODINGS, stacks

import zarrlite
from zarrlite import ArgumentError, NodeNotFoundError, register
from zarrlite.codecs import Bytes, BytesBytesCodec, Crc32c, Pad, ShardingIndexed, Zstd
from zarrlite.layout import Range, Stored, explain
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.tools.layout.objects import Stack
from zarrlite.tools.layout.tree import tiles


def lines(stored: Stored) -> list[str]:
    """Return the ranges of an object, one line each; inner ranges are indented."""

    def below(r: Range, indent: str) -> list[str]:
        fault = f" !{r.fault.kind}: {r.fault.message}" if r.fault else ""
        found = [f"{indent}{r.start}-{r.stop} {r.what}{f' ({r.owner})' if r.owner else ''}{fault}"]
        for child in r.children():
            found += below(child, indent + "  ")
        for view in r.views():
            found += [f"{indent}  = {line}" for line in below(view, "")]
        return found

    return below(stored.layout, "")


def change(array: Any, key: str, at: int, new: bytes) -> None:
    data = bytearray(array.store.get(key))
    data[at : at + len(new)] = new
    array.store.set(key, bytes(data))


@pytest.mark.parametrize("kind", ARRAYS)
def test_ranges_tile_every_object_and_healthy_objects_have_no_fault(kind: str) -> None:
    array = ARRAYS[kind]()
    stack = Stack(array)
    for key in array.store.list():
        layout = stack.layout(key)
        assert layout is not None
        assert (layout.start, layout.stop) == (0, array.store.size(key))
        assert tiles(layout)
        assert [r for _, r in layout.walk() if r.fault] == []
        for most in (1, 3, None):
            assert tiles(layout.solid(most))


@pytest.mark.parametrize("kind", ARRAYS)
def test_every_chunk_that_is_stored_is_found_by_its_coordinates(kind: str) -> None:
    array = ARRAYS[kind]()
    for coords in np.ndindex(*array.metadata.chunk_grid.grid_shape(array.shape)):
        if (array.blocks[coords] == array.fill_value).all():
            with pytest.raises(NodeNotFoundError, match="has nothing stored for"):
                explain(array, chunk=coords)
            continue
        found = explain(array, chunk=coords)
        assert all(tiles(stored.layout) for stored in found)
        wanted = f"chunk ({', '.join(map(str, coords))})"
        assert all(wanted in " ".join(lines(stored)) for stored in found)
        assert "elements" in " ".join(line for stored in found for line in lines(stored))


@settings(max_examples=60)
@given(stacks, st.sampled_from(ENCODINGS), st.sampled_from(["plain", "shard"]))
def test_the_objects_of_random_stacks_are_tiled(stack: Any, encoding: Any, codec: str) -> None:
    codecs = [Bytes(), Pad("start", 8)] if codec == "plain" else [ShardingIndexed((1, 2), [Bytes(), Crc32c()])]
    array = zarrlite.create_array(
        {}, data=DATA, chunks=(4, 4), codecs=codecs, chunk_key_encoding=encoding, storage_transformers=stack
    )
    layouts = {key: Stack(array).layout(key) for key in array.store.list()}
    for key, layout in layouts.items():
        assert layout is not None
        assert layout.stop == array.store.size(key)
        assert tiles(layout), key
        assert [r for _, r in layout.walk() if r.fault] == []


def test_a_shard_after_a_header_is_explained_to_its_last_byte() -> None:
    codecs = [ShardingIndexed((1, 2), [Bytes(), Crc32c()]), Pad("start", 4, b"HEAD")]
    array = zarrlite.create_array({}, data=np.array([[1, 2], [0, 0]], "u1"), chunks=(2, 2), codecs=codecs)
    (stored,) = explain(array, "c/0/0")
    assert (stored.key, stored.size) == ("c/0/0", 46)
    assert lines(stored) == [
        "0-46 chunk (0, 0)",
        "  0-4 leading padding (pad)",
        "  4-10 inner chunk (0, 0) (sharding_indexed)",
        "    4-6 elements (bytes)",
        "    6-10 checksum (crc32c)",
        "  10-46 index of 2 chunks (sharding_indexed)",
        "    10-42 entries (sharding_indexed)",
        "      10-26 entry (0, 0) (sharding_indexed)",
        "      26-42 entry (1, 0) (sharding_indexed)",
        "    42-46 checksum (crc32c)",
    ]
    by_what = {r.what: r for _, r in stored.layout.walk()}
    assert by_what["entry (0, 0)"].detail == {"offset": 0, "nbytes": 6}
    assert by_what["entry (1, 0)"].detail == {"absent": True}
    assert by_what["chunk (0, 0)"].detail == {"coordinates": [0, 0], "holds": [[0, 2], [0, 2]]}
    assert by_what["elements"].detail == {"shape": [1, 2], "data type": "uint8"}
    assert by_what["leading padding"].detail == {"as configured": True}


def test_explaining_a_chunk_in_parts_shows_all_parts_and_explaining_a_part_shows_one() -> None:
    array = zarrlite.create_array(
        {},
        data=np.zeros((2, 2), "u1") + 1,
        chunks=(2, 2),
        codecs=[Bytes(), Crc32c()],
        storage_transformers=[ConcatParts([Part("", 3), Part(".end")])],
    )
    found = explain(array, "c/0/0")
    assert [stored.key for stored in found] == ["c/0/0", "c/0/0.end"]
    assert lines(found[0]) == [
        "0-3 part 1 of 2 of c/0/0 (concat-parts)",
        "  0-3 chunk (0, 0)",
        "    0-3 elements (bytes)",
    ]
    assert [lines(stored) for stored in explain(array, "c/0/0.end")] == [
        [
            "0-5 part 2 of 2 of c/0/0 (concat-parts)",
            "  0-5 chunk (0, 0)",
            "    0-1 elements (bytes)",
            "    1-5 checksum (crc32c)",
        ]
    ]


def test_explaining_a_chunk_of_a_draft_shard_shows_its_place_in_the_shard() -> None:
    array = zarrlite.create_array(
        {}, data=np.array([1, 2, 3, 4], "u1"), chunks=(1,), codecs=[Bytes()], storage_transformers=[Sharding((4,))]
    )
    (stored,) = explain(array, "c/2")
    assert (stored.key, stored.size) == ("c/0", 4 + 64)
    assert lines(stored) == ["2-3 shard (0) (sharding)", "  2-3 chunk (2)", "    2-3 elements (bytes)"]
    (stored,) = explain(array, "c/0")  # the key of a stored object, so all of it is explained
    assert lines(stored)[0] == "0-68 shard (0) (sharding)"


def test_a_compressed_range_shows_its_decoded_form() -> None:
    array = zarrlite.create_array({}, data=DATA, chunks=(12, 10), codecs=[Bytes(), Crc32c(), Zstd()])
    (stored,) = explain(array, "c/0/0")
    assert lines(stored)[2:] == [
        "    = 0-244 decoded by zstd (zstd)",
        "    =   0-240 elements (bytes)",
        "    =   240-244 checksum (crc32c)",
    ]


def test_the_number_of_ranges_shown_for_a_large_shard_is_limited() -> None:
    array = zarrlite.create_array(
        {}, data=np.arange(1, 1001, dtype="u2"), chunks=(1000,), codecs=[ShardingIndexed((1,), [Bytes()])]
    )
    (stored,) = explain(array, "c/0", most=2)
    assert [line for line in lines(stored) if "elements" not in line] == [
        "0-18004 chunk (0)",
        "  0-2 inner chunk (0) (sharding_indexed)",
        "  2-4 inner chunk (1) (sharding_indexed)",
        "  4-2000 998 more (sharding_indexed)",
        "  2000-18004 index of 1000 chunks (sharding_indexed)",
        "    2000-18000 entries (sharding_indexed)",
        "      2000-2016 entry (0) (sharding_indexed)",
        "      2016-2032 entry (1) (sharding_indexed)",
        "      2032-2048 entry (2) (sharding_indexed)",
        "      2048-2064 entry (3) (sharding_indexed)",
        "      2064-18000 996 more (sharding_indexed)",
        "    18000-18004 checksum (crc32c)",
    ]


INDEX = 6 * 2 + 6  # offset of the index in `damaged_shard`: two inner chunks and a gap precede it
ABSENT = b"\xff" * 8


def damaged_shard() -> Any:
    """Create a shard that contains two inner chunks, six unused bytes, and the index.

    An inner chunk consists of two elements and a checksum.
    """
    array = zarrlite.create_array(
        {},
        data=np.array([1, 2, 3, 4], "u1"),
        chunks=(4,),
        codecs=[ShardingIndexed((2,), [Bytes(), Crc32c()], [Bytes()])],
    )
    data = bytes(array.store.get("c/0"))
    array.store.set("c/0", data[:12] + b"unused" + data[12:])
    return array


@pytest.mark.parametrize(
    ("at", "new", "wanted"),
    [
        (0, b"\x09", "2-6 checksum (crc32c) !checksum: the stored checksum is"),
        (INDEX, b"\x40", "entry (0) (sharding_indexed) !index: index entry 0 ends at 70, but the chunks end at 18"),
        (INDEX, ABSENT, "entry (0) (sharding_indexed) !index: index entry 0 is half empty"),
        (
            INDEX + 8,
            b"\x09",
            "entry (0) (sharding_indexed) !index: index entry 0 has 9 bytes, but a chunk has at most 6",
        ),
        (INDEX + 8, b"\x03", "0-3 too few bytes (crc32c) !size: has only 3 bytes, but crc32c alone adds 4"),
        (INDEX + 8, b"\x05", "0-1 elements (bytes) !size: has 1 bytes, but a chunk of shape (2,) has 2"),
        (INDEX, ABSENT * 2, "0-6 unused (sharding_indexed)"),
    ],
)
def test_damage_is_reported_at_the_damaged_range(at: int, new: bytes, wanted: str) -> None:
    array = damaged_shard()
    assert "12-18 unused (sharding_indexed)" in " ".join(lines(explain(array, "c/0")[0]))
    change(array, "c/0", at, new)
    (stored,) = explain(array, "c/0")
    assert tiles(stored.layout)
    assert wanted in "\n".join(lines(stored))


near = st.integers(0, 40)
entry = st.tuples(near, st.integers(0, 12)) | st.just((2**64 - 1, 2**64 - 1))
wild = st.sampled_from([0, 1, 2**63, 2**64 - 2, 2**64 - 1])


@settings(max_examples=150)
@given(st.lists(entry | st.tuples(wild, wild), min_size=6, max_size=6), st.booleans(), st.integers(0, 40))
def test_ranges_tile_a_shard_with_any_index(entries: Any, start: bool, size: int) -> None:
    """A fault is reported if and only if reading fails."""
    codec = ShardingIndexed((1, 2), [Bytes()], [Bytes()], "start" if start else "end")
    array = zarrlite.create_array({}, shape=(2, 6), dtype="u1", chunks=(2, 6), codecs=[codec])
    index = np.array(entries, "<u8").tobytes()
    body = bytes(range(size))
    array.store.set("c/0/0", index + body if start else body + index)
    layout = Stack(array).layout("c/0/0")
    assert layout is not None
    assert tiles(layout)
    assert tiles(layout.solid(2))
    try:
        array[...]
        fails = False
    except zarrlite.DataError:
        fails = True
    assert fails == any(r.fault for _, r in layout.walk())


def test_chunks_with_the_same_bytes_are_explained_once_and_those_that_overlap_each() -> None:
    array = damaged_shard()
    change(array, "c/0", INDEX + 16, bytes(8))
    (stored,) = explain(array, "c/0")
    assert lines(stored)[:7] == [
        "0-50 chunk (0)",
        "  0-6 inner chunk (0) (sharding_indexed)",
        "    0-2 elements (bytes)",
        "    2-6 checksum (crc32c)",
        "  6-6 inner chunk (1) (sharding_indexed)",
        "  6-18 unused (sharding_indexed)",
        "  18-50 index of 2 chunks (sharding_indexed)",
    ]
    change(array, "c/0", INDEX + 16, b"\3")
    assert "= 3-9 inner chunk (1)" in "\n".join(lines(explain(array, "c/0")[0]))


@pytest.mark.parametrize(("erased", "other"), [("c/0/0.crc", "c/0/0"), ("c/0/0", "c/0/0.crc")])
def test_a_missing_part_is_named(erased: str, other: str) -> None:
    parts = ConcatParts([Part(""), Part(".crc", 4)])
    codecs = [Bytes(), Zstd(), Crc32c()]
    array = zarrlite.create_array({}, data=DATA, chunks=(12, 10), codecs=codecs, storage_transformers=[parts])
    array.store.erase(erased)
    found = {stored.key: stored for stored in explain(array, "c/0/0")}
    assert lines(found[erased]) == ["0-0 missing part (concat-parts) !part: is missing, but other parts exist"]
    assert lines(found[other])[0].endswith(f"!part: the part {erased!r} is missing, but other parts exist")
    assert (found[erased].size, found[other].size) == (None, array.store.size(other))


def test_objects_that_are_not_chunks_are_named() -> None:
    array = make("raw")
    array.store.set("readme", b"hello")
    array.store.set("c/9/9", bytes(32))
    assert lines(explain(array, "zarr.json")[0])[0].endswith(" metadata document")
    assert lines(explain(array, "readme")[0]) == [
        "0-5 object !unknown: 'readme' is not the key of a chunk of this array"
    ]
    assert lines(explain(array, "c/9/9")[0]) == [
        "0-32 chunk (9, 9) !outside: chunk (9, 9) is outside of the grid, which has (3, 3) chunks",
        "  0-32 elements (bytes)",
    ]


def test_explaining_a_missing_or_ambiguous_key_is_an_error() -> None:
    array = make("raw")
    with pytest.raises(NodeNotFoundError, match=r"^/ has nothing stored for 'c/1/1': all of it is the fill value$"):
        explain(array, "c/1/1")
    with pytest.raises(NodeNotFoundError, match=r"^/ has nothing stored for 'c/1/7': the grid has \(3, 3\) chunks$"):
        explain(array, "c/1/7")
    with pytest.raises(NodeNotFoundError, match=r"^/ has nothing stored for 'x': its chunks have keys such as c/0/0$"):
        explain(array, "x")
    with pytest.raises(ArgumentError, match=r"^either a key or the coordinates of a chunk must be given$"):
        explain(array)
    with pytest.raises(ArgumentError, match=r"^\(1\) is not a chunk of an array with 2 dimensions$"):
        explain(array, chunk=[1])


def test_the_value_of_an_unknown_compressor_is_a_range_with_a_decoded_form() -> None:
    @register
    class Reverse(BytesBytesCodec):
        name = "test.reverse"

        def encode(self, data: Any) -> bytes:
            return bytes(data)[::-1]

        def decode(self, data: Any, limit: int) -> bytes:
            if bytes(data[:1]) == b"\xee":
                raise RuntimeError("no")
            return bytes(data)[::-1]

        def encoded_size(self, size: int) -> int:
            return size

    codecs = [ShardingIndexed((1,), [Bytes(), Reverse()], [Bytes(), Reverse()])]
    array = zarrlite.create_array({}, data=np.array([1, 2], "u1"), chunks=(2,), codecs=codecs)
    (stored,) = explain(array, "c/0")
    assert tiles(stored.layout)
    assert [line.strip() for line in lines(stored) if "entry" in line or "elements" in line] == [
        "= 0-1 elements (bytes)",
        "= 0-1 elements (bytes)",
        "=   0-16 entry (0) (sharding_indexed)",
        "=   16-32 entry (1) (sharding_indexed)",
    ]
    change(array, "c/0", 0, b"\xee")
    assert "0-1 test.reverse frame (test.reverse) !data: cannot be decoded: no" in "\n".join(
        lines(explain(array, "c/0")[0])
    )


def test_json_has_every_range_and_fault() -> None:
    array = zarrlite.create_array({}, data=np.array([1], "u1"), chunks=(1,), codecs=[Bytes(), Crc32c()])
    change(array, "c/0", 0, b"\2")
    (stored,) = explain(array, "c/0")
    found = stored.to_json()
    assert (found["key"], found["size"]) == ("c/0", 5)
    assert [child["what"] for child in found["layout"]["children"]] == ["elements", "checksum"]
    assert found["layout"]["children"][1]["fault"]["kind"] == "checksum"

"""`zarrlite diff`: the differences between two nodes, with their locations and sizes."""

from __future__ import annotations

import numpy as np
import pytest

import zarrlite
from zarrlite.tools.transfer import blocks


def test_equal_hierarchies_have_no_differences(hierarchy, run):
    assert run("diff", "a.zarr", "a.zarr") == (0, "no difference\n", "")
    assert run("diff", "a.zarr", "a.zarr", "--json").json == {"same": True, "differences": []}


def test_differences_of_metadata_values_and_nodes_are_reported(hierarchy, run):
    zarrlite.copy(zarrlite.open("a.zarr", mode="r"), "b.zarr")
    b = zarrlite.open_group("b.zarr")
    b["raw/image"][3, 4] = 1000
    b["raw/image"][9, 9] = 100
    b["raw/image"].attrs["unit"] = "m"
    b.attrs["by"] = "you"
    b.create_group("new")
    ran = run("diff", "a.zarr", "b.zarr")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        '/: /attributes/by "me" -> "you"',
        "new: group only in B",
        'raw/image: /attributes/unit only in B: "m"',
        "raw/image: 2 of 100 values differ, first at (3, 4), largest difference 966.0 at (3, 4)",
    ]
    assert run("diff", "a.zarr", "b.zarr", "--metadata").out.count("\n") == 3
    differences = run("diff", "a.zarr/raw/image", "b.zarr/raw/image", "--values", "--json").json["differences"]
    assert differences == [
        {
            "path": "",
            "what": "values",
            "count": 2,
            "size": 100,
            "first": [3, 4],
            "max_difference": 966.0,
            "max_at": [3, 4],
        }
    ]


def test_values_are_compared_in_blocks_even_if_chunk_shapes_differ(hierarchy, run, monkeypatch):
    a = zarrlite.create_array("x.zarr", data=np.arange(1000).reshape(10, 100), chunks=(3, 7))
    zarrlite.create_array("y.zarr", data=a[...], chunks=(10, 11), shards=(10, 110))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 500)
    assert run("diff", "x.zarr", "y.zarr", "--values").code == 0
    assert run("diff", "x.zarr", "y.zarr").code == 1
    zarrlite.open("y.zarr")[9, 99] = 0
    assert run("diff", "x.zarr", "y.zarr", "--values").out == (
        "/: 1 of 1000 values differ, first at (9, 99), largest difference 999 at (9, 99)\n"
    )


VALUES = {
    "NaN equals NaN": (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), "no difference"),
    "NaN differs from numbers": (
        np.array([np.nan, 1.0]),
        np.array([0.0, 2.0]),
        "/: 2 of 2 values differ, first at (0,), largest difference Infinity at (0,)",
    ),
    "smallest and largest integer": (
        np.array([-(2**63)]),
        np.array([2**63 - 1]),
        f"/: 1 of 1 values differ, first at (0,), largest difference {2**64 - 1} at (0,)",
    ),
    "mixed types": (
        np.array([1], "u1"),
        np.array([1.5]),
        "/: 1 of 1 values differ, first at (0,), largest difference 0.5 at (0,)",
    ),
    "complex": (
        np.array([3j]),
        np.array([4 + 0j]),
        "/: 1 of 1 values differ, first at (0,), largest difference 5.0 at (0,)",
    ),
    "text": (["a", "b"], ["a", "c"], "/: 1 of 2 values differ, first at (1,)"),
    "text and numbers": (["1"], [1], "/: 1 of 1 values differ, first at (0,)"),
    "booleans": ([True], [False], "/: 1 of 1 values differ, first at (0,), largest difference 1 at (0,)"),
    "times": (
        np.array(["2020-01-01", "NaT"], "M8[D]"),
        np.array(["2020-01-02", "NaT"], "M8[D]"),
        "/: 1 of 2 values differ, first at (0,)",
    ),
    "structs": (
        np.array([(1, 2)], [("a", "u1"), ("b", "u1")]),
        np.array([(1, 3)], [("a", "u1"), ("b", "u1")]),
        "/: 1 of 1 values differ, first at (0,)",
    ),
    "no values": (np.zeros((0, 3)), np.ones((0, 3)), "no difference"),
    "no dimensions": (
        np.float64(1),
        np.float64(3),
        "/: 1 of 1 values differ, first at (), largest difference 2.0 at ()",
    ),
    "shapes": (np.zeros(3), np.zeros(4), "/: shape (3,) -> (4,)"),
}


@pytest.mark.parametrize(("a", "b", "line"), VALUES.values(), ids=VALUES)
def test_values_of_every_data_type_are_compared(a, b, line, hierarchy, run):
    zarrlite.create_array("x.zarr", data=a)
    zarrlite.create_array("y.zarr", data=b)
    ran = run("diff", "x.zarr", "y.zarr", "--values")
    assert (ran.out, ran.err) == (f"{line}\n", "")
    assert ran.code == (line != "no difference")


def test_an_array_differs_from_a_group(hierarchy, run):
    assert run("diff", "a.zarr/raw/image", "a.zarr/raw", "--values").out.startswith("/: type array -> group\n")


def test_damaged_data_is_an_error(hierarchy, run):
    zarrlite.copy(zarrlite.open("a.zarr", mode="r"), "b.zarr")
    zarrlite.LocalStore("b.zarr").set("raw/image/c/0/0", b"junk")
    ran = run("diff", "a.zarr", "b.zarr")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith("zarrlite diff: chunk raw/image/c/0/0, codec zstd: ")


def test_blocks_cover_every_element_exactly_once():
    visits = np.zeros((7, 9), int)
    for block in blocks.all_blocks((3, 4), (7, 9)):
        visits[block] += 1
    assert (visits == 1).all()


def test_chunks_that_are_not_stored_take_no_time(hierarchy, run, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2**20)
    for name in ("x.zarr", "y.zarr"):
        huge = zarrlite.create_array(name, shape=(2**40, 2**20), dtype="u1", chunks=(2**8, 2**8))
        huge[2**39, 7] = 1
    huge[0, 0] = 5
    assert run("diff", "x.zarr", "y.zarr").out == (
        f"/: 1 of {2**60} values differ, first at (0, 0), largest difference 5 at (0, 0)\n"
    )
    assert run("reencode", "y.zarr", "z.zarr", "--chunks", "64").code == 0
    assert zarrlite.open("z.zarr", mode="r").nchunks_initialized == 2
    assert run("diff", "y.zarr", "z.zarr", "--values").code == 0


def test_arrays_without_chunks_differ_if_their_fill_values_differ(hierarchy, run):
    for fill in (0, 3):
        zarrlite.create_array(f"{fill}.zarr", shape=(4,), dtype="u1", fill_value=fill)
    assert (
        run("diff", "0.zarr", "3.zarr", "--values").out
        == "/: 4 of 4 values differ, first at (0,), largest difference 3 at (0,)\n"
    )

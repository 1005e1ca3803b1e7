"""info, tree, ls, dump and demo: what they show of what is there."""

from __future__ import annotations

import csv
import errno
import io
import os
from pathlib import Path

import numpy as np
import pytest

import zarrlite
from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.tools.cli import selections

DATA = np.arange(100, dtype="float64").reshape(10, 10)  # of the array in a.zarr


def test_info_of_an_array(hierarchy, run):
    ran = run("info", "a.zarr/raw/image")
    assert ran.code == 0
    assert "Name            : /raw/image\n" in ran.out
    assert f"Store           : {hierarchy}/a.zarr\n" in ran.out
    assert "Shape           : (10, 10)\n" in ran.out


def test_info_as_json_has_the_document(hierarchy, run):
    found = run("info", "a.zarr/raw/image", "--json", "--storage").json
    assert found["metadata"] == zarrlite.open("a.zarr/raw/image", mode="r").metadata.to_json()
    assert (found["type"], found["chunks"], found["chunks_stored"]) == ("array", [4, 4], 9)
    assert run("info", "a.zarr", "--json").json["members"] == ["raw"]


@pytest.mark.parametrize("place", ["a.zarr", "a.zarr/", "./a.zarr", "FILE", "a.zarr/raw/.."])
def test_locations(place, hierarchy, run):
    place = f"file://{hierarchy}/a.zarr" if place == "FILE" else place
    ran = run("ls", place)
    assert (ran.out, ran.err) == ("raw\n", "")


def test_tree_shows_a_node_that_is_refused_and_goes_on(hierarchy, run):
    Path("a.zarr/bad").mkdir()
    Path("a.zarr/bad/zarr.json").write_text('{"zarr_format": 3}')
    ran = run("tree", "a.zarr")
    assert ran.code == 1
    assert ran.out.splitlines()[1] == "├── bad refused: bad/zarr.json#/node_type: is required and missing"
    assert ran.out.splitlines()[3] == "    └── image (10, 10) float64"
    assert [node["type"] for node in run("tree", "a.zarr", "--json").json["nodes"]] == ["refused", "group", "array"]
    assert run("tree", "a.zarr", "-L", 1).out == "\n".join([*ran.out.splitlines()[:3], ""])


def test_a_deep_hierarchy_is_walked_without_recursion(hierarchy, run):
    deep = "/".join(["d"] * 600)
    zarrlite.create_group("a.zarr", path=deep)
    assert len(run("tree", "a.zarr").out.splitlines()) == 603


def test_ls_of_an_array_lists_its_objects(hierarchy, run):
    keys = run("ls", "a.zarr/raw/image").out.split()
    assert keys[0] == "c/0/0"
    assert keys[-1] == "zarr.json"
    long = run("ls", "-l", "a.zarr/raw/image").out.splitlines()
    assert long[0].split() == ["bytes", "coordinates", "key"]
    assert long[2].split() == [str(os.path.getsize("a.zarr/raw/image/c/0/1")), "(0,", "1)", "c/0/1"]
    found = run("ls", "a.zarr/raw/image", "--json").json
    assert found[1] == {"key": "c/0/1", "bytes": os.path.getsize("a.zarr/raw/image/c/0/1"), "coordinates": [0, 1]}


SELECTIONS = ["0:10,::2", "...", "5", "-1,:", "::-3,1", "[2:4, 3]", "3,4", "..., 0", "8:2:-1,:0", ":,", "100:,:"]


@pytest.mark.parametrize("text", SELECTIONS)
def test_a_selection_gives_what_numpy_gives(text, hierarchy, run):
    expected = eval(f"DATA[{text.strip('[]')}]", {"DATA": DATA})
    found = run("dump", "a.zarr/raw/image", text, "--json").json
    assert found["values"] == expected.tolist()
    assert run("dump", "a.zarr/raw/image", text, "-o", "x.npy").code == 0
    assert np.array_equal(np.load("x.npy"), expected)
    lines = list(csv.reader(io.StringIO(run("dump", "a.zarr/raw/image", text, "--format", "csv").out)))
    assert np.array_equal(np.array(lines, float).reshape(expected.shape), expected)


@pytest.mark.parametrize("block", [1, 3, 7, 64])
@pytest.mark.parametrize("index", [slice(None), slice(3, 61, 4), slice(None, None, -1), slice(50, 3, -7), slice(5, 5)])
def test_pieces_are_the_whole(index, block, monkeypatch):
    monkeypatch.setattr(selections, "PIECE", block * 8)
    array = zarrlite.create_array("memory://", data=np.arange(64), chunks=8)
    parts = list(
        selections.pieces(
            array, selections.parse(f"{index.start}:{index.stop}:{index.step}".replace("None", ""), (64,))
        )
    )
    assert np.concatenate(parts).tolist() == np.arange(64)[index].tolist()


BAD_SELECTIONS = {
    "x": "selection 'x': 'x' is not an integer, start:stop:step or '...'",
    "1.5": "selection '1.5': '1.5' is not an integer, start:stop:step or '...'",
    "1 2": "selection '1 2': '1 2' is not an integer, start:stop:step or '...'",
    "0,0,0": "selection '0,0,0' has 3 indices, the array has 2 dimensions",
    "...,...": "selection '...,...' has more than one '...'",
    "::0": "selection '::0': a step is not 0",
    ",1": "selection ',1': '' is not an integer, start:stop:step or '...'",
    "9" * 30: f"selection '{'9' * 30}': {'9' * 30} is out of bounds for a dimension of length 4",
    "9" * 100: f"selection '{'9' * 100}': '{'9' * 100}' is not an integer, start:stop:step or '...'",
    "-5": "selection '-5': -5 is out of bounds for a dimension of length 4",
}


@pytest.mark.parametrize(("text", "message"), BAD_SELECTIONS.items(), ids=range(len(BAD_SELECTIONS)))
def test_a_selection_that_is_none_is_refused(text, message):
    with pytest.raises((ArgumentError, SelectionError)) as caught:
        selections.parse(text, (4, 4))
    assert str(caught.value) == message


def test_a_large_array_is_shown_as_numpy_shows_it_and_only_its_corners_are_read(hierarchy, run):
    large = zarrlite.create_array("large.zarr", shape=(10**6, 10**6), dtype="i4", chunks=(100, 100))
    large[0, 0] = 1
    large[-1, -3] = 2
    assert run("dump", "large.zarr").out == (
        "[[1 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n ...\n"
        " [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 2 0 0]]\n"
    )
    assert run("dump", "large.zarr", "0:40,0:40", "--full").out.count("\n") == 40


def test_values_of_all_kinds(hierarchy, run):
    zarrlite.create_array("s.zarr", data=["a", 'b,\n"c"'])
    assert run("dump", "s.zarr", "--json").json["values"] == ["a", 'b,\n"c"']
    assert next(iter(csv.reader(io.StringIO(run("dump", "s.zarr", 1, "--format", "csv").out)))) == ['b,\n"c"']
    assert run("dump", "s.zarr", "-o", "s.npy") == (
        2,
        "",
        "zarrlite dump: .npy has no values of string; say --format csv\n",
    )
    assert not os.path.exists("s.npy")
    zarrlite.create_array("f.zarr", data=np.array([0.1, np.nan, -np.inf], "f4"))
    assert run("dump", "f.zarr", "--format", "csv").out == "0.1\nnan\n-inf\n"
    assert run("dump", "f.zarr", "--json").json["values"][1:] == ["NaN", "-Infinity"]


REFUSED = {
    ("dump", "a.zarr/raw"): (
        3,
        "a.zarr/raw is a group, not an array; name one of its arrays, such as a.zarr/raw/image",
    ),
    ("info", "a.zarr/raw/image/c"): (3, "a.zarr/raw/image/c is no Zarr v3 array or group: there is no zarr.json in it"),
    ("info", "a.zarr/zarr.json"): (3, "a.zarr/zarr.json is a file; an array or a group is a directory with zarr.json"),
    ("info", "a.zarr/nope"): (3, "a.zarr/nope: there is nothing at this path"),
    ("info", "two.zarr"): (3, "two.zarr is Zarr version 2; zarrlite reads version 3"),
    ("info", "."): (3, ". is no Zarr v3 array or group: there is no zarr.json in it"),
    ("dump", "a.zarr/raw/image", "-o", "no/x.csv"): (1, "no/x.csv cannot be written: No such file or directory"),
    ("dump", "a.zarr/raw/image", "--full", "0:2,zz"): (
        2,
        "selection '0:2,zz': 'zz' is not an integer, start:stop:step or '...'",
    ),
    ("dump", "cut.zarr"): (
        1,
        "chunk c/0, codec bytes: 3 bytes are stored, 4 are needed",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.items(), ids=map(" ".join, REFUSED))
def test_what_cannot_be_shown_is_one_line(arguments, expected, hierarchy, run):
    Path("two.zarr").mkdir()
    Path("two.zarr/.zarray").write_text("{}")
    cut = zarrlite.create_array("cut.zarr", data=np.ones(4, "u1"), compressors=None)
    cut.store.set("c/0", b"123")
    code, message = expected
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, "")
    if arguments[-1] == "cut.zarr":
        assert ran.err.startswith("zarrlite dump: chunk c/0")
        assert ran.err.count("\n") == 1
    else:
        assert ran.err == f"zarrlite {arguments[0]}: {message}\n"


def test_what_may_not_be_read_is_one_line(hierarchy, run, monkeypatch):
    original = os.open

    def denied(path, *rest, **keywords):  # root may read everything, so that a mode of 0 would not do
        if str(path).endswith("a.zarr/zarr.json"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return original(path, *rest, **keywords)

    monkeypatch.setattr(os, "open", denied)
    ran = run("info", "a.zarr")
    assert ran.code == 1
    assert ran.err == "zarrlite info: 'zarr.json' cannot be read: Permission denied\n"


def test_the_demo_runs(run):
    assert "equals what was written : True" in run("demo").out
    assert "A group with two arrays, one of them sharded:" in run("demo", "--json").json["lines"]


def test_a_member_that_cannot_be_opened_does_not_hide_the_others(hierarchy, run):
    Path("a.zarr/bad").mkdir()
    Path("a.zarr/bad/zarr.json").write_text("{")
    ran = run("info", "a.zarr")
    assert ran.code == 0
    assert "Refused" in ran.out
    listed = run("ls", "-l", "a.zarr")
    assert listed.code == 1
    (reason,) = [line for line in listed.out.splitlines() if line.startswith("bad: bad/zarr.json#: is not JSON")]
    found = {each["name"]: each.get("error") for each in run("ls", "a.zarr", "--json").json}
    assert found["bad"] == reason.removeprefix("bad: ")
    assert not any(error for name, error in found.items() if name != "bad")

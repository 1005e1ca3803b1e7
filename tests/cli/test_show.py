"""`zarrlite info`, `tree`, `ls`, `dump` and `demo`: the output of commands that only read."""

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

DATA = np.arange(100, dtype="float64").reshape(10, 10)  # the values of a.zarr/raw/image


def test_info_describes_an_array(hierarchy, run):
    ran = run("info", "a.zarr/raw/image")
    assert ran.code == 0
    assert "Name            : /raw/image\n" in ran.out
    assert f"Store           : {hierarchy}/a.zarr\n" in ran.out
    assert "Shape           : (10, 10)\n" in ran.out


def test_json_output_of_info_has_the_document(hierarchy, run):
    info = run("info", "a.zarr/raw/image", "--json", "--storage").json
    assert info["metadata"] == zarrlite.open("a.zarr/raw/image", mode="r").metadata.to_json()
    assert (info["type"], info["chunks"], info["chunks_stored"]) == ("array", [4, 4], 9)
    assert run("info", "a.zarr", "--json").json["members"] == ["raw"]


@pytest.mark.parametrize("location", ["a.zarr", "a.zarr/", "./a.zarr", "FILE", "a.zarr/raw/.."])
def test_a_location_is_a_path_or_a_file_url(location, hierarchy, run):
    location = f"file://{hierarchy}/a.zarr" if location == "FILE" else location
    ran = run("ls", location)
    assert (ran.out, ran.err) == ("raw\n", "")


def test_tree_shows_why_a_node_is_refused_and_the_other_nodes(hierarchy, run):
    Path("a.zarr/bad").mkdir()
    Path("a.zarr/bad/zarr.json").write_text('{"zarr_format": 3}')
    ran = run("tree", "a.zarr")
    assert ran.code == 1
    assert ran.out.splitlines()[1] == "├── bad refused: bad/zarr.json#/node_type: is required and missing"
    assert ran.out.splitlines()[3] == "    └── image (10, 10) float64"
    assert [node["type"] for node in run("tree", "a.zarr", "--json").json["nodes"]] == ["refused", "group", "array"]
    assert run("tree", "a.zarr", "-L", 1).out == "\n".join([*ran.out.splitlines()[:3], ""])


def test_tree_shows_a_hierarchy_of_600_levels(hierarchy, run):
    deep = "/".join(["d"] * 600)
    zarrlite.create_group("a.zarr", path=deep)
    assert len(run("tree", "a.zarr").out.splitlines()) == 603


def test_ls_lists_the_objects_of_an_array(hierarchy, run):
    keys = run("ls", "a.zarr/raw/image").out.split()
    assert keys[0] == "c/0/0"
    assert keys[-1] == "zarr.json"
    long = run("ls", "-l", "a.zarr/raw/image").out.splitlines()
    assert long[0].split() == ["bytes", "coordinates", "key"]
    assert long[2].split() == [str(os.path.getsize("a.zarr/raw/image/c/0/1")), "(0,", "1)", "c/0/1"]
    objects = run("ls", "a.zarr/raw/image", "--json").json
    assert objects[1] == {"key": "c/0/1", "bytes": os.path.getsize("a.zarr/raw/image/c/0/1"), "coordinates": [0, 1]}


SELECTIONS = ["0:10,::2", "...", "5", "-1,:", "::-3,1", "[2:4, 3]", "3,4", "..., 0", "8:2:-1,:0", ":,", "100:,:"]


@pytest.mark.parametrize("text", SELECTIONS)
def test_dump_selects_the_same_values_as_numpy(text, hierarchy, run):
    expected = eval(f"DATA[{text.strip('[]')}]", {"DATA": DATA})
    dumped = run("dump", "a.zarr/raw/image", text, "--json").json
    assert dumped["values"] == expected.tolist()
    assert run("dump", "a.zarr/raw/image", text, "-o", "x.npy").code == 0
    assert np.array_equal(np.load("x.npy"), expected)
    lines = list(csv.reader(io.StringIO(run("dump", "a.zarr/raw/image", text, "--format", "csv").out)))
    assert np.array_equal(np.array(lines, float).reshape(expected.shape), expected)


@pytest.mark.parametrize("block", [1, 3, 7, 64])
@pytest.mark.parametrize("index", [slice(None), slice(3, 61, 4), slice(None, None, -1), slice(50, 3, -7), slice(5, 5)])
def test_the_pieces_of_a_selection_contain_all_of_its_values(index, block, monkeypatch):
    monkeypatch.setattr(selections, "PIECE_BYTES", block * 8)
    array = zarrlite.create_array("memory://", data=np.arange(64), chunks=8)
    text = f"{index.start}:{index.stop}:{index.step}".replace("None", "")
    pieces = list(selections.read_pieces(array, selections.parse(text, (64,))))
    assert np.concatenate(pieces).tolist() == np.arange(64)[index].tolist()


BAD_SELECTIONS = {
    "x": "selection 'x': 'x' must be an integer, start:stop:step or '...'",
    "1.5": "selection '1.5': '1.5' must be an integer, start:stop:step or '...'",
    "1 2": "selection '1 2': '1 2' must be an integer, start:stop:step or '...'",
    "0,0,0": "selection '0,0,0' must have at most 2 indices, one for each dimension, not 3",
    "...,...": "selection '...,...' must have at most one '...'",
    "::0": "selection '::0': the step must not be 0",
    ",1": "selection ',1': '' must be an integer, start:stop:step or '...'",
    "9" * 30: f"selection '{'9' * 30}': {'9' * 30} is out of bounds for a dimension of length 4",
    "9" * 100: f"selection '{'9' * 100}': '{'9' * 100}' must be an integer, start:stop:step or '...'",
    "-5": "selection '-5': -5 is out of bounds for a dimension of length 4",
}


@pytest.mark.parametrize(("text", "message"), BAD_SELECTIONS.items(), ids=range(len(BAD_SELECTIONS)))
def test_malformed_selections_are_refused(text, message):
    with pytest.raises((ArgumentError, SelectionError)) as caught:
        selections.parse(text, (4, 4))
    assert str(caught.value) == message


def test_dump_abbreviates_a_large_array_like_numpy_and_reads_only_its_corners(hierarchy, run):
    large = zarrlite.create_array("large.zarr", shape=(10**6, 10**6), dtype="i4", chunks=(100, 100))
    large[0, 0] = 1
    large[-1, -3] = 2
    assert run("dump", "large.zarr").out == (
        "[[1 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n ...\n"
        " [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 2 0 0]]\n"
    )
    assert run("dump", "large.zarr", "0:40,0:40", "--full").out.count("\n") == 40


def test_dump_writes_strings_and_special_floats(hierarchy, run):
    zarrlite.create_array("s.zarr", data=["a", 'b,\n"c"'])
    assert run("dump", "s.zarr", "--json").json["values"] == ["a", 'b,\n"c"']
    assert next(iter(csv.reader(io.StringIO(run("dump", "s.zarr", 1, "--format", "csv").out)))) == ['b,\n"c"']
    assert run("dump", "s.zarr", "-o", "s.npy") == (
        2,
        "",
        "zarrlite dump: .npy cannot hold values of string; use --format csv\n",
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
    ("info", "a.zarr/raw/image/c"): (3, "a.zarr/raw/image/c is not a Zarr v3 array or group: it has no zarr.json"),
    ("info", "a.zarr/zarr.json"): (3, "a.zarr/zarr.json is a file; a node must be a directory with zarr.json"),
    ("info", "a.zarr/nope"): (3, "a.zarr/nope does not exist"),
    ("info", "old/v2.zarr"): (1, ".zarray#/zarr_format: is required and missing (and 5 more)"),
    ("info", "."): (3, ". is not a Zarr v3 array or group: it has no zarr.json"),
    ("dump", "a.zarr/raw/image", "-o", "no/x.csv"): (1, "no/x.csv cannot be written: No such file or directory"),
    ("dump", "a.zarr/raw/image", "--full", "0:2,zz"): (
        2,
        "selection '0:2,zz': 'zz' must be an integer, start:stop:step or '...'",
    ),
    ("dump", "cut.zarr"): (
        1,
        "chunk c/0, codec bytes: 3 bytes are stored, 4 are needed",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.items(), ids=map(" ".join, REFUSED))
def test_locations_that_cannot_be_shown_are_reported_in_one_line(arguments, expected, hierarchy, run):
    Path("old/v2.zarr").mkdir(parents=True)
    Path("old/v2.zarr/.zarray").write_text("{}")
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


def test_a_permission_error_is_reported_in_one_line(hierarchy, run, monkeypatch):
    original = os.open

    def denied(path, *rest, **keywords):  # simulated, because root can read files whatever their mode
        if str(path).endswith("a.zarr/zarr.json"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return original(path, *rest, **keywords)

    monkeypatch.setattr(os, "open", denied)
    ran = run("info", "a.zarr")
    assert ran.code == 1
    assert ran.err == "zarrlite info: 'zarr.json' cannot be read: Permission denied\n"


def test_demo_shows_a_tour(run):
    assert "equals the written data : True" in run("demo").out
    assert "A group with two arrays, one of them sharded:" in run("demo", "--json").json["lines"]


def test_a_node_that_cannot_be_opened_does_not_hide_the_others(hierarchy, run):
    Path("a.zarr/bad").mkdir()
    Path("a.zarr/bad/zarr.json").write_text("{")
    ran = run("info", "a.zarr")
    assert ran.code == 0
    assert "Refused" in ran.out
    listed = run("ls", "-l", "a.zarr")
    assert listed.code == 1
    (reason,) = [line for line in listed.out.splitlines() if line.startswith("bad: bad/zarr.json#: is not JSON")]
    errors = {node["name"]: node.get("error") for node in run("ls", "a.zarr", "--json").json}
    assert errors["bad"] == reason.removeprefix("bad: ")
    assert not any(error for name, error in errors.items() if name != "bad")


def test_a_file_in_the_current_directory_is_written_there(hierarchy, run, monkeypatch):
    moved = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: moved.append(old) or replace(old, new))
    assert run("dump", "a.zarr/raw/image", "-o", "out.npy").code == 0
    assert np.array_equal(np.load("out.npy"), DATA)
    assert [os.path.dirname(old) for old in moved] == [os.getcwd()]  # the temporary file is next to out.npy


def test_text_that_a_spreadsheet_takes_for_a_formula_begins_with_an_apostrophe(hierarchy, run):
    texts = ["=1+1", "+1", "-1", "@a", "a=1", "", "'=1"]
    zarrlite.create_array("text.zarr", data=np.array(texts, "T"))
    lines = run("dump", "text.zarr", "--format", "csv").out.split("\n")
    assert lines == ["'=1+1", "'+1", "'-1", "'@a", "a=1", '""', "'=1", ""]
    zarrlite.create_array("numbers.zarr", data=[-1, 2])
    assert run("dump", "numbers.zarr", "--format", "csv").out == "-1\n2\n"


def test_dump_writes_the_format_of_the_extension_and_refuses_other_extensions(hierarchy, run):
    for name, start in {"x.csv": "0.0,1.0", "x.JSON": '{\n  "shape"', "x.txt": "[[ 0.", "x": "[[ 0."}.items():
        assert run("dump", "a.zarr/raw/image", "-o", name) == (0, "", "")
        assert Path(name).read_text().startswith(start)
    for name in ("x.tif", "x.parquet"):
        message = (
            f"--output must have one of the extensions txt, csv, json, npy, not {name[2:]!r}; "
            f"pass --format to write one of these formats to {name}"
        )
        assert run("dump", "a.zarr/raw/image", "-o", name) == (
            2,
            "",
            f"zarrlite dump: {message}\n",
        )
        assert not os.path.exists(name)
    assert run("dump", "a.zarr/raw/image", 0, "-o", "x.tif", "--format", "csv").code == 0
    assert Path("x.tif").read_text().startswith("0.0\n1.0\n")


RECORD = np.dtype([("id", "i4"), ("at", [("x", "f8"), ("when", "M8[D]")])])


def test_structs_have_a_csv_column_for_each_field(hierarchy, run):
    rows = [(1, (2.5, "2020-01-31")), (2, (3.5, "NaT"))]
    zarrlite.create_array("s.zarr", data=np.array(rows, RECORD))
    assert run("dump", "s.zarr", "--format", "csv").out == "id,at.x,at.when\n1,2.5,2020-01-31\n2,3.5,NaT\n"
    assert run("dump", "s.zarr", "1", "--format", "csv").out == "id,at.x,at.when\n2,3.5,NaT\n"
    zarrlite.create_array("s2.zarr", data=np.array([rows], RECORD))
    lines = run("dump", "s2.zarr", "--format", "csv").out.splitlines()
    assert lines == ["0.id,0.at.x,0.at.when,1.id,1.at.x,1.at.when", "1,2.5,2020-01-31,2,3.5,NaT"]


def test_points_in_time_are_text_in_json(hierarchy, run):
    zarrlite.create_array("t.zarr", data=np.array(["2020-01-31T12:00", "NaT"], "M8[s]"))
    assert run("dump", "t.zarr", "--format", "json").json["values"] == ["2020-01-31T12:00:00", "NaT"]
    zarrlite.create_array("s.zarr", data=np.array([(1, (2.5, "2020-01-31"))], RECORD))
    assert run("dump", "s.zarr", "--json").json["values"] == [{"id": 1, "at": {"x": 2.5, "when": "2020-01-31"}}]
    zarrlite.create_array("d.zarr", data=np.array([90, "NaT"], "m8[s]"))
    # the values have no unit, since the data type states it
    assert run("dump", "d.zarr", "--json").json["values"] == [90, "NaT"]
    generic = zarrlite.create_array(
        "g.zarr",
        shape=1,
        dtype={"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 1}},
        fill_value=7,
    )
    assert run("dump", "g.zarr", "--json").json["values"] == [7]
    assert generic.shape == (1,)

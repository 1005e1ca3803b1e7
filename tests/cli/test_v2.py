"""Commands applied to Zarr v2 hierarchies, and `zarrlite v2`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from formats.v2_hierarchies import disk

import zarrlite


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Create three Zarr v2 hierarchies in the current directory. One contains arrays that are refused."""
    monkeypatch.chdir(tmp_path)
    disk("consolidated", Path("old.zarr"))
    disk("special", Path("flat.zarr"))
    disk("refused", Path("bad.zarr"))


X = "old.zarr/a/b/x"
SHOWN = [
    (("info", X), "(5,)"),
    (("tree", "old.zarr"), "named (2, 3) float64"),
    (("ls", "old.zarr"), "named"),
    (("ls", "-l", X), "(1,)"),
    (("dump", X), "[0 1 2 3 4]"),
    (("explain", X, "0"), "holds [0:2]"),
    (("fsck", "flat.zarr"), "no problems"),
    (("validate", "flat.zarr"), "32 documents, 0 faults"),
    (("diff", "old.zarr", "old.zarr"), "no difference"),
    (("v2", "old.zarr"), "10 nodes, 0 of them refused; nothing is written without --write"),
]


@pytest.mark.parametrize(("arguments", "expected"), SHOWN, ids=[" ".join(arguments) for arguments, _ in SHOWN])
def test_commands_show_zarr_v2(arguments, expected, old, run):
    before = sorted(Path("old.zarr").rglob("*"))
    ran = run(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert expected in ran.out
    assert sorted(Path("old.zarr").rglob("*")) == before


def test_a_copy_is_zarr_v3_and_equal(old, run):
    assert run("copy", "old.zarr", "new.zarr").code == 0
    assert not list(Path("new.zarr").rglob(".z*"))
    assert run("diff", "old.zarr", "new.zarr").code == 0


def test_a_copy_leaves_out_and_names_refused_nodes(old, run):
    ran = run("copy", "bad.zarr", "new.zarr")
    assert ran.code == 0
    assert ran.err.count("is not copied") == 10
    assert "warning: /: the node 'pickle' is not copied: pickle/.zarray#/filters/0/id: pickle must not" in ran.err
    copied = [str(path.relative_to("new.zarr")) for path in Path("new.zarr").rglob("*") if path.is_file()]
    assert sorted(copied) == ["json2-values/0", "json2-values/zarr.json", "zarr.json"]


def test_reencode_converts_zarr_v2_to_zarr_v3(old, run):
    assert run("reencode", X, "new.zarr", "--codecs", "zstd", "--keys", "default").code == 0
    assert sorted(path.name for path in Path("new.zarr").iterdir()) == ["c", "zarr.json"]
    assert zarrlite.open_array("new.zarr", mode="r")[...].tolist() == [0, 1, 2, 3, 4]


def test_documents_are_written_and_no_data_is_moved(old, run):
    before = {path: path.read_bytes() for path in Path("old.zarr").rglob("*") if path.is_file()}
    ran = run("v2", "old.zarr", "--write")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "zarr.json"
    assert {path: path.read_bytes() for path in before} == before
    assert len(list(Path("old.zarr").rglob("zarr.json"))) == 10
    assert run("v2", "old.zarr", "--write", "--json").json["written"] == ran.out.splitlines()
    shown = run("tree", "old.zarr")
    assert "named (2, 3) float64" in shown.out
    assert "the documents of Zarr v2 next to it are ignored" in shown.err


def test_refused_nodes_are_named_and_nothing_is_written(old, run):
    ran = run("v2", "bad.zarr")
    assert ran.code == 1
    assert "pickle/zarr.json: pickle/.zarray#/filters/0/id: pickle must not be used" in ran.out
    assert "12 nodes, 10 of them refused" in ran.out
    assert len(run("v2", "bad.zarr", "--json").json["refused"]) == 10
    assert run("v2", "bad.zarr", "--write").code != 0
    assert not list(Path("bad.zarr").rglob("zarr.json"))
    validated = run("validate", "bad.zarr", "--json")
    assert validated.code == 1
    assert {fault["rule"].partition(":")[0] for fault in validated.json["faults"]} == {"Zarr v2 specification"}
    assert "refused" in run("tree", "bad.zarr").out
    assert run("v2", "bad.zarr", "--overwrite").code == 2


def test_unknown_codecs_alone_make_the_exit_code_4(old, run):
    for path in Path("bad.zarr").iterdir():
        if path.name not in ("pickle", "msgpack", ".zgroup"):
            shutil.rmtree(path)
    assert run("v2", "bad.zarr").code == 4
    assert run("info", "bad.zarr/pickle").code == 4


def test_directories_without_a_node_are_not_found(old, run):
    Path("empty").mkdir()
    assert run("v2", "empty").code == 3
    assert run("info", "old.zarr/a/b/x/0").code == 3

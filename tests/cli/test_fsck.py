"""`zarrlite fsck`: its output, exit codes and repairs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.codecs import Bytes, Crc32c
from zarrlite.stores.files import TEMPORARY


@pytest.fixture
def array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a group that contains an array with four chunks, each with a checksum."""
    monkeypatch.chdir(tmp_path)
    root = zarrlite.create_group("a.zarr")
    root.create_array("b", data=np.arange(16, dtype="u1").reshape(4, 4), chunks=(2, 2), codecs=[Bytes(), Crc32c()])
    return tmp_path / "a.zarr/b"


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def test_an_undamaged_hierarchy_has_no_problems(array: Path, process: Any) -> None:
    assert process("fsck", "a.zarr") == (0, "no problems in 6 objects\n", "")
    assert process("fsck", "a.zarr/b") == (0, "no problems in 5 objects\n", "")


def test_a_problem_is_shown_with_key_kind_message_and_remedy(array: Path, process: Any) -> None:
    damage(array / "c/0/1")
    ran = process("fsck", "a.zarr")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.split("\n") == [
        "b/c/0/1, bytes 4 to 8: checksum",
        "  chunk (0, 1): checksum: the stored checksum is a02b9dec, but that of the data is 7d6e3754",
        "  restore the chunk from a backup, or erase it with all its parts to read the fill value in its place",
        "1 problem in 6 objects",
        "",
    ]


def test_json_output_has_all_problems(array: Path, run: Any) -> None:
    damage(array / "c/0/1")
    (array / "notes").write_text("hello")
    ran = run("fsck", "a.zarr", "--json")
    assert ran.code == 1
    assert ran.json["checked"] == 7
    assert [(problem["key"], problem["kind"]) for problem in ran.json["problems"]] == [
        ("b/c/0/1", "checksum"),
        ("b/notes", "unknown"),
    ]
    assert ran.json["problems"][0]["start"] == 4
    assert ran.json["repaired"] == []


def test_each_repair_option_changes_only_its_kind_of_problem(array: Path, run: Any) -> None:
    damage(array / "c/0/1")
    (array / "c/7").mkdir()
    (array / "c/7/7").write_bytes((array / "c/0/0").read_bytes())
    old = array / f"c/0/{TEMPORARY}999999999.0.00"  # no process has this id
    old.write_bytes(b"half")
    os.utime(old, (time.time() - 4000,) * 2)
    before = {path: path.read_bytes() for path in array.rglob("*") if path.is_file() and path != old}
    ran = run("fsck", "a.zarr", "--repair")
    assert ran.code == 1
    assert ran.out.endswith(f"b/c/0/{old.name}: repaired\n3 problems in 7 objects, 1 repaired\n")
    assert {path: path.read_bytes() for path in array.rglob("*") if path.is_file()} == before
    ran = run("fsck", "a.zarr", "--repair-outside", "--json")
    assert ran.json["repaired"] == [{"key": "b/c/7/7", "kind": "outside"}]
    assert not (array / "c/7").exists()
    assert (array / "c/0/1").read_bytes() == before[array / "c/0/1"]


def test_repairing_all_problems_makes_the_exit_code_0(array: Path, run: Any) -> None:
    zarrlite.consolidate_metadata("a.zarr")
    document = json.loads((array / "zarr.json").read_text())
    (array / "zarr.json").write_text(json.dumps({**document, "attributes": {"new": 1}}))
    ran = run("fsck", "a.zarr")
    assert ran.code == 1
    assert "zarr.json: consolidated\n  has a copy of b/zarr.json that differs from the original" in ran.out
    assert run("fsck", "a.zarr", "--repair").code == 1  # --repair does not include --repair-consolidated
    assert run("fsck", "a.zarr", "--repair-consolidated").code == 0
    assert run("fsck", "a.zarr") == (0, "no problems in 6 objects\n", "")


def test_a_damaged_document_is_reported_as_a_problem(array: Path, run: Any) -> None:
    (array / "zarr.json").write_text("{")
    ran = run("fsck", "a.zarr")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("b/zarr.json: metadata\n")
    (array.parent / "zarr.json").write_text('{"zarr_format": 3, "node_type": "tree"}')
    assert run("fsck", "a.zarr").out.startswith("zarr.json: metadata\n")


def test_unknown_extensions_alone_make_the_exit_code_4(array: Path, run: Any) -> None:
    document = json.loads((array / "zarr.json").read_text())
    (array / "zarr.json").write_text(json.dumps({**document, "data_type": "float7"}))
    ran = run("fsck", "a.zarr")
    assert (ran.code, ran.err) == (4, "")
    assert ran.out.startswith("b/zarr.json: unsupported\n")
    (array.parent / "notes").write_text("hello")
    assert run("fsck", "a.zarr").code == 1


def test_lenient_accepts_common_omissions(array: Path, run: Any) -> None:
    document = json.loads((array / "zarr.json").read_text())
    del document["fill_value"]
    (array / "zarr.json").write_text(json.dumps(document))
    assert run("fsck", "a.zarr").code == 1
    ran = run("fsck", "a.zarr", "--lenient")
    assert (ran.code, ran.out) == (0, "no problems in 6 objects\n")
    assert "is missing; the zero of the data type is used" in ran.err


def test_a_missing_location_is_not_found(array: Path, run: Any) -> None:
    assert run("fsck", "b.zarr") == (3, "", "zarrlite fsck: b.zarr does not exist\n")

"""`zarrlite n5` and `zarrlite tiff`: metadata for files that other programs wrote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import zarrlite
from zarrlite import n5, tiff

PICTURE = np.arange(24, dtype="u1").reshape(4, 6)


@pytest.fixture
def container(hierarchy: Path) -> None:
    """Create the N5 container `v.n5` and the folder `t` of TIFF files, both without zarr.json files."""
    array = n5.create_array("v.n5", path="g/d", shape=(5, 7), dtype="u2", chunks=(3, 2))
    array[...] = np.arange(35).reshape(5, 7)
    tiff.create_array("t", data=PICTURE, chunks=(2, 3))
    os.remove("t/zarr.json")


def test_an_n5_container_can_be_opened_after_its_documents_are_written(container, run):
    message = "zarrlite info: v.n5 looks like N5; 'zarrlite n5 v.n5' writes the metadata to read it as Zarr\n"
    assert run("info", "v.n5") == (3, "", message)
    dry = run("n5", "v.n5", "--dry-run").json
    assert list(dry) == ["zarr.json", "g/zarr.json", "g/d/zarr.json"]
    assert not os.path.exists("v.n5/zarr.json")
    assert run("n5", "v.n5") == (0, "g/d/zarr.json\ng/zarr.json\nzarr.json\n", "")
    assert run("dump", "v.n5/g/d", "4", "--json").json["values"] == list(range(28, 35))
    again = run("n5", "v.n5", "--codec", "pad")
    assert again.code == 2
    assert again.err.endswith("already has a different g/d/zarr.json; --overwrite replaces it\n")
    assert run("n5", "v.n5", "--codec", "pad", "--overwrite", "--json").json == {
        "written": ["g/d/zarr.json", "g/zarr.json", "zarr.json"]
    }


def test_a_folder_of_tiff_files_can_be_opened_after_its_document_is_written(container, run):
    assert run("tiff", "t", "--dry-run").json["shape"] == [4, 6]
    assert run("tiff", "t", "--shape", "4,5", "--fill-value", "7") == (0, "t: (4, 5) uint8\n", "")
    array = zarrlite.open("t", mode="r")
    assert np.array_equal(array, PICTURE[:, :5])
    assert array.fill_value == 7
    assert run("tiff", "t").code == 2


def test_a_single_tiff_file_is_copied_into_a_new_folder(container, run):
    shutil.copy("t/c/0/1.tiff", "photo.tif")
    assert run("tiff", "photo.tif", "photo.zarr") == (0, "photo.zarr: (2, 3) uint8\n", "")
    assert np.array_equal(zarrlite.open("photo.zarr", mode="r"), PICTURE[:2, 3:])
    assert Path("photo.zarr/c/0/0.tiff").read_bytes() == Path("photo.tif").read_bytes()
    message = "zarrlite tiff: photo.zarr already exists; choose another target\n"
    assert run("tiff", "photo.tif", "photo.zarr") == (2, "", message)


REFUSED = {
    ("n5", "nope"): (3, "nope is not a directory"),
    ("tiff", "nope"): (3, "nope does not exist"),
    ("tiff", "a.zarr"): (3, "no TIFF files in LocalStore('{here}/a.zarr')"),
    ("tiff", "a.zarr/zarr.json"): (
        2,
        "pass a target for a single TIFF file: the new folder to copy it into",
    ),
    ("tiff", "a.zarr/zarr.json", "x"): (1, "chunk zarr.json: is not a TIFF file: it starts with b'{{\\n  '"),
    ("tiff", "t", "x"): (2, "do not pass a target for a folder of TIFF files: it is read in place"),
    ("tiff", "t", "--shape", "1,1"): (2, "shape must include all files, but c/0/1.tiff is outside of (1, 1)"),
    ("tiff", "t/c/0/0.tiff", "x", "--dry-run"): (
        2,
        "--dry-run must not be used with a single TIFF file, which has to be copied first",
    ),
    ("tiff", "t", "--fill-value", "nope"): (
        1,
        "--fill-value#: is not JSON: Expecting value at line 1, column 11",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.items(), ids=map(" ".join, REFUSED))
def test_unsuitable_locations_and_options_are_refused_in_one_line(arguments, expected, container, hierarchy, run):
    code, message = expected
    assert run(*arguments) == (code, "", f"zarrlite {arguments[0]}: {message.format(here=hierarchy)}\n")
    assert not os.path.exists("x")

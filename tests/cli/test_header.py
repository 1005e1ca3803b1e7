"""`header` and `consolidate`: the metadata of a whole hierarchy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import zarrlite


@pytest.fixture
def climate(tmp_path, monkeypatch):
    """Create `c.zarr`: a group with two arrays, one of them sharded. The group and one array have attributes."""
    monkeypatch.chdir(tmp_path)
    root = zarrlite.create_group("c.zarr", attributes={"by": "me", "long": "x" * 300})
    root.create_array("time", data=np.array(["2020-01-01"], "M8[D]"))
    root.create_array(
        "model/t2m",
        shape=(4, 6),
        dtype="f4",
        chunks=(2, 2),
        shards=(4, 6),
        fill_value="NaN",
        dimension_names=["y", "x"],
        attributes={"unit": "K"},
    )


TEXT = f"""\
/  group
  by = "me"
  long = "{"x" * 199}... (302 characters; --full shows all)

model  group

model/t2m  float32 (y: 4, x: 6)
  chunks: (2, 2)
  shards: (4, 6)
  codecs: sharding_indexed (bytes, zstd)
  fill value: "NaN"
  unit = "K"

time  numpy.datetime64 (1)
  chunks: (1,)
  codecs: bytes, zstd
  fill value: "NaT"
"""


def test_a_header_has_the_metadata_and_attributes_of_every_node(climate, run):
    assert run("header", "c.zarr") == (0, TEXT, "")
    assert run("header", "c.zarr", "--level", 0).out == TEXT.partition("\nmodel")[0]
    assert "x" * 300 in run("header", "c.zarr", "--full").out
    assert run("header", "c.zarr/model/t2m").out.startswith("/  float32 (y: 4, x: 6)\n  chunks")


def test_a_header_as_json_has_every_node(climate, run):
    root, _, array, _ = run("header", "c.zarr", "--json").json
    assert root["attributes"]["long"] == "x" * 300
    assert (array["path"], array["shape"], array["dimension_names"]) == ("model/t2m", [4, 6], ["y", "x"])
    assert (array["chunks"], array["shards"], array["fill_value"]) == ([2, 2], [4, 6], "NaN")
    assert array["codecs"][0]["name"] == "sharding_indexed"


def test_a_header_names_a_node_that_cannot_be_opened_and_the_reason(climate, run):
    Path("c.zarr/bad").mkdir()
    Path("c.zarr/bad/zarr.json").write_text("{")
    ran = run("header", "c.zarr")
    assert ran.code == 1
    assert "\nbad  refused: bad/zarr.json#: is not JSON" in ran.out
    assert "\nmodel/t2m  float32" in ran.out


def test_consolidate_copies_the_metadata_of_all_nodes_into_the_document_of_the_group(climate, run):
    assert run("consolidate", "c.zarr") == (0, "consolidated the metadata of 3 nodes\n", "")
    assert list(zarrlite.open_group("c.zarr", mode="r").metadata.consolidated) == ["model", "model/t2m", "time"]
    assert run("consolidate", "c.zarr/model", "--json").json == {"path": "model", "nodes": ["t2m"]}
    assert run("consolidate", "c.zarr/model").out == "consolidated the metadata of 1 node\n"


def test_consolidate_refuses_what_is_not_a_group(climate, run):
    message = "zarrlite consolidate: c.zarr/time is an array, which has no nodes below it; name a group\n"
    assert run("consolidate", "c.zarr/time") == (3, "", message)
    assert run("consolidate", "nope") == (3, "", "zarrlite consolidate: nope does not exist\n")

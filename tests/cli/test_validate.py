"""`zarrlite validate` reports every fault with its pointer, rule and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import zarrlite

SCHEMAS = Path(zarrlite.__file__).parents[1] / "spec_fixtures" / "schemas"
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
    "chunk_key_encoding": "default",
    "fill_value": 0,
    "codecs": ["bytes", {"name": "pad", "configuration": {"location": "start", "nbytes": 4}}],
}
CORE = "Zarr v3 core specification"


def write(path: str, document: object) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_valid_hierarchy_has_no_faults(hierarchy, run):
    assert run("validate", "a.zarr") == (0, "3 documents, 0 faults\n", "")
    assert run("validate", "a.zarr/raw/image/zarr.json").out == "1 document, 0 faults\n"
    assert run("validate", "a.zarr", "--json").json == {"documents": 3, "valid": True, "faults": [], "warnings": []}


def test_a_fault_is_shown_with_pointer_rule_and_remedy(hierarchy, run):
    codecs = ["bytes", {"name": "pad", "configuration": {"location": "start", "nbytes": -4}}]
    write("x.json", {**ARRAY, "codecs": codecs, "shape": "4"})
    ran = run("validate", "x.json")
    assert ran.code == 1
    assert ran.out == (
        'x.json#/shape: must be an array, not "4"\n'
        f"  rule   {CORE}, metadata of arrays and groups: shape\n"
        "  remedy use a value of the required type\n"
        "x.json#/codecs/1/configuration/nbytes: must be an integer from 0 to 9223372036854775807, not -4\n"
        "  rule   specification of the codec pad\n"
        "  remedy use an allowed value\n"
        "1 document, 2 faults\n"
    )


FAULTS = {
    "{": ("", "json", f"{CORE}, JSON documents"),
    "[]": ("", "type", f"{CORE}, metadata documents"),
    json.dumps({**ARRAY, "x": 1}): ("/x", "unknown-member", f"{CORE}, metadata of arrays and groups: x"),
    json.dumps({**ARRAY, "codecs": ["nope", "bytes"]}): (
        "/codecs/0",
        "unknown-extension",
        f"{CORE}, metadata of arrays and groups: codecs",
    ),
    json.dumps({**ARRAY, "chunk_key_encoding": {"name": "suffix", "configuration": {"suffix": "/"}}}): (
        "/chunk_key_encoding/configuration/suffix",
        "value",
        "specification of the chunk key encoding suffix",
    ),
}


@pytest.mark.parametrize(("text", "expected"), FAULTS.items(), ids=[kind for _, kind, _ in FAULTS.values()])
def test_the_rule_names_the_innermost_extension_or_the_core_specification(text, expected, hierarchy, run):
    ran = run("validate", write("x.json", text), "--json")
    fault = ran.json["faults"][0]
    assert (fault["pointer"], fault["kind"], fault["rule"]) == expected
    assert ran.code == (4 if fault["kind"] == "unknown-extension" else 1)


def test_a_dash_reads_a_document_from_standard_input(hierarchy, process):
    ran = process("validate", "-", stdin=json.dumps({**ARRAY, "fill_value": 300}))
    assert ran.code == 1
    assert ran.out.startswith("-#/fill_value: ")


def test_lenient_repairs_documents_and_reports_each_repair(hierarchy, run):
    document = {name: value for name, value in ARRAY.items() if name != "fill_value"}
    assert run("validate", write("x.json", document)).code == 1
    ran = run("validate", "x.json", "--lenient")
    assert ran == (0, "x.json#/fill_value: is missing; the zero of the data type is used\n1 document, 0 faults\n", "")


def test_nodes_that_cannot_be_reached_are_reported(hierarchy, run):
    write("a.zarr/lost/array/zarr.json", ARRAY)
    ran = run("validate", "a.zarr")
    assert ran.code == 1
    assert ran.out.startswith("lost/zarr.json#: is missing; the node 'lost/array' cannot be reached\n")
    below = run("validate", "a.zarr/lost")
    assert (below.code, below.out.splitlines()[0]) == (
        1,
        "lost/zarr.json#: is missing; the nodes below cannot be reached",
    )


def test_consolidated_metadata_is_compared_with_the_documents(hierarchy, run):
    zarrlite.consolidate_metadata("a.zarr")
    assert run("validate", "a.zarr").code == 0
    document = json.loads(Path("a.zarr/raw/image/zarr.json").read_text())
    write("a.zarr/raw/image/zarr.json", {**document, "attributes": {"new": 1}})
    write("a.zarr/more/zarr.json", {"zarr_format": 3, "node_type": "group"})
    faults = {(f["pointer"], f["problem"]) for f in run("validate", "a.zarr", "--json").json["faults"]}
    assert faults == {
        ("/consolidated_metadata/metadata/raw~1image", "differs from raw/image/zarr.json"),
        ("/consolidated_metadata/metadata", "lacks a copy of more/zarr.json"),
    }


@pytest.mark.parametrize(
    ("member", "pointer", "message"),
    [
        (None, "", "must be an object, not null"),
        ({"kind": "inline", "metadata": {}}, "/must_understand", "is required and missing"),
    ],
)
def test_old_forms_of_consolidated_metadata_are_reported_and_can_be_opened(member, pointer, message, hierarchy, run):
    old = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": member}
    documents = {"g": old, "g/h": {"zarr_format": 3, "node_type": "group"}}
    new = {**old, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": documents}}
    pointers = ["", "/metadata/g"]
    for content, prefix in ((old, pointers[0]), (new, pointers[1])):
        path = f"x/{len(prefix)}/zarr.json"
        Path(path).parent.mkdir(parents=True)
        write(path, content)
        consolidated = f"{prefix and '/consolidated_metadata'}{prefix}/consolidated_metadata"
        (fault,) = run("validate", path, "--json").json["faults"]
        assert (fault["pointer"], fault["problem"]) == (consolidated + pointer, message)
        assert run("validate", path, "--lenient").code == 0
        assert zarrlite.open(Path(path).parent, mode="r").metadata.node_type == "group"


def test_published_schemas_are_applied_to_every_extension(hierarchy, run):
    codecs = ["bytes", {"name": "pad", "configuration": {"location": "middle", "nbytes": 4}}]
    ran = run("validate", write("x.json", {**ARRAY, "codecs": codecs}), "--schemas", SCHEMAS, "--json")
    assert ran.code == 1
    schema = [f for f in ran.json["faults"] if f["problem"].startswith("violates the schema of pad: ")]
    assert [f["pointer"] for f in schema] == ["/codecs/1/configuration/location"]
    assert run("validate", write("y.json", ARRAY), "--schemas", SCHEMAS).code == 0


def test_locations_without_documents_or_schemas_are_refused(hierarchy, run):
    assert run("validate", "nope") == (3, "", "zarrlite validate: nope has no zarr.json\n")
    message = "zarrlite validate: --schemas a.zarr must contain NAME.schema.json or NAME/schema.json\n"
    assert run("validate", "a.zarr", "--schemas", "a.zarr") == (2, "", message)
    write("s/pad.schema.json", "{")
    ran = run("validate", "a.zarr", "--schemas", "s")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("zarrlite validate: s/pad.schema.json is not a JSON Schema: ")


OLD_FORMS = {
    "/attributes/x": {"attributes": {"x": float("nan")}},
    "/dimension_names": {"dimension_names": None},
    "/codecs/0": {"codecs": [{"name": "endian", "configuration": {"endian": "little"}}]},
    "/fill_value": {"data_type": "bool", "fill_value": 1},
}


@pytest.mark.parametrize(("pointer", "members"), OLD_FORMS.items(), ids=OLD_FORMS)
def test_faults_that_readers_repair_silently_are_reported(pointer, members, hierarchy, run):
    write("x/zarr.json", {**ARRAY, **members})
    assert zarrlite.open("x", mode="r").shape == tuple(ARRAY["shape"])
    (fault,) = run("validate", "x", "--json").json["faults"]
    assert fault["pointer"] == pointer
    assert run("validate", "x", "--lenient").code == 0


def test_reserved_names_are_reported(hierarchy, run):
    write("a.zarr/__x/zarr.json", {"zarr_format": 3, "node_type": "group"})
    (fault,) = run("validate", "a.zarr", "--json").json["faults"]
    assert (fault["document"], fault["pointer"], fault["kind"]) == ("__x/zarr.json", "", "value")
    message = "must not be the document of a node: node names must not start with '__', a reserved prefix"
    assert fault["problem"] == message


def test_consolidated_copies_with_nan_are_equal_to_their_documents(hierarchy, run):
    write("a.zarr/n/zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {"x": float("nan")}})
    zarrlite.consolidate_metadata("a.zarr")
    faults = {(f["document"], f["pointer"]) for f in run("validate", "a.zarr", "--json").json["faults"]}
    assert faults == {
        ("n/zarr.json", "/attributes/x"),
        ("zarr.json", "/consolidated_metadata/metadata/n/attributes/x"),
    }

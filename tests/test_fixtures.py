"""The fixtures of spec_fixtures/, run one by one; and the fixtures themselves, policed."""

from __future__ import annotations

import base64
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import registry
from zarrlite.errors import MetadataError, MetadataWarning
from zarrlite.metadata import parse_node

ROOT = Path(__file__).parents[1] / "spec_fixtures"
FILES = sorted(path for folder in ("core", "optional") for path in (ROOT / folder).glob("*.json"))
DOCUMENTS = {path: json.loads(path.read_text("utf-8")) for path in FILES}
CASES = [case for document in DOCUMENTS.values() for case in document["cases"]]
SCHEMA = json.loads((ROOT / "schema.json").read_text("utf-8"))


def cases(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in CASES if c["kind"] == kind])


def decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


# metadata


def content(case: dict[str, Any]) -> bytes:
    return decode(case["text_base64"]) if "text_base64" in case else json.dumps(case["document"]).encode()


def check_verdict(case: dict[str, Any], verdict: dict[str, Any], *, strict: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if "refuse" in verdict:
            with pytest.raises(MetadataError) as error:
                parse_node(content(case), strict=strict)
            assert {"pointer": error.value.pointer, "fault": error.value.kind} == verdict["refuse"]
            return
        metadata = parse_node(content(case), strict=strict)
    assert [w.message.pointer for w in caught if isinstance(w.message, MetadataWarning)] == verdict.get("warnings", [])
    assert len(caught) == len(verdict.get("warnings", []))
    written = metadata.to_json()
    wanted = verdict.get("canonical", written)
    assert written == (case["document"] if wanted == "unchanged" else wanted)
    assert parse_node(json.dumps(written).encode()).to_json() == written


@cases("metadata")
def test_documents_have_their_verdict(case: dict[str, Any]) -> None:
    check_verdict(case, case, strict=True)


@cases("metadata")
def test_documents_have_their_verdict_in_lenient_mode(case: dict[str, Any]) -> None:
    check_verdict(case, case.get("lenient", case), strict=False)


@cases("metadata")
def test_validate_agrees_and_lists_the_first_fault_first(case: dict[str, Any]) -> None:
    found = [{"pointer": fault.pointer, "fault": fault.kind} for fault in zarrlite.validate(content(case))]
    assert found[:1] == ([case["refuse"]] if "refuse" in case else [])


# keys


@cases("keys")
def test_chunk_keys_go_both_ways(case: dict[str, Any]) -> None:
    encoding = registry.chunk_key_encodings.coerce(case["encoding"])
    for pair in case["pairs"]:
        assert encoding.encode(tuple(pair["coords"])) == pair["key"]
        assert encoding.decode(pair["key"], case["ndim"]) == tuple(pair["coords"])
    for key in case["refused"]:
        assert encoding.decode(key, case["ndim"]) is None, key


# chunks


def chunk_document(case: dict[str, Any]) -> dict[str, Any]:
    """An array of one chunk."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": case["shape"],
        "data_type": case["data_type"],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": case["shape"]}},
        "chunk_key_encoding": "default",
        "fill_value": case["fill_value"],
        "codecs": case["codecs"],
    }


def elements(case: dict[str, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if "decoded" in case:
        return np.frombuffer(decode(case["decoded"]), dtype.newbyteorder("<")).reshape(case["shape"])
    values = case["values"] if case["data_type"] == "string" else [decode(value) for value in case["values"]]
    array = np.empty(len(values), dtype)
    array[:] = values
    return array.reshape(case["shape"])


def assert_same(found: Any, wanted: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Equal, bit for bit where elements have a size."""
    array = np.asarray(found, dtype)
    assert array.shape == wanted.shape
    if dtype.hasobject or dtype.kind == "T":
        assert array.tolist() == wanted.tolist()
    else:
        assert array.astype(dtype.newbyteorder("<")).tobytes() == wanted.tobytes()


@cases("codecs")
def test_chunks_are_decoded_and_encoded(case: dict[str, Any]) -> None:
    key = "/".join(["c", *("0" for _ in case["shape"])])
    store = zarrlite.MemoryStore({"zarr.json": json.dumps(chunk_document(case)).encode(), key: decode(case["encoded"])})
    array = zarrlite.open_array(store, mode="r+", write_empty_chunks=True)
    wanted = elements(case, array.dtype)
    assert_same(array[...], wanted, array.dtype)
    store.erase(key)
    array[...] = wanted.astype(array.dtype)
    assert_same(array[...], wanted, array.dtype)
    if not case.get("decode_only"):
        assert bytes(store.get(key) or b"") == decode(case["encoded"])


# arrays


def open_case(case: dict[str, Any]) -> zarrlite.Array:
    values = {key: json.dumps(document).encode() for key, document in case["documents"].items()}
    values |= {key: decode(value) for key, value in case["values"].items()}
    return zarrlite.open_array(zarrlite.MemoryStore(values), mode="r", path=case["path"])


def index(selection: list[list[int]] | None) -> Any:
    return ... if selection is None else tuple(slice(*bounds) for bounds in selection)


@cases("array")
def test_arrays_are_read(case: dict[str, Any]) -> None:
    array = open_case(case)
    for read in case["reads"]:
        wanted = np.frombuffer(decode(read["data"]), array.dtype.newbyteorder("<")).reshape(read["shape"])
        assert_same(array[index(read["selection"])], wanted, array.dtype)


@cases("damage")
def test_damage_is_refused(case: dict[str, Any]) -> None:
    array = open_case(case)
    with pytest.raises(zarrlite.DataError) as error:
        array[index(case["selection"])]
    assert type(error.value).__name__ == case["error"]
    assert error.value.key in case["values"]


# the fixtures themselves


def test_ids_are_unique_and_name_their_file() -> None:
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    for path, document in DOCUMENTS.items():
        prefix = path.relative_to(ROOT).with_suffix("").as_posix() + "/"
        assert all(case["id"].startswith(prefix) and len(case["id"]) > len(prefix) for case in document["cases"])


def test_there_are_enough_of_each_kind() -> None:
    refused = sum("refuse" in case for case in CASES)
    accepted = sum(case.get("accept", False) for case in CASES)
    assert refused >= 200
    assert accepted >= 60
    assert {case["kind"] for case in CASES} == {"metadata", "keys", "codecs", "array", "damage"}


def test_descriptions_state_facts() -> None:
    for case in CASES:
        assert not re.search(r"\b(should|shall|ought|test)\b", case["description"]), case["id"]
        assert not case["description"].endswith("."), case["id"]


def test_quotes_have_at_most_a_dozen_words() -> None:
    for case in CASES:
        assert len(case.get("spec", {}).get("quote", "").split()) <= 12, case["id"]
        assert ("spec" in case) != ("ruling" in case), case["id"]


def test_fault_kinds_and_error_names_are_those_of_the_library() -> None:
    faults = set(SCHEMA["$defs"]["fault"]["enum"])
    assert {case["refuse"]["fault"] for case in CASES if "refuse" in case} == faults
    for name in SCHEMA["$defs"]["error"]["enum"]:
        assert issubclass(getattr(zarrlite, name), zarrlite.DataError)


def matches(value: Any, schema: dict[str, Any]) -> bool:
    """The part of JSON Schema that schema.json uses."""
    if "$ref" in schema and not matches(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema and not any(_is_type(value, name) for name in np.atleast_1d(schema["type"]).tolist()):
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return False
        if not all(matches(item, schema.get("items", {})) for item in value):
            return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        if not set(schema.get("required", ())) <= set(value):
            return False
        for name, member in value.items():
            rule = properties.get(name, schema.get("additionalProperties", True))
            if rule is False or (isinstance(rule, dict) and not matches(member, rule)):
                return False
    return "oneOf" not in schema or sum(matches(value, option) for option in schema["oneOf"]) == 1


def _is_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    types = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}
    return name in types and isinstance(value, types[name])


KEYWORDS = {"$ref", "const", "enum", "type", "minLength", "pattern", "minItems", "items", "properties", "required"}
KEYWORDS |= {"additionalProperties", "oneOf", "$schema", "$id", "$defs", "title", "description"}


def keywords(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for name in ("properties", "$defs"):
        for inner in schema.get(name, {}).values():
            found |= keywords(inner)
    for inner in (schema.get("items"), schema.get("additionalProperties"), *schema.get("oneOf", ())):
        found |= keywords(inner)
    return found


def test_the_schema_uses_only_what_is_understood_here() -> None:
    assert keywords(SCHEMA) <= KEYWORDS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_fit_the_schema(path: Path) -> None:
    assert {"topic", "cases"} == set(DOCUMENTS[path])
    for case in DOCUMENTS[path]["cases"]:
        assert matches(case, SCHEMA["$defs"]["case"]), case["id"]
    assert matches(DOCUMENTS[path], SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"kind": "other"},
        {"unknown": 1},
        {"refuse": {"pointer": "x", "fault": "value"}},
        {"refuse": {"pointer": "", "fault": "wrong"}},
        {"refuse": {"pointer": ""}},
        {"accept": True},
        {"description": 1},
    ],
    ids=str,
)
def test_the_schema_refuses_what_is_wrong(change: dict[str, Any]) -> None:
    case = next(case for case in CASES if "refuse" in case)
    assert not matches({**case, **change}, SCHEMA["$defs"]["case"])

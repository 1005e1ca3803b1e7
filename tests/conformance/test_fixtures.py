"""Run every case in spec_fixtures/ with the library, and check the rules that cases follow."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from fixture_files import (
    CASES,
    DOCUMENTS,
    FILES,
    PROPOSALS,
    ROOT,
    assert_read,
    assert_same,
    cases,
    content,
    decode,
    index,
    stored,
)

import zarrlite
from zarrlite.errors import MetadataError, MetadataWarning
from zarrlite.extensions import registry
from zarrlite.metadata.documents import parse_node

SCHEMA = json.loads((ROOT / "schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
KINDS = {"metadata", "keys", "codecs", "array", "damage", "reads", "store", "refusal"}


# metadata


def check_verdict(case: dict[str, Any], verdict: dict[str, Any], *, strict: bool) -> None:
    """Assert that the parser refuses or accepts a document, and issues warnings, as the verdict says."""
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
    expected = verdict.get("canonical", written)
    assert written == (case["document"] if expected == "unchanged" else expected)
    assert parse_node(json.dumps(written).encode()).to_json() == written


@cases("metadata")
def test_strict_parser_gives_the_verdict_of_the_case(case: dict[str, Any]) -> None:
    check_verdict(case, case, strict=True)


@cases("metadata")
def test_lenient_parser_gives_the_verdict_of_the_case(case: dict[str, Any]) -> None:
    check_verdict(case, case.get("lenient", case), strict=False)


@cases("metadata")
def test_validate_lists_the_fault_of_the_case_first(case: dict[str, Any]) -> None:
    faults = [{"pointer": fault.pointer, "fault": fault.kind} for fault in zarrlite.validate(content(case))]
    expected = case.get("refuse") or case.get("reported")
    assert faults[:1] == ([expected] if expected else [])


# keys


@cases("keys")
def test_chunk_keys_are_encoded_and_decoded(case: dict[str, Any]) -> None:
    encoding = registry.chunk_key_encodings.coerce(case["encoding"])
    for pair in case["pairs"]:
        assert encoding.encode(tuple(pair["coords"])) == pair["key"]
        assert encoding.decode(pair["key"], case["ndim"]) == tuple(pair["coords"])
    for key in case["refused"]:
        assert encoding.decode(key, case["ndim"]) is None, key


# chunks


def chunk_document(case: dict[str, Any]) -> dict[str, Any]:
    """Return the document of an array with one chunk."""
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
    """Return the decoded elements of a `codecs` case."""
    if "decoded" in case:
        return np.frombuffer(decode(case["decoded"]), dtype.newbyteorder("<")).reshape(case["shape"])
    values = case["values"] if case["data_type"] == "string" else [decode(value) for value in case["values"]]
    array = np.empty(len(values), dtype)
    array[:] = values
    return array.reshape(case["shape"])


@cases("codecs")
def test_chunks_are_decoded_and_encoded(case: dict[str, Any]) -> None:
    key = "/".join(["c", *("0" for _ in case["shape"])])
    store = zarrlite.MemoryStore({"zarr.json": json.dumps(chunk_document(case)).encode(), key: decode(case["encoded"])})
    array = zarrlite.open_array(store, mode="r+", write_empty_chunks=True)
    expected = elements(case, array.dtype)
    assert_same(array[...], expected, array.dtype)
    store.erase(key)
    written = expected if "written" not in case else elements({**case, "decoded": case["written"]}, array.dtype)
    array[...] = written.astype(array.dtype)
    assert_same(array[...], expected, array.dtype)
    if not case.get("decode_only"):
        assert bytes(store.get(key) or b"") == decode(case["encoded"])


# arrays


def open_case(case: dict[str, Any]) -> zarrlite.Array:
    return zarrlite.open_array(zarrlite.MemoryStore(stored(case)), mode="r", path=case["path"])


@cases("array")
def test_selections_are_read(case: dict[str, Any]) -> None:
    array = open_case(case)
    for read in case["reads"]:
        assert_read(array[index(read["selection"])], read, array.dtype)


@cases("damage")
def test_damage_is_refused(case: dict[str, Any]) -> None:
    array = open_case(case)
    with pytest.raises(zarrlite.DataError) as error:
        array[index(case["selection"])]
    assert type(error.value).__name__ == case["error"]
    key = error.value.key or ""
    if array.metadata.storage_transformers:  # the error names a chunk key, not a stored key
        key = key.removeprefix(f"{case['path']}/")
        assert array.metadata.chunk_key_encoding.decode(key, array.ndim) is not None
    else:
        assert key in case["values"]


@cases("refusal")
def test_documents_of_other_versions_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(MetadataError) as error:
        zarrlite.open(zarrlite.MemoryStore(stored(case)), mode="r", path=case["path"])
    fault = error.value
    assert {"document": fault.document, "pointer": fault.pointer, "fault": fault.kind} == case["refuse"]


# rules for cases


def test_ids_are_unique_and_name_their_file() -> None:
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids))
    for path, document in DOCUMENTS.items():
        prefix = path.relative_to(ROOT).with_suffix("").as_posix() + "/"
        assert all(case["id"].startswith(prefix) and len(case["id"]) > len(prefix) for case in document["cases"])


def test_suite_has_all_kinds_200_refused_and_60_accepted_documents() -> None:
    refused = sum("refuse" in case for case in CASES)
    accepted = sum(case.get("accept", False) for case in CASES)
    assert refused >= 200
    assert accepted >= 60
    assert {case["kind"] for case in CASES} == KINDS


def is_refusal(case: dict[str, Any]) -> bool:
    return "refuse" in case or "error" in case or any("error" in op for op in case.get("operations", ()))


@pytest.mark.parametrize("name", PROPOSALS)
def test_every_proposal_has_at_least_60_cases_and_a_third_are_refusals(name: str) -> None:
    proposal_cases = [case for case in CASES if case["id"].startswith(f"proposals/{name}/")]
    assert len(proposal_cases) >= 60
    assert 3 * sum(map(is_refusal, proposal_cases)) >= len(proposal_cases)


def test_descriptions_state_facts() -> None:
    for case in CASES:
        assert not re.search(r"\b(should|shall|ought|test)\b", case["description"]), case["id"]
        assert not case["description"].endswith("."), case["id"]


def test_cases_have_a_ruling_or_a_quote_of_at_most_twelve_words() -> None:
    for case in CASES:
        assert len(case.get("spec", {}).get("quote", "").split()) <= 12, case["id"]
        if case["id"].startswith("proposals/"):  # a case may have both, because a ruling can contradict the quote
            assert "spec" in case or "ruling" in case, case["id"]
        else:
            assert ("spec" in case) != ("ruling" in case), case["id"]


def test_schema_lists_the_fault_kinds_and_errors_of_the_library() -> None:
    faults = set(SCHEMA["$defs"]["fault"]["enum"])
    assert {case["refuse"]["fault"] for case in CASES if "refuse" in case} == faults
    for name in SCHEMA["$defs"]["error"]["enum"]:
        assert issubclass(getattr(zarrlite, name), zarrlite.DataError)


def matches_schema(case: dict[str, Any]) -> bool:
    return VALIDATOR.is_valid({"topic": "one", "cases": [case]})


def test_fixture_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_match_the_schema(path: Path) -> None:
    assert {"topic", "cases"} == set(DOCUMENTS[path])
    for case in DOCUMENTS[path]["cases"]:
        assert matches_schema(case), case["id"]


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
def test_schema_refuses_invalid_cases(change: dict[str, Any]) -> None:
    case = next(case for case in CASES if "refuse" in case)
    assert matches_schema(case)
    assert not matches_schema({**case, **change})


@pytest.mark.parametrize(
    "op",
    [
        {"op": "get", "key": "c/0"},
        {"op": "get", "key": "c/0", "value": "", "error": "DataError"},
        {"op": "get", "key": "c/0", "value": "A"},
        {"op": "get", "key": "c/0", "value": None, "rounds": [[["c/0", 0]]]},
        {"op": "get", "key": "c/0", "error": "KeyError"},
        {"op": "size", "key": "c/0", "size": -1},
        {"op": "list_dir", "prefix": "c/", "keys": []},
        {"op": "rename", "key": "c/0"},
    ],
    ids=str,
)
def test_schema_refuses_invalid_operations(op: dict[str, Any]) -> None:
    case = next(case for case in CASES if case["kind"] == "store")
    assert not matches_schema({**case, "operations": [op]})

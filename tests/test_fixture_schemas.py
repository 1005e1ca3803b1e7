"""The published schemas of the proposals: their verdict on every object in the fixtures is that of the parser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from fixture_files import CASES, PROPOSALS, ROOT, content

import zarrlite

VALIDATORS = {
    name: jsonschema.Draft202012Validator(json.loads((ROOT / f"schemas/{name}.schema.json").read_text("utf-8")))
    for name in PROPOSALS
}
URIS = VALIDATORS["sharding"].schema["oneOf"][1]["properties"]["extension"]["enum"]
NAMES = {**{name: name for name in PROPOSALS}, **dict.fromkeys(URIS, "sharding")}

# JSON Schema takes 4.0 for an integer
FLOATS = {
    "proposals/concat-parts/configuration/size-float",
    "proposals/offset/configuration/offset-float",
    "proposals/pad/configuration/nbytes-float",
    "proposals/sharding/configuration/item-float",
}

Found = tuple[str, str, Any]  # the proposal, the pointer of the object, the object


def extensions(document: dict[str, Any]) -> Iterator[Found]:
    """The objects of the proposals in a document, each at its own extension point."""
    yield from find(document.get("chunk_key_encoding"), "/chunk_key_encoding", ("suffix",))
    yield from find_all(document.get("codecs"), "/codecs", ("pad", "offset"))
    yield from find_all(document.get("storage_transformers"), "/storage_transformers", ("concat-parts", "sharding"))


def find_all(values: Any, pointer: str, wanted: tuple[str, ...]) -> Iterator[Found]:
    for i, value in enumerate(values if isinstance(values, list) else ()):
        yield from find(value, f"{pointer}/{i}", wanted)


def find(value: Any, pointer: str, wanted: tuple[str, ...]) -> Iterator[Found]:
    """One object, or what is inside of it if it is a shard."""
    members = value if isinstance(value, dict) else {"name": value}
    name = members.get("name", members.get("extension"))
    proposal = NAMES.get(name) if isinstance(name, str) else None
    if proposal in wanted:
        yield proposal, pointer, value
    inner = members.get("configuration")
    if name == "sharding_indexed" and isinstance(inner, dict):
        for chain in ("codecs", "index_codecs"):
            yield from find_all(inner.get(chain), f"{pointer}/configuration/{chain}", wanted)


def documents(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every document that a case holds."""
    if case["kind"] == "metadata":
        try:
            document = json.loads(content(case))
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            yield document
    yield from case.get("documents", {}).values()


SEEN = [
    pytest.param(case["id"], document, found, id=f"{case['id']}{found[1]}")
    for case in CASES
    for document in documents(case)
    for found in extensions(document)
]


@pytest.mark.parametrize("name", PROPOSALS)
def test_the_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATORS[name].schema)


@pytest.mark.parametrize("name", PROPOSALS)
def test_every_schema_accepts_and_refuses(name: str) -> None:
    verdicts = [
        VALIDATORS[name].is_valid(value) for _, _, (found, _, value) in (p.values for p in SEEN) if found == name
    ]
    assert verdicts.count(True) >= 20
    assert verdicts.count(False) >= 20


@pytest.mark.parametrize(("case_id", "document", "found"), SEEN)
def test_schema_and_parser_agree(case_id: str, document: dict[str, Any], found: Found) -> None:
    name, pointer, value = found
    inside = [
        fault.kind
        for fault in zarrlite.validate(json.dumps(document).encode())
        if fault.pointer == pointer or fault.pointer.startswith(f"{pointer}/")
    ]
    if not VALIDATORS[name].is_valid(value):
        assert inside, "the schema refuses, the parser does not"
    elif case_id not in FLOATS:
        # what two members say of each other, or of the array, is beyond JSON Schema
        assert set(inside) <= {"conflict"}, "the parser refuses, the schema does not"


@pytest.mark.parametrize("kind", ["keys", "codecs", "store"])
def test_what_other_cases_hold_fits(kind: str) -> None:
    for case in (case for case in CASES if case["kind"] == kind):
        for name, pointer, value in extensions({"chunk_key_encoding": case.get("encoding"), **case}):
            assert VALIDATORS[name].is_valid(value), case["id"] + pointer


def test_the_exceptions_are_cases() -> None:
    assert {case["id"] for case in CASES} >= FLOATS

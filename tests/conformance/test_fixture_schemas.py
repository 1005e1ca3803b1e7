"""The published schemas of the proposals and the parser agree about every object in the fixtures."""

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

# cases that only the parser refuses, because 4.0 is an integer in JSON Schema
FLOATS = {
    "proposals/concat-parts/configuration/size-float",
    "proposals/offset/configuration/offset-float",
    "proposals/pad/configuration/nbytes-float",
    "proposals/sharding/configuration/item-float",
}

Located = tuple[str, str, Any]  # name of the proposal, JSON pointer of the object, and the object itself


def extensions(document: dict[str, Any]) -> Iterator[Located]:
    """Yield every use of a proposal in a document, if it is at the extension point that the proposal defines."""
    yield from find(document.get("chunk_key_encoding"), "/chunk_key_encoding", ("suffix",))
    yield from find_all(document.get("codecs"), "/codecs", ("pad", "offset"))
    yield from find_all(document.get("storage_transformers"), "/storage_transformers", ("concat-parts", "sharding"))


def find_all(values: Any, pointer: str, proposals: tuple[str, ...]) -> Iterator[Located]:
    for i, value in enumerate(values if isinstance(values, list) else ()):
        yield from find(value, f"{pointer}/{i}", proposals)


def find(value: Any, pointer: str, proposals: tuple[str, ...]) -> Iterator[Located]:
    """Yield the value if it uses one of these proposals, and all uses nested in the codecs of `sharding_indexed`."""
    members = value if isinstance(value, dict) else {"name": value}
    name = members.get("name", members.get("extension"))
    proposal = NAMES.get(name) if isinstance(name, str) else None
    if proposal in proposals:
        yield proposal, pointer, value
    configuration = members.get("configuration")
    if name == "sharding_indexed" and isinstance(configuration, dict):
        for chain in ("codecs", "index_codecs"):
            yield from find_all(configuration.get(chain), f"{pointer}/configuration/{chain}", proposals)


def documents(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every document in a case."""
    if case["kind"] == "metadata":
        try:
            document = json.loads(content(case))
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            yield document
    yield from case.get("documents", {}).values()


OBJECTS = [
    pytest.param(case["id"], document, located, id=f"{case['id']}{located[1]}")
    for case in CASES
    for document in documents(case)
    for located in extensions(document)
]


@pytest.mark.parametrize("name", PROPOSALS)
def test_published_schemas_are_valid_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATORS[name].schema)


@pytest.mark.parametrize("name", PROPOSALS)
def test_fixtures_have_many_valid_and_invalid_objects(name: str) -> None:
    located = [parameters.values[2] for parameters in OBJECTS]
    verdicts = [VALIDATORS[name].is_valid(value) for proposal, _, value in located if proposal == name]
    assert verdicts.count(True) >= 20
    assert verdicts.count(False) >= 20


@pytest.mark.parametrize(("case_id", "document", "located"), OBJECTS)
def test_schema_and_parser_agree(case_id: str, document: dict[str, Any], located: Located) -> None:
    name, pointer, value = located
    faults = [
        fault.kind
        for fault in zarrlite.validate(json.dumps(document).encode())
        if fault.pointer == pointer or fault.pointer.startswith(f"{pointer}/")
    ]
    if not VALIDATORS[name].is_valid(value):
        assert faults, "the schema refuses the object, the parser does not"
    elif case_id not in FLOATS:
        # JSON Schema cannot compare two members with each other or with the array
        assert set(faults) <= {"conflict"}, "the parser refuses the object, the schema does not"


@pytest.mark.parametrize("kind", ["keys", "codecs", "store"])
def test_objects_in_cases_without_documents_match_the_schema(kind: str) -> None:
    for case in (case for case in CASES if case["kind"] == kind):
        for name, pointer, value in extensions({"chunk_key_encoding": case.get("encoding"), **case}):
            assert VALIDATORS[name].is_valid(value), case["id"] + pointer


def test_the_listed_exceptions_are_existing_cases() -> None:
    assert {case["id"] for case in CASES} >= FLOATS

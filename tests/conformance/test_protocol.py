"""The protocol: its schema agrees with the runner's checks, and the shipped harnesses follow it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import zarrlite.tools.conformance
from zarrlite.tools.conformance import protocol
from zarrlite.tools.conformance.implementations import SHIPPED, command_of
from zarrlite.tools.conformance.process import Harness
from zarrlite.tools.conformance.steps import OPERATIONS

FOLDER = Path(zarrlite.tools.conformance.__file__).parent
SCHEMA = json.loads((FOLDER / "protocol.schema.json").read_text("utf-8"))
ANSWERS = {
    "open": "opened",
    "read": "read",
    "rounds": "rounds-read",
    "write": "written",
    "keys": "located",
    "store": "operated",
}
STARTED = {"protocol": 1, "name": "x", "version": "1", "capabilities": {"operations": ["open"], "codecs": ["bytes"]}}


def matches_schema(value: object, name: str) -> bool:
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def is_answer(value: object, op: str) -> bool:
    try:
        protocol.parse_answer(json.dumps(value).encode(), 1, op)
    except protocol.ProtocolError:
        return False
    return True


def test_protocol_schema_is_a_valid_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(ANSWERS) == set(OPERATIONS)


def test_messages_of_the_runner_match_the_schema(suite):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(protocol.start_message())
    assert validator.is_valid(protocol.stop_message())
    operations = set()
    for case in suite.cases[::7]:
        for step in case.steps:
            validator.validate(protocol.run_message(1, case.id, step))
            operations.add(step.op)
    assert operations == set(OPERATIONS)


VALID = [
    ("open", {"document": None}),
    ("open", {"document": {"zarr_format": 3}}),
    ("read", {"shape": [], "data": "AA=="}),
    ("read", {"shape": [2], "values": ["a", ""]}),
    ("write", {"store": {"c/0": "AA==", "zarr.json": ""}}),
    ("rounds", {"rounds": [[["c/0", 0, 4]], []]}),
    ("keys", {"coords": [[1, 2], None]}),
    ("store", {"results": [{"value": None}, {"refused": "no"}], "store": {}}),
    *((op, {"refused": "no"}) for op in OPERATIONS),
    *((op, {"unsupported": "no"}) for op in OPERATIONS),
    ("open", {"refused": "no", "pointer": "/shape", "fault": "type"}),
    ("read", {"refused": "no", "error": "DataError"}),
]
INVALID = [
    ("open", {}),
    ("open", {"document": []}),
    ("open", {"document": None, "verdict": "pass"}),
    ("open", {"refused": True}),
    ("open", {"refused": "no", "document": None}),
    ("open", {"unsupported": "no", "pointer": ""}),
    ("read", {"shape": [1]}),
    ("read", {"shape": 1, "data": ""}),
    ("read", {"shape": [True], "data": ""}),
    ("read", {"shape": [1], "data": "A"}),
    ("read", {"shape": [1], "data": "", "values": []}),
    ("read", {"shape": [1], "values": [None]}),
    ("write", {"store": {"c/0": "-_=="}}),
    ("write", {"store": []}),
    ("rounds", {"rounds": [["c/0", 0, 4]]}),
    ("rounds", {"rounds": [[["c/0", 0]]]}),
    ("keys", {"coords": [1]}),
    ("store", {"results": []}),
    ("store", {"results": [1], "store": {}}),
    ("store", {"results": [{"rounds": 1}], "store": {}}),
]


@pytest.mark.parametrize(("op", "answer"), VALID, ids=str)
def test_valid_answers_are_accepted_by_schema_and_runner(op, answer):
    assert matches_schema({"id": 1, **answer}, ANSWERS[op])
    assert is_answer({"id": 1, **answer}, op)


@pytest.mark.parametrize(("op", "answer"), INVALID, ids=str)
def test_invalid_answers_are_refused_by_schema_and_runner(op, answer):
    assert not matches_schema({"id": 1, **answer}, ANSWERS[op])
    assert not is_answer({"id": 1, **answer}, op)


@pytest.mark.parametrize("line", [b"", b"null", b"[]", b"{", b"NaN", b'{"id": 2, "refused": ""}', b'{"refused": ""}'])
def test_lines_that_are_not_answers_are_refused(line):
    with pytest.raises(protocol.ProtocolError):
        protocol.parse_answer(line, 1, "open")


def test_nan_in_an_answer_is_refused():
    with pytest.raises(protocol.ProtocolError, match="is not JSON"):
        protocol.parse_answer(b'{"id": 1, "document": {"a": NaN}}', 1, "open")


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": None},
        {"version": 1},
        {"protocol": 2},
        {"more": 1},
        {"capabilities": []},
        {"capabilities": {}},
        {"capabilities": {"operations": ["fly"]}},
        {"capabilities": {"operations": [], "codecs": "bytes"}},
        {"capabilities": {"operations": [], "stores": []}},
    ],
    ids=str,
)
def test_invalid_answers_to_start_are_refused_by_schema_and_runner(change):
    assert matches_schema(STARTED, "started")
    assert protocol.parse_start(json.dumps(STARTED).encode()) == STARTED
    assert not matches_schema({**STARTED, **change}, "started")
    with pytest.raises(protocol.ProtocolError):
        protocol.parse_start(json.dumps({**STARTED, **change}).encode())


@pytest.mark.parametrize("file", SHIPPED.values())
def test_shipped_harness_has_fewer_than_sixty_lines(file):
    assert len((FOLDER / "harnesses" / file).read_text("utf-8").splitlines()) < 60


PEERS = {
    "zarr-python": "zarr",
    "zarrs": "zarrs",
    "zarrista": "zarrista",
    "tensorstore": "tensorstore",
    "zarrita": "zarrita",
}


@pytest.mark.parametrize("name", PEERS)
def test_shipped_harness_starts_and_answers(name, suite, request):
    request.getfixturevalue(PEERS[name])
    harness = Harness(command_of(name), 60)
    try:
        assert set(harness.start()["capabilities"]["operations"]) == {"open", "read", "write"}
        case = suite.find("core/arrays/edge-chunk")
        assert harness.ask(case.id, case.steps[0]) == {"shape": [3], "data": "AQID"}
    finally:
        harness.stop()
    assert not harness.running

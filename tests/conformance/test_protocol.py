"""The protocol: its schema and the checks of the runner agree; the shipped harnesses are small and speak it."""

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

HERE = Path(zarrlite.tools.conformance.__file__).parent
SCHEMA = json.loads((HERE / "protocol.schema.json").read_text("utf-8"))
ANSWERS = {
    "open": "opened",
    "read": "read",
    "rounds": "rounds-read",
    "write": "written",
    "keys": "located",
    "store": "operated",
}
STARTED = {"protocol": 1, "name": "x", "version": "1", "capabilities": {"operations": ["open"], "codecs": ["bytes"]}}


def fits(value: object, name: str) -> bool:
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def is_answer(value: object, op: str) -> bool:
    try:
        protocol.parse_answer(json.dumps(value).encode(), 1, op)
    except protocol.ProtocolError:
        return False
    return True


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(ANSWERS) == set(OPERATIONS)


def test_every_message_fits_the_schema(suite):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(protocol.start_message())
    assert validator.is_valid(protocol.stop_message())
    kinds = set()
    for case in suite.cases[::7]:
        for step in case.steps:
            validator.validate(protocol.run_message(1, case.id, step))
            kinds.add(step.op)
    assert kinds == set(OPERATIONS)


RIGHT = [
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
WRONG = [
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


@pytest.mark.parametrize(("op", "answer"), RIGHT, ids=str)
def test_what_is_an_answer(op, answer):
    assert fits({"id": 1, **answer}, ANSWERS[op])
    assert is_answer({"id": 1, **answer}, op)


@pytest.mark.parametrize(("op", "answer"), WRONG, ids=str)
def test_what_is_no_answer(op, answer):
    assert not fits({"id": 1, **answer}, ANSWERS[op])
    assert not is_answer({"id": 1, **answer}, op)


@pytest.mark.parametrize("line", [b"", b"null", b"[]", b"{", b"NaN", b'{"id": 2, "refused": ""}', b'{"refused": ""}'])
def test_lines_that_are_no_answers(line):
    with pytest.raises(protocol.ProtocolError):
        protocol.parse_answer(line, 1, "open")


def test_nan_is_not_json():
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
def test_what_a_harness_cannot_say_about_itself(change):
    assert fits(STARTED, "started")
    assert protocol.parse_start(json.dumps(STARTED).encode()) == STARTED
    assert not fits({**STARTED, **change}, "started")
    with pytest.raises(protocol.ProtocolError):
        protocol.parse_start(json.dumps({**STARTED, **change}).encode())


@pytest.mark.parametrize("file", SHIPPED.values())
def test_a_shipped_harness_has_less_than_sixty_lines(file):
    assert len((HERE / "harnesses" / file).read_text("utf-8").splitlines()) < 60


PEERS = {"zarr-python": "zarr", "zarrs": "zarrs", "tensorstore": "tensorstore", "zarrita": "zarrita"}


@pytest.mark.parametrize("name", PEERS)
def test_a_shipped_harness_starts_and_answers(name, suite, request):
    request.getfixturevalue(PEERS[name])
    harness = Harness(command_of(name), 60)
    try:
        assert set(harness.start()["capabilities"]["operations"]) == {"open", "read", "write"}
        case = suite.find("core/arrays/edge-chunk")
        assert harness.ask(case.id, case.steps[0]) == {"shape": [3], "data": "AQID"}
    finally:
        harness.stop()
    assert not harness.running

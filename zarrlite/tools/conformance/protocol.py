"""The protocol between the runner and a harness: JSON lines, one answer for each message except `stop`.

Rules
- The answer to `start` contains a name, a version and capabilities; the answer to `run` contains the outcome of the
  request; after `stop` the harness exits.
- Answers are checked here against the rules of protocol.schema.json; a line that violates them is garbage.
- The version of the protocol is one number. The number is raised if a harness that follows the old protocol could
  violate the new one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from zarrlite.tools.conformance.extensions import EXTENSION_POINTS
from zarrlite.tools.conformance.steps import OPERATIONS, Step

PROTOCOL = 1
Json = dict[str, Any]
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class ProtocolError(Exception):
    """A line is not a valid answer; the message says why."""


def start_message() -> Json:
    return {"type": "start", "protocol": PROTOCOL}


def run_message(number: int, case: str, step: Step) -> Json:
    """Return the message for one request. Its `id` is `number`, and the answer must have the same `id`."""
    return {"type": "run", "id": number, "case": case, "op": step.op, **step.request}


def stop_message() -> Json:
    return {"type": "stop"}


def to_line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def parse_start(line: bytes) -> Json:
    """Parse the answer to `start`. Raises ProtocolError if the answer is not valid."""
    answer = _parse_object(line)
    _check_members(answer, {"protocol", "name", "version", "capabilities"}, set())
    _check(answer["protocol"] == PROTOCOL, f"protocol must be {PROTOCOL}, not {answer['protocol']!r}")
    _check(isinstance(answer["name"], str) and answer["name"] != "", "name must be a non-empty string")
    _check(isinstance(answer["version"], str), "version must be a string")
    capabilities = answer["capabilities"]
    _check(isinstance(capabilities, dict), "capabilities must be an object")
    _check_members(capabilities, {"operations"}, {*EXTENSION_POINTS, "zarr_format"})
    for name, claims in capabilities.items():
        _check(_is_list_of(claims, str), f"capabilities.{name} must be a list of strings")
    for operation in capabilities["operations"]:
        _check(operation in OPERATIONS, f"operation {operation!r} must be one of {', '.join(OPERATIONS)}")
    return answer


def parse_answer(line: bytes, number: int, op: str) -> Json:
    """Parse the answer to a request, and return it without its id. Raises ProtocolError if the answer is not valid."""
    answer = _parse_object(line)
    _check(type(answer.get("id")) is int and answer["id"] == number, f"id must be {number}")
    answer.pop("id")
    if "refused" in answer or "unsupported" in answer:
        _check_refusal(answer)
    else:
        _CHECK_ANSWER[op](answer)
    return answer


def _check_refusal(answer: Json) -> None:
    if "unsupported" in answer:
        _check_members(answer, {"unsupported"}, set())
    else:
        _check_members(answer, {"refused"}, {"pointer", "fault", "error"})
    _check(all(isinstance(value, str) for value in answer.values()), "the members of a refusal must be strings")


def _check_open(answer: Json) -> None:
    _check_members(answer, {"document"}, set())
    _check(answer["document"] is None or isinstance(answer["document"], dict), "document must be an object or null")


def _check_read(answer: Json) -> None:
    _check_members(answer, {"shape", "values" if "values" in answer else "data"}, set())
    _check(_is_list_of(answer["shape"], int), "shape must be a list of integers")
    if "values" in answer:
        _check(_is_list_of(answer["values"], str), "values must be a list of strings")
    else:
        _check(_is_base64(answer["data"]), "data must be base64")


def _check_write(answer: Json) -> None:
    _check_members(answer, {"store"}, set())
    _check(_is_store(answer["store"]), "store must be an object of base64 strings")


def _check_rounds(answer: Json) -> None:
    _check_members(answer, {"rounds"}, set())
    _check(_is_rounds(answer["rounds"]), "rounds must be lists of [key, start, stop]")


def _check_keys(answer: Json) -> None:
    _check_members(answer, {"coords"}, set())
    coords = answer["coords"]
    valid = isinstance(coords, list) and all(c is None or _is_list_of(c, int) for c in coords)
    _check(valid, "coords must be a list whose items are null or lists of integers")


def _check_store(answer: Json) -> None:
    _check_members(answer, {"results", "store"}, set())
    _check(_is_list_of(answer["results"], dict), "results must be a list of objects")
    rounds_valid = all(_is_rounds(result.get("rounds", [])) for result in answer["results"])
    _check(rounds_valid, "rounds must be lists of [key, start, stop]")
    _check(_is_store(answer["store"]), "store must be an object of base64 strings")


_CHECK_ANSWER: dict[str, Callable[[Json], None]] = {
    "open": _check_open,
    "read": _check_read,
    "write": _check_write,
    "rounds": _check_rounds,
    "keys": _check_keys,
    "store": _check_store,
}


def _check(valid: bool, message: str) -> None:
    if not valid:
        raise ProtocolError(message)


def _check_members(answer: Json, required: set[str], optional: set[str]) -> None:
    for name in sorted(required - answer.keys()):
        raise ProtocolError(f"{name} is missing")
    for name in sorted(answer.keys() - required - optional):
        raise ProtocolError(f"{name} must not be present")


def _parse_object(line: bytes) -> Json:
    try:
        answer = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ProtocolError("is not JSON") from None
    if not isinstance(answer, dict):
        raise ProtocolError("is not a JSON object")
    return answer


def _refuse_constant(text: str) -> None:
    raise ValueError(text)  # NaN and Infinity: Python's parser accepts them, but they are not JSON


def _is_list_of(value: Any, cls: type) -> bool:
    return isinstance(value, list) and all(isinstance(v, cls) and not isinstance(v, bool) for v in value)


def _is_base64(value: Any) -> bool:
    return isinstance(value, str) and _BASE64.fullmatch(value) is not None


def _is_store(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_base64, value.values()))


def _is_rounds(value: Any) -> bool:
    return _is_list_of(value, list) and all(_is_range(item) for ranges in value for item in ranges)


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and _is_list_of(value[1:], int)


def decode(text: str) -> bytes:
    return base64.b64decode(text)

"""The protocol between the runner and a harness: JSON lines, one answer for every message that wants one.

Rules
- `start` is answered with name, version and capabilities; `run` with what came out; after `stop` the harness ends.
- Answers are checked here in the way that protocol.schema.json says; what does not fit is garbage.
- The version is one number; it changes when a harness that was right would no longer be.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from zarrlite.tools.conformance.extensions import POINTS
from zarrlite.tools.conformance.steps import OPERATIONS, Step

PROTOCOL = 1
Json = dict[str, Any]
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class ProtocolError(Exception):
    """A line that is not an answer; says why."""


def start_message() -> Json:
    return {"type": "start", "protocol": PROTOCOL}


def run_message(number: int, case: str, step: Step) -> Json:
    """One request; the number comes back with the answer."""
    return {"type": "run", "id": number, "case": case, "op": step.op, **step.request}


def stop_message() -> Json:
    return {"type": "stop"}


def to_line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def parse_start(line: bytes) -> Json:
    """The answer to `start`."""
    answer = _object(line)
    _members(answer, {"protocol", "name", "version", "capabilities"}, set())
    if answer["protocol"] != PROTOCOL:
        raise ProtocolError(f"speaks protocol {answer['protocol']!r}; this is {PROTOCOL}")
    _check(isinstance(answer["name"], str) and answer["name"] != "", "name must be a text")
    _check(isinstance(answer["version"], str), "version must be a text")
    capabilities = answer["capabilities"]
    _check(isinstance(capabilities, dict), "capabilities must be an object")
    _members(capabilities, {"operations"}, set(POINTS))
    for name, words in capabilities.items():
        _check(_list_of(words, str), f"capabilities.{name} must be a list of texts")
    for word in capabilities["operations"]:
        _check(word in OPERATIONS, f"{word!r} is no operation; there are {', '.join(OPERATIONS)}")
    return answer


def parse_answer(line: bytes, number: int, op: str) -> Json:
    """The answer to a request; raises ProtocolError if it is none."""
    answer = _object(line)
    _check(type(answer.get("id")) is int and answer["id"] == number, f"is not the answer to id {number}")
    answer.pop("id")
    if "refused" in answer or "unsupported" in answer:
        _refusal(answer)
    else:
        _ANSWERS[op](answer)
    return answer


def _refusal(answer: Json) -> None:
    if "unsupported" in answer:
        _members(answer, {"unsupported"}, set())
    else:
        _members(answer, {"refused"}, {"pointer", "fault", "error"})
    _check(all(isinstance(value, str) for value in answer.values()), "a refusal is made of texts")


def _open(answer: Json) -> None:
    _members(answer, {"document"}, set())
    _check(answer["document"] is None or isinstance(answer["document"], dict), "document must be an object or null")


def _read(answer: Json) -> None:
    _members(answer, {"shape", "values" if "values" in answer else "data"}, set())
    _check(_list_of(answer["shape"], int), "shape must be a list of integers")
    if "values" in answer:
        _check(_list_of(answer["values"], str), "values must be a list of texts")
    else:
        _check(_is_base64(answer["data"]), "data must be base64")


def _write(answer: Json) -> None:
    _members(answer, {"store"}, set())
    _check(_is_store(answer["store"]), "store must be an object of base64 texts")


def _rounds(answer: Json) -> None:
    _members(answer, {"rounds"}, set())
    _check(_is_rounds(answer["rounds"]), "rounds must be lists of [key, start, stop]")


def _keys(answer: Json) -> None:
    _members(answer, {"coords"}, set())
    coords = answer["coords"]
    right = isinstance(coords, list) and all(c is None or _list_of(c, int) for c in coords)
    _check(right, "coords must be a list of lists of integers or nulls")


def _store(answer: Json) -> None:
    _members(answer, {"results", "store"}, set())
    _check(_list_of(answer["results"], dict), "results must be a list of objects")
    _check(all(_is_rounds(result.get("rounds", [])) for result in answer["results"]), "rounds must be lists")
    _check(_is_store(answer["store"]), "store must be an object of base64 texts")


_ANSWERS: dict[str, Callable[[Json], None]] = {
    "open": _open,
    "read": _read,
    "write": _write,
    "rounds": _rounds,
    "keys": _keys,
    "store": _store,
}


def _check(right: bool, message: str) -> None:
    if not right:
        raise ProtocolError(message)


def _object(line: bytes) -> Json:
    try:
        answer = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ProtocolError("is not JSON") from None
    if not isinstance(answer, dict):
        raise ProtocolError("is not a JSON object")
    return answer


def _no_number(text: str) -> None:
    raise ValueError(text)  # NaN and Infinity, which Python would read


def _members(answer: Json, required: set[str], optional: set[str]) -> None:
    for name in sorted(required - answer.keys()):
        raise ProtocolError(f"{name} is missing")
    for name in sorted(answer.keys() - required - optional):
        raise ProtocolError(f"{name} has no place here")


def _list_of(value: Any, cls: type) -> bool:
    return isinstance(value, list) and all(isinstance(v, cls) and not isinstance(v, bool) for v in value)


def _is_base64(value: Any) -> bool:
    return isinstance(value, str) and _BASE64.fullmatch(value) is not None


def _is_store(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_base64, value.values()))


def _is_rounds(value: Any) -> bool:
    return _list_of(value, list) and all(_is_range(item) for ranges in value for item in ranges)


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and _list_of(value[1:], int)


def decode(text: str) -> bytes:
    return base64.b64decode(text)

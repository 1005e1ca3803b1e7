"""What an answer is worth.

Rules
- `pass`: the answer is the right one.
- `wrong-data`: there is an answer and it differs: other elements, other stored bytes, another document.
- `accepted-invalid`, `refused-valid`: the other way round than it must be.
- `ignored-extension`: the document needs an extension that the implementation does not claim, and was not refused.
- `unsupported`: such a document was refused, or the harness says that there is no way to do it. A refusal that is right
  for another reason is this too: who refuses every `pad` has not looked at this one. Where nobody knows the extension,
  to refuse it is what the case asks for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Set
from typing import Any, Literal, get_args

import numpy as np

from zarrlite.errors import ZarrliteError
from zarrlite.metadata.documents import parse_node
from zarrlite.nodes.opening import open_array
from zarrlite.stores import MemoryStore
from zarrlite.tools.conformance.extensions import Extension, extensions_of, known
from zarrlite.tools.conformance.protocol import Json, decode
from zarrlite.tools.conformance.steps import Step

Result = Literal[
    "pass",
    "unsupported",
    "refused-valid",
    "accepted-invalid",
    "ignored-extension",
    "wrong-data",
    "garbage",
    "timeout",
    "crash",
]
RESULTS: tuple[Result, ...] = get_args(Result)  # from best to worst
ABSENT = 2**64 - 1
Verdict = tuple[Result, str]
PASS: Verdict = ("pass", "")


def worst(results: Iterable[Result]) -> Result:
    """The result of a case: the worst of its requests, those aside that are not supported."""
    found = list(results)
    return max([r for r in found if r != "unsupported"] or found, key=RESULTS.index)


def judge(step: Step, answer: Json, lacking: Set[Extension], ignored: Set[Extension] = frozenset()) -> Verdict:
    """The result of one request, and what is to say about it; `lacking` is needed and not claimed.

    Nor are the `ignored` ones, which need not be understood: without them data is other data, and proves nothing.
    """
    verdict = _judge(step, answer, lacking)
    if ignored and verdict[0] in ("refused-valid", "wrong-data"):
        names = ", ".join(name for _, name in sorted(ignored))
        return "unsupported", f"left out {names}, as it may"
    return verdict


def _judge(step: Step, answer: Json, lacking: Set[Extension]) -> Verdict:
    if "unsupported" in answer:
        return "unsupported", answer["unsupported"]
    if lacking:
        names = ", ".join(f"{name} ({point})" for point, name in sorted(lacking))
        if "refused" not in answer:
            return "ignored-extension", f"needs {names}, which is not among the capabilities"
        if "refuse" in step.expected and not any(map(known, lacking)):
            return PASS
        return "unsupported", answer["refused"]
    if "refuse" in step.expected:
        if "refused" not in answer:
            return "accepted-invalid", "was not refused"
        return _same_reason(step.expected["refuse"], answer)
    if "refused" in answer:
        return "refused-valid", answer["refused"]
    return _COMPARE[step.op](step, answer)


def _same_reason(expected: Json, answer: Json) -> Verdict:
    """A harness may say where the fault is; what it says is compared."""
    for name, wanted in expected.items():
        if answer.get(name, wanted) != wanted:
            return "wrong-data", f"refused with {name} {answer[name]!r}, not {wanted!r}"
    return PASS


def _opened(step: Step, answer: Json) -> Verdict:
    wanted, found = step.expected["document"], answer["document"]
    if wanted is None or found is None or found == wanted:
        return PASS
    try:
        same = _meaning(found) == _meaning(wanted)
    except (ZarrliteError, RecursionError) as error:
        return "wrong-data", f"is written back as what is not valid: {error}"
    return PASS if same else ("wrong-data", "is written back as another document")


def _meaning(document: Json) -> Json:
    """A document in canonical spelling, without what says nothing."""
    found: Json = parse_node(json.dumps(document).encode()).to_json()
    if set(found.get("dimension_names") or [None]) == {None}:
        found.pop("dimension_names", None)
    inner = found.pop("consolidated_metadata", {}).get("metadata")
    if inner:
        found["consolidated_metadata"] = {path: _meaning(one) for path, one in inner.items()}
    if "codecs" in found:
        found["codecs"] = [_codec_meaning(codec, found["data_type"]) for codec in found["codecs"]]
    empty: dict[str, Any] = {"attributes": {}, "storage_transformers": []}
    return {name: value for name, value in found.items() if name not in empty or value != empty[name]}


def _codec_meaning(codec: Json, data_type: Any) -> Json:
    """Single bytes have no byte order, and blosc needs no typesize where it does not shuffle."""
    name, configuration = codec["name"], dict(codec.get("configuration", {}))
    kind = data_type["name"] if isinstance(data_type, dict) else data_type
    if name == "bytes" and kind in ("bool", "int8", "uint8", "r8", "raw_bytes", "null_terminated_bytes"):
        configuration.pop("endian", None)
    if name == "blosc" and configuration.get("shuffle") == "noshuffle":
        configuration.pop("typesize", None)
    return {**codec, "configuration": configuration}


def _read(step: Step, answer: Json) -> Verdict:
    expected = step.expected
    if answer["shape"] != expected["shape"]:
        return "wrong-data", f"has shape {answer['shape']}, not {expected['shape']}"
    if "values" in expected or "values" in answer:
        return PASS if answer.get("values") == expected.get("values") else ("wrong-data", "other elements were read")
    return PASS if decode(answer["data"]) == decode(expected["data"]) else ("wrong-data", "other elements were read")


def _written(step: Step, answer: Json) -> Verdict:
    """Where encoders are free (shards too), or a chunk is not stored because it is empty, zarrlite reads it."""
    expected, stored = step.expected, answer["store"].get(step.expected["chunk"])
    free = "value" not in expected or ("codecs", "sharding_indexed") in extensions_of(step.document)
    if stored is not None and not free:
        same = decode(stored) == decode(expected["value"])
        return PASS if same else ("wrong-data", "other bytes were stored")
    store = {name: decode(value) for name, value in {**answer["store"], **step.request["store"]}.items()}
    try:
        array = open_array(MemoryStore(store), mode="r")
        found = np.asarray(array[...], array.dtype)
    except ZarrliteError as error:
        return "wrong-data", f"what was stored cannot be read: {error}"
    if "data" in expected:
        same = found.astype(array.dtype.newbyteorder("<")).tobytes() == decode(expected["data"])
    else:
        values = expected["values"] if step.document["data_type"] == "string" else map(decode, expected["values"])
        same = found.ravel().tolist() == list(values)
    return PASS if same else ("wrong-data", "what was stored reads as other elements")


def _rounds(step: Step, answer: Json) -> Verdict:
    same = merged(answer["rounds"]) == merged(step.expected["rounds"])
    return PASS if same else ("wrong-data", "other bytes were read than needed")


def merged(rounds: list[list[list[Any]]]) -> list[list[list[Any]]]:
    """Ranges in order; those that touch or overlap are one."""
    result = []
    for requests in rounds:
        ranges: list[list[Any]] = []
        for key, start, stop in sorted(requests):
            if ranges and ranges[-1][0] == key and start <= ranges[-1][2]:
                ranges[-1][2] = max(stop, ranges[-1][2])
            else:
                ranges.append([key, start, stop])
        result.append(ranges)
    return result


def _keys(step: Step, answer: Json) -> Verdict:
    names, wanted, found = step.request["keys"], step.expected["coords"], answer["coords"]
    if len(found) != len(wanted):
        return "wrong-data", f"{len(found)} answers to {len(wanted)} keys"
    for name, right, got in zip(names, wanted, found, strict=True):
        if got != right:
            return "wrong-data", f"{name!r} is {got}, not {right}"
    return PASS


def _store(step: Step, answer: Json) -> Verdict:
    operations, wanted, found = step.request["operations"], step.expected["results"], answer["results"]
    if len(found) != len(wanted):
        return "wrong-data", f"{len(found)} results of {len(wanted)} operations"
    for i, (op, right, got) in enumerate(zip(operations, wanted, found, strict=True)):
        where = f"operation {i} ({op['op']})"
        if "error" in right:
            if "refused" not in got:
                return "accepted-invalid", f"{where} was not refused"
            if got.get("error", right["error"]) != right["error"]:
                return "wrong-data", f"{where} refused with {got['error']}, not {right['error']}"
        elif "refused" in got:
            return "refused-valid", f"{where}: {got['refused']}"
        elif any(got.get(name) != right[name] for name in right if name != "rounds"):
            return "wrong-data", f"{where} gave something else"
        elif "rounds" in got and "rounds" in right and merged(got["rounds"]) != merged(right["rounds"]):
            return "wrong-data", f"{where} read other bytes than needed"
    return _below(step.expected["store"], answer["store"])


def _below(wanted: Json, found: Json) -> Verdict:
    if sorted(found) != sorted(wanted):
        return "wrong-data", f"below lie {sorted(found)}, not {sorted(wanted)}"
    for key, value in wanted.items():
        stored = decode(found[key])
        if isinstance(value, str):
            same = stored == decode(value)
        else:
            same = _chunks(stored, value["entries"]) == {i: decode(chunk) for i, chunk in value["chunks"].items()}
        if not same:
            return "wrong-data", f"{key} holds something else"
    return PASS


def _chunks(shard: bytes, entries: int) -> dict[str, bytes] | None:
    """The chunks of a shard with a bare index at its end, by their number; None: it is no shard."""
    data_end = len(shard) - 16 * entries
    if data_end < 0:
        return None
    found = {}
    for i in range(entries):
        offset, length = struct.unpack_from("<QQ", shard, data_end + 16 * i)
        if (offset, length) != (ABSENT, ABSENT):
            if offset + length > data_end:
                return None
            found[str(i)] = shard[offset : offset + length]
    return found


_COMPARE: dict[str, Callable[[Step, Json], Verdict]] = {
    "open": _opened,
    "read": _read,
    "write": _written,
    "rounds": _rounds,
    "keys": _keys,
    "store": _store,
}

"""The verdict on an answer.

Rules
- `pass`: the answer is right.
- `wrong-data`: the elements, the stored bytes or the document in the answer are wrong.
- `accepted-invalid`: the request must be refused, but the answer contains data; `refused-valid` is the opposite.
- `ignored-extension`: the implementation accepted a document that requires an extension that it does not claim.
- `unsupported`: the implementation refused a document that requires such an extension, or the harness cannot carry out
  this kind of request. A refusal is `unsupported` even if the case expects one for another reason: an implementation
  that refuses every document with the codec `pad`, for example, has not shown that it detects any other fault. If no
  implementation supports the extension and the case expects a refusal, the result is `pass`.
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
from zarrlite.tools.conformance.extensions import Extension, is_known, required_extensions
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
ABSENT = 2**64 - 1  # offset and length of a missing chunk in the index of a shard
SINGLE_BYTE_TYPES = ("bool", "int8", "uint8", "r8", "raw_bytes", "null_terminated_bytes")
Verdict = tuple[Result, str]
PASS: Verdict = ("pass", "")


def worst_result(results: Iterable[Result]) -> Result:
    """Return the result of a case: the worst result of its requests, or `unsupported` if all of them are."""
    all_results = list(results)
    supported = [result for result in all_results if result != "unsupported"]
    return max(supported or all_results, key=RESULTS.index)


def judge(step: Step, answer: Json, unclaimed: Set[Extension], ignorable: Set[Extension] = frozenset()) -> Verdict:
    """Return the result of one request and a sentence that explains it.

    `unclaimed` are extensions that the document requires and the implementation does not claim. `ignorable` are
    unclaimed extensions that a reader may ignore; data read without them differs, so it is not compared.
    """
    verdict = _judge(step, answer, unclaimed)
    if ignorable and verdict[0] in ("refused-valid", "wrong-data"):
        names = ", ".join(name for _, name in sorted(ignorable))
        return "unsupported", f"ignored {names}, which is allowed"
    return verdict


def _judge(step: Step, answer: Json, unclaimed: Set[Extension]) -> Verdict:
    if "unsupported" in answer:
        return "unsupported", answer["unsupported"]
    if unclaimed:
        names = ", ".join(f"{name} ({point})" for point, name in sorted(unclaimed))
        if "refused" not in answer:
            return "ignored-extension", f"accepted a document that requires {names}, which is not claimed"
        if "refuse" in step.expected and not any(map(is_known, unclaimed)):
            return PASS
        return "unsupported", answer["refused"]
    if "refuse" in step.expected:
        if "refused" not in answer:
            return "accepted-invalid", "was not refused"
        return _compare_reason(step.expected["refuse"], answer)
    if "refused" in answer:
        return "refused-valid", answer["refused"]
    return _COMPARE[step.op](step, answer)


def _pass_if(same: bool, difference: str) -> Verdict:
    return PASS if same else ("wrong-data", difference)


def _compare_reason(expected: Json, answer: Json) -> Verdict:
    """Compare the reason, such as the JSON pointer and the kind of the fault, as far as the harness reports it."""
    for name, value in expected.items():
        if answer.get(name, value) != value:
            return "wrong-data", f"refused with {name} {answer[name]!r}, not {value!r}"
    return PASS


def _compare_open(step: Step, answer: Json) -> Verdict:
    expected, document = step.expected["document"], answer["document"]
    if expected is None or document is None or document == expected:
        return PASS
    try:
        same = _canonical(document) == _canonical(expected)
    except (ZarrliteError, RecursionError) as error:
        return "wrong-data", f"writes back an invalid document: {error}"
    return _pass_if(same, "writes back a different document")


def _canonical(document: Json) -> Json:
    """Return a document in canonical form, without members that have their default value."""
    canonical: Json = parse_node(json.dumps(document).encode()).to_json()
    if set(canonical.get("dimension_names") or [None]) == {None}:
        canonical.pop("dimension_names", None)
    consolidated = canonical.pop("consolidated_metadata", {}).get("metadata")
    if consolidated:
        canonical["consolidated_metadata"] = {path: _canonical(node) for path, node in consolidated.items()}
    if "codecs" in canonical:
        canonical["codecs"] = [_canonical_codec(codec, canonical["data_type"]) for codec in canonical["codecs"]]
    defaults: dict[str, Any] = {"attributes": {}, "storage_transformers": []}
    return {name: value for name, value in canonical.items() if name not in defaults or value != defaults[name]}


def _canonical_codec(codec: Json, data_type: Any) -> Json:
    """Drop members that have no effect: the byte order of single bytes, the typesize of blosc without shuffling."""
    name, configuration = codec["name"], dict(codec.get("configuration", {}))
    type_name = data_type["name"] if isinstance(data_type, dict) else data_type
    if name == "bytes" and type_name in SINGLE_BYTE_TYPES:
        configuration.pop("endian", None)
    if name == "blosc" and configuration.get("shuffle") == "noshuffle":
        configuration.pop("typesize", None)
    return {**codec, "configuration": configuration}


def _compare_read(step: Step, answer: Json) -> Verdict:
    expected = step.expected
    if answer["shape"] != expected["shape"]:
        return "wrong-data", f"has shape {answer['shape']}, not {expected['shape']}"
    if "values" in expected or "values" in answer:
        same = answer.get("values") == expected.get("values")
    else:
        same = decode(answer["data"]) == decode(expected["data"])
    return _pass_if(same, "read wrong elements")


def _compare_write(step: Step, answer: Json) -> Verdict:
    """Compare the stored bytes. If encoders may differ, or no chunk is stored, compare the decoded elements instead."""
    expected, stored = step.expected, answer["store"].get(step.expected["chunk"])
    free = "value" not in expected or ("codecs", "sharding_indexed") in required_extensions(step.document)
    if stored is not None and not free:
        return _pass_if(decode(stored) == decode(expected["value"]), "stored wrong bytes")
    store = {key: decode(value) for key, value in {**answer["store"], **step.request["store"]}.items()}
    try:
        array = open_array(MemoryStore(store), mode="r")
        elements = np.asarray(array[...], array.dtype)
    except ZarrliteError as error:
        return "wrong-data", f"stored bytes that cannot be read: {error}"
    if "data" in expected:
        same = elements.astype(array.dtype.newbyteorder("<")).tobytes() == decode(expected["data"])
    else:
        values = expected["values"] if step.document["data_type"] == "string" else map(decode, expected["values"])
        same = elements.ravel().tolist() == list(values)
    return _pass_if(same, "stored bytes that decode to wrong elements")


def _compare_rounds(step: Step, answer: Json) -> Verdict:
    same = merge_ranges(answer["rounds"]) == merge_ranges(step.expected["rounds"])
    return _pass_if(same, "read more or other bytes than needed")


def merge_ranges(rounds: list[list[list[Any]]]) -> list[list[list[Any]]]:
    """Sort the byte ranges that were read in each round, and merge those that touch or overlap."""
    merged_rounds = []
    for requests in rounds:
        merged: list[list[Any]] = []
        for key, start, stop in sorted(requests):
            if merged and merged[-1][0] == key and start <= merged[-1][2]:
                merged[-1][2] = max(stop, merged[-1][2])
            else:
                merged.append([key, start, stop])
        merged_rounds.append(merged)
    return merged_rounds


def _compare_keys(step: Step, answer: Json) -> Verdict:
    keys, expected, coords = step.request["keys"], step.expected["coords"], answer["coords"]
    if len(coords) != len(expected):
        return "wrong-data", f"has {len(coords)} answers for {len(expected)} keys"
    for key, right, actual in zip(keys, expected, coords, strict=True):
        if actual != right:
            return "wrong-data", f"{key!r} is {actual}, not {right}"
    return PASS


def _compare_store(step: Step, answer: Json) -> Verdict:
    operations, expected, results = step.request["operations"], step.expected["results"], answer["results"]
    if len(results) != len(expected):
        return "wrong-data", f"has {len(results)} results for {len(expected)} operations"
    for i, (op, right, actual) in enumerate(zip(operations, expected, results, strict=True)):
        verdict = _compare_operation(f"operation {i} ({op['op']})", right, actual)
        if verdict != PASS:
            return verdict
    return _compare_stored(step.expected["store"], answer["store"])


def _compare_operation(label: str, expected: Json, actual: Json) -> Verdict:
    if "error" in expected:
        if "refused" not in actual:
            return "accepted-invalid", f"{label} was not refused"
        error = actual.get("error", expected["error"])
        return _pass_if(error == expected["error"], f"{label} refused with {error}, not {expected['error']}")
    if "refused" in actual:
        return "refused-valid", f"{label}: {actual['refused']}"
    if any(actual.get(name) != value for name, value in expected.items() if name != "rounds"):
        return "wrong-data", f"{label} returned something else"
    if "rounds" in actual and "rounds" in expected:
        same = merge_ranges(actual["rounds"]) == merge_ranges(expected["rounds"])
        return _pass_if(same, f"{label} read more or other bytes than needed")
    return PASS


def _compare_stored(expected: Json, actual: Json) -> Verdict:
    """Compare the contents of the store below the storage transformers."""
    if sorted(actual) != sorted(expected):
        return "wrong-data", f"stored the keys {sorted(actual)}, not {sorted(expected)}"
    for key, value in expected.items():
        stored = decode(actual[key])
        if isinstance(value, str):
            same = stored == decode(value)
        else:
            chunks = {number: decode(chunk) for number, chunk in value["chunks"].items()}
            same = _chunks_in_shard(stored, value["entries"]) == chunks
        if not same:
            return "wrong-data", f"stored a wrong value under {key}"
    return PASS


def _chunks_in_shard(shard: bytes, entries: int) -> dict[str, bytes] | None:
    """Return the chunks in a shard, keyed by number. The index must be at the end, uncompressed and without a checksum.

    Returns None if the bytes are not a valid shard.
    """
    index_start = len(shard) - 16 * entries
    if index_start < 0:
        return None
    chunks = {}
    for i in range(entries):
        offset, length = struct.unpack_from("<QQ", shard, index_start + 16 * i)
        if (offset, length) != (ABSENT, ABSENT):
            if offset + length > index_start:
                return None
            chunks[str(i)] = shard[offset : offset + length]
    return chunks


_COMPARE: dict[str, Callable[[Step, Json], Verdict]] = {
    "open": _compare_open,
    "read": _compare_read,
    "write": _compare_write,
    "rounds": _compare_rounds,
    "keys": _compare_keys,
    "store": _compare_store,
}

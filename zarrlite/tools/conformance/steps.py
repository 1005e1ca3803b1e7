"""The steps of a case: requests to an implementation, each with its expected answer.

Rules
- A request is self-contained: it contains all stored values, including documents, as exact bytes.
- The eight kinds of cases become requests for six operations: `open`, `read`, `write`, `rounds`, `keys`, `store`.
- Selections have start, stop and step for every dimension, even if they cover the whole array.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]
OTHER_VERSION: Json = {"zarr_format": 2}  # stands for the documents of a node without a zarr.json
OPERATIONS = ("open", "read", "write", "rounds", "keys", "store")
# members of a store operation that are sent; the others are its expected result
_ARGUMENTS = {"op", "key", "range", "ranges", "prefix", "pieces"}
_MORE_ARGUMENTS = {"set": {"value"}, "erase_values": {"keys"}}


@dataclass(frozen=True, eq=False)
class Step:
    """One request and its expected answer: `{"refuse": ...}`, or the members of the right answer."""

    op: str
    request: Json
    expected: Json

    @cached_property
    def document(self) -> Any:
        """The document of the node that the request is about, or None if it is not JSON."""
        if "document" in self.request:
            return self.request["document"]
        path = self.request["path"]
        text = self.request["store"].get(f"{path}/zarr.json" if path else "zarr.json")
        if text is None:
            return OTHER_VERSION
        try:
            return json.loads(base64.b64decode(text))
        except (ValueError, RecursionError):
            return None


def steps_of(case: Json) -> list[Step]:
    """Return the steps of a case."""
    return _STEPS_OF_KIND[case["kind"]](case)


def encode(value: bytes) -> str:
    """Return bytes in base64, the form in which requests contain them."""
    return base64.b64encode(value).decode("ascii")


def _steps_of_metadata(case: Json) -> list[Step]:
    content = case["text_base64"] if "text_base64" in case else _encode_document(case["document"])
    if "refuse" in case:
        expected = {"refuse": case["refuse"]}
    else:
        canonical = case.get("canonical")
        expected = {"document": case["document"] if canonical == "unchanged" else canonical}
    return [Step("open", {"store": {"zarr.json": content}, "path": ""}, expected)]


def _steps_of_keys(case: Json) -> list[Step]:
    """Return steps that read chunks by their coordinates, and a step that asks for the coordinates of keys.

    The array has chunks of one element, each with a different value: reading an element shows which key was used.
    """
    coords = [pair["coords"] for pair in case["pairs"]]
    keys = [pair["key"] for pair in case["pairs"]]
    shape = [max(c[i] for c in coords) + 1 for i in range(case["ndim"])]
    document = _array_document(shape, [1] * len(shape), chunk_key_encoding=_expand_name(case["encoding"]))
    store = {"zarr.json": _encode_document(document)} | {key: encode(bytes([i + 1])) for i, key in enumerate(keys)}
    steps = []
    for i, chunk_coords in enumerate(coords):
        selection = [[n, n + 1, 1] for n in chunk_coords]
        expected = {"shape": [1] * len(chunk_coords), "data": encode(bytes([i + 1]))}
        steps.append(Step("read", {"store": store, "path": "", "selection": selection}, expected))
    request = {"store": {"zarr.json": store["zarr.json"]}, "path": "", "keys": keys + case["refused"]}
    return [*steps, Step("keys", request, {"coords": coords + [None] * len(case["refused"])})]


def _steps_of_codecs(case: Json) -> list[Step]:
    """Return steps that read and write an array of one chunk."""
    document = _array_document(
        case["shape"],
        case["shape"],
        data_type=case["data_type"],
        fill_value=case["fill_value"],
        codecs=[_expand_name(codec) for codec in case["codecs"]],
    )
    text, key = _encode_document(document), "/".join(["c", *("0" for _ in case["shape"])])
    elements = {"data": case["decoded"]} if "decoded" in case else {"values": case["values"]}
    written = {"data": case["written"]} if "written" in case else elements
    everything = [[0, n, 1] for n in case["shape"]]
    read = {"store": {"zarr.json": text, key: case["encoded"]}, "path": "", "selection": everything}
    stored = {"chunk": key} | ({} if case.get("decode_only") else {"value": case["encoded"]})
    return [
        Step("read", read, {"shape": case["shape"], **elements}),
        Step("write", {"store": {"zarr.json": text}, "path": "", **written}, {**stored, **elements}),
    ]


def _steps_of_reads(case: Json) -> list[Step]:
    steps = []
    for read in case["reads"]:
        request = _read_request(case, read["selection"])
        steps.append(Step("read", request, {"shape": read["shape"], "data": read["data"]}))
        if "rounds" in read:
            steps.append(Step("rounds", request, {"rounds": read["rounds"]}))
    return steps


def _steps_of_refusal(case: Json) -> list[Step]:
    store = {key: _encode_document(document) for key, document in case["documents"].items()}
    reason = {name: value for name, value in case["refuse"].items() if name != "document"}
    return [Step("open", {"store": store, "path": case["path"]}, {"refuse": reason})]


def _steps_of_damage(case: Json) -> list[Step]:
    return [Step("read", _read_request(case, case["selection"]), {"refuse": {"error": case["error"]}})]


def _read_request(case: Json, selection: list[list[int]] | None) -> Json:
    store = {key: _encode_document(document) for key, document in case["documents"].items()} | case["values"]
    prefix, documents = f"{case['path']}/" if case["path"] else "", case["documents"]
    document = documents.get(f"{prefix}zarr.json") or documents.get(f"{prefix}.zarray")
    bounds = [[0, n] for n in document["shape"]] if selection is None else selection
    return {"store": store, "path": case["path"], "selection": [[*b, 1][:3] for b in bounds]}


def _steps_of_store(case: Json) -> list[Step]:
    """Return the step that carries out operations through storage transformers and returns the underlying store."""
    members = {
        "chunk_key_encoding": _expand_name(case["chunk_key_encoding"]),
        "storage_transformers": case["storage_transformers"],
    }
    document = _array_document(case["shape"], [1] * len(case["shape"]), **members)
    operations, results = [], []
    for op in case["operations"]:
        arguments = _ARGUMENTS | _MORE_ARGUMENTS.get(op["op"], set())
        operations.append({name: value for name, value in op.items() if name in arguments})
        results.append({name: value for name, value in op.items() if name not in arguments})
    request = {"document": document, "store": case["before"], "operations": operations}
    return [Step("store", request, {"results": results, "store": case["after"]})]


def _array_document(shape: list[int], chunk_shape: list[int], **members: Any) -> Json:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
    } | members


def _expand_name(extension: Any) -> Any:
    """Expand a short-hand name, used here only to keep the fixture file short; other cases test short-hand names."""
    return {"name": extension} if isinstance(extension, str) else extension


def _encode_document(document: Any) -> str:
    return encode(json.dumps(document).encode())


_STEPS_OF_KIND = {
    "metadata": _steps_of_metadata,
    "keys": _steps_of_keys,
    "codecs": _steps_of_codecs,
    "array": _steps_of_reads,
    "reads": _steps_of_reads,
    "damage": _steps_of_damage,
    "refusal": _steps_of_refusal,
    "store": _steps_of_store,
}

"""What a case asks of an implementation: a few requests, each with all that it needs, and what must come back.

Rules
- A request is self-contained: every stored value is there, documents as the bytes that they are.
- Seven kinds of cases become six operations: `open`, `read`, `write`, `rounds`, `keys`, `store`.
- Selections have start, stop and step for every dimension; "everything" is spelled out.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Json = dict[str, Any]
OPERATIONS = ("open", "read", "write", "rounds", "keys", "store")


@dataclass(frozen=True, eq=False)
class Step:
    """One request and what must come back: `{"refuse": ...}`, or the members of the right answer."""

    op: str
    request: Json
    expected: Json

    @cached_property
    def document(self) -> Any:
        """The document of the node that it is about; None where that is not JSON."""
        if "document" in self.request:
            return self.request["document"]
        path = self.request["path"]
        text = self.request["store"].get(f"{path}/zarr.json" if path else "zarr.json", "")
        try:
            return json.loads(base64.b64decode(text))
        except (ValueError, RecursionError):
            return None


def steps_of(case: Json) -> list[Step]:
    """The requests that make up a case."""
    return _MAKERS[case["kind"]](case)


def encode(value: bytes) -> str:
    """Base64 as it stands in requests."""
    return base64.b64encode(value).decode("ascii")


def _metadata(case: Json) -> list[Step]:
    text = case["text_base64"] if "text_base64" in case else _text(case["document"])
    if "refuse" in case:
        expected = {"refuse": case["refuse"]}
    else:
        canonical = case.get("canonical")
        expected = {"document": case["document"] if canonical == "unchanged" else canonical}
    return [Step("open", {"store": {"zarr.json": text}, "path": ""}, expected)]


def _keys(case: Json) -> list[Step]:
    """Chunks of one element; what is stored under a key is read at its coordinates."""
    coords = [pair["coords"] for pair in case["pairs"]]
    keys = [pair["key"] for pair in case["pairs"]]
    shape = [max(c[i] for c in coords) + 1 for i in range(case["ndim"])]
    document = _array(shape, [1] * len(shape), chunk_key_encoding=_spelled_out(case["encoding"]))
    store = {"zarr.json": _text(document)} | {key: encode(bytes([i + 1])) for i, key in enumerate(keys)}
    steps = []
    for i, place in enumerate(coords):
        selection = [[n, n + 1, 1] for n in place]
        expected = {"shape": [1] * len(place), "data": encode(bytes([i + 1]))}
        steps.append(Step("read", {"store": store, "path": "", "selection": selection}, expected))
    request = {"store": {"zarr.json": store["zarr.json"]}, "path": "", "keys": keys + case["refused"]}
    return [*steps, Step("keys", request, {"coords": coords + [None] * len(case["refused"])})]


def _codecs(case: Json) -> list[Step]:
    """An array of one chunk, read and written."""
    document = _array(
        case["shape"],
        case["shape"],
        data_type=case["data_type"],
        fill_value=case["fill_value"],
        codecs=[_spelled_out(codec) for codec in case["codecs"]],
    )
    text, key = _text(document), "/".join(["c", *("0" for _ in case["shape"])])
    elements = {"data": case["decoded"]} if "decoded" in case else {"values": case["values"]}
    everything = [[0, n, 1] for n in case["shape"]]
    read = {"store": {"zarr.json": text, key: case["encoded"]}, "path": "", "selection": everything}
    stored = {"chunk": key} | ({} if case.get("decode_only") else {"value": case["encoded"]})
    return [
        Step("read", read, {"shape": case["shape"], **elements}),
        Step("write", {"store": {"zarr.json": text}, "path": "", **elements}, {**stored, **elements}),
    ]


def _reads(case: Json) -> list[Step]:
    steps = []
    for read in case["reads"]:
        request = _read_request(case, read["selection"])
        steps.append(Step("read", request, {"shape": read["shape"], "data": read["data"]}))
        if "rounds" in read:
            steps.append(Step("rounds", request, {"rounds": read["rounds"]}))
    return steps


def _damage(case: Json) -> list[Step]:
    return [Step("read", _read_request(case, case["selection"]), {"refuse": {"error": case["error"]}})]


def _read_request(case: Json, selection: list[list[int]] | None) -> Json:
    store = {key: _text(document) for key, document in case["documents"].items()} | case["values"]
    document = case["documents"][f"{case['path']}/zarr.json" if case["path"] else "zarr.json"]
    bounds = [[0, n] for n in document["shape"]] if selection is None else selection
    return {"store": store, "path": case["path"], "selection": [[*b, 1][:3] for b in bounds]}


def _store(case: Json) -> list[Step]:
    """What is done above a stack of transformers, and what lies below it."""
    members = {
        "chunk_key_encoding": _spelled_out(case["chunk_key_encoding"]),
        "storage_transformers": case["storage_transformers"],
    }
    document = _array(case["shape"], [1] * len(case["shape"]), **members)
    given = ("op", "key", "range", "ranges", "prefix", "pieces")
    operations, results = [], []
    for op in case["operations"]:
        names = set(given) | ({"value"} if op["op"] == "set" else {"keys"} if op["op"] == "erase_values" else set())
        operations.append({name: value for name, value in op.items() if name in names})
        results.append({name: value for name, value in op.items() if name not in names})
    request = {"document": document, "store": case["before"], "operations": operations}
    return [Step("store", request, {"results": results, "store": case["after"]})]


def _array(shape: list[int], chunk_shape: list[int], **members: Any) -> Json:
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


def _spelled_out(extension: Any) -> Any:
    """Short-hand names are a feature of their own; here they are only a shorter way to write a case."""
    return {"name": extension} if isinstance(extension, str) else extension


def _text(document: Any) -> str:
    return encode(json.dumps(document).encode())


_MAKERS = {
    "metadata": _metadata,
    "keys": _keys,
    "codecs": _codecs,
    "array": _reads,
    "reads": _reads,
    "damage": _damage,
    "store": _store,
}

"""The main loop of a harness in Python, and the encoding of elements in messages. Needs numpy, but not zarrlite."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

Json = dict[str, Any]
CORE_TYPES = ["bool", "float16", "float32", "float64", "complex64", "complex128"]
CORE_TYPES += [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
BITS = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}


class Unsupported(Exception):
    """The implementation cannot carry out this kind of request."""


def serve(
    name: str,
    version: str,
    capabilities: Json,
    operations: dict[str, Callable[[Json], Json]],
    details: Callable[[Exception], Json] = lambda error: {},
    unsupported: tuple[type[Exception], ...] = (Unsupported,),
) -> None:
    """Answer messages until `stop`.

    An exception in an operation is answered with a refusal, or with `unsupported` if its class is in `unsupported`.
    `details` returns further members of the refusal.
    """
    about = {"protocol": 1, "name": name, "version": version}
    about["capabilities"] = {"operations": list(operations), **capabilities}
    out, sys.stdout = sys.stdout, sys.stderr  # text that an implementation prints must not be taken for an answer
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "stop":
            return
        if message["type"] == "start":
            answer = about
        else:
            try:
                answer = operations[message["op"]](message)
            except unsupported as error:
                answer = {"unsupported": f"{type(error).__name__}: {error}"}
            except Exception as error:
                answer = {"refused": f"{type(error).__name__}: {error}", **details(error)}
            answer["id"] = message["id"]
        out.write(json.dumps(answer, allow_nan=False) + "\n")
        out.flush()


@contextmanager
def without_plugins_of(package: str) -> Iterator[None]:
    """Hide the entry points of a package from modules that are imported inside the block."""
    found = metadata.entry_points
    others = metadata.EntryPoints(e for d in metadata.distributions() if d.name != package for e in d.entry_points)
    metadata.entry_points = lambda **parameters: others.select(**parameters)
    try:
        yield
    finally:
        metadata.entry_points = found


def values(message: Json) -> dict[str, bytes]:
    """Return the stored values that a message contains, by key."""
    return {key: base64.b64decode(value) for key, value in message["store"].items()}


@contextmanager
def in_folder(message: Json) -> Iterator[tuple[str, Callable[[], dict[str, bytes]]]]:
    """Write the values in a message to a temporary folder. Yield it, and a function that reads all values back."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for key, value in values(message).items():
            (root / key).parent.mkdir(parents=True, exist_ok=True)
            (root / key).write_bytes(value)

        def contents() -> dict[str, bytes]:
            files = (path for path in root.rglob("*") if path.is_file())
            return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}

        yield folder, contents


def stored(values: dict[str, bytes]) -> Json:
    """Return an answer with all values of a store."""
    return {"store": {key: base64.b64encode(value).decode() for key, value in values.items()}}


def index(message: Json) -> tuple[slice, ...]:
    """Return the selection in a message as slices."""
    return tuple(slice(*bounds) for bounds in message["selection"])


def elements(result: Any, dtype: np.dtype[Any]) -> Json:
    """Return the answer to a read: little-endian, row-major bytes, or strings if elements vary in length."""
    array = np.asarray(result, dtype)
    if dtype.hasobject or dtype.kind == "T":
        texts = [v if isinstance(v, str) else base64.b64encode(v).decode() for v in array.ravel().tolist()]
        return {"shape": list(array.shape), "values": texts}
    return numbers(array.shape, array.astype(dtype.newbyteorder("<")).tobytes(), dtype.name)


def numbers(shape: Sequence[int], data: bytes, data_type: str) -> Json:
    """Return the answer to a read, given the elements. The unused bits of types with fewer than 8 bits are cleared."""
    if data_type in BITS:
        data = bytes(byte & (1 << BITS[data_type]) - 1 for byte in data)
    return {"shape": list(shape), "data": base64.b64encode(data).decode()}


def to_write(message: Json, dtype: np.dtype[Any], shape: tuple[int, ...], *, text: bool) -> Any:
    """Return the elements of a write request as an array. `text` tells whether values are strings or bytes."""
    if "data" in message:
        data = base64.b64decode(message["data"])
        return np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape).astype(dtype)
    array = np.empty(shape, dtype if dtype.kind == "T" else object)
    array.ravel()[:] = message["values"] if text else [base64.b64decode(value) for value in message["values"]]
    return array

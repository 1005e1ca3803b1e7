"""The files in spec_fixtures/, and helpers for the tests that run them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1] / "spec_fixtures"
PROPOSALS = ("concat-parts", "sharding", "suffix", "offset", "pad")
EXPERIMENTAL = ("fanout", "template")  # proposals by other authors; this project publishes no schema for them
FILES = sorted(
    path
    for folder in ("core", "optional", *(f"proposals/{name}" for name in (*PROPOSALS, *EXPERIMENTAL)))
    for path in (ROOT / folder).glob("*.json")
)
DOCUMENTS = {path: json.loads(path.read_text("utf-8")) for path in FILES}
CASES = [case for document in DOCUMENTS.values() for case in document["cases"]]


def cases(kind: str) -> pytest.MarkDecorator:
    """Parametrize a test with all cases of a kind."""
    chosen = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def content(case: dict[str, Any]) -> bytes:
    """Return the bytes of the document of a `metadata` case."""
    return decode(case["text_base64"]) if "text_base64" in case else json.dumps(case["document"]).encode()


def stored(case: dict[str, Any]) -> dict[str, bytes]:
    """Return all keys and values in the store of an `array`, `damage`, `reads` or `refusal` case."""
    values = {key: json.dumps(document).encode() for key, document in case["documents"].items()}
    return values | {key: decode(value) for key, value in case.get("values", {}).items()}


def index(selection: list[list[int]] | None) -> Any:
    """Return the numpy index of a selection. A selection of None selects everything."""
    return ... if selection is None else tuple(slice(*bounds) for bounds in selection)


def assert_read(result: Any, read: dict[str, Any], dtype: np.dtype[Any]) -> None:
    """Assert that a read returned the elements of a case."""
    expected = np.frombuffer(decode(read["data"]), dtype.newbyteorder("<")).reshape(read["shape"])
    assert_same(result, expected, dtype)


def assert_same(result: Any, expected: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Assert that two arrays are equal, bit for bit if their elements have a fixed size."""
    array = np.asarray(result, dtype)
    assert array.shape == expected.shape
    if dtype.hasobject or dtype.kind == "T":
        assert array.tolist() == expected.tolist()
    else:
        assert array.astype(dtype.newbyteorder("<")).tobytes() == expected.tobytes()

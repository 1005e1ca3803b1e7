"""The files of spec_fixtures/, and what all tests that run them share."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1] / "spec_fixtures"
PROPOSALS = ("concat-parts", "sharding", "suffix", "offset", "pad")
FILES = sorted(
    path
    for folder in ("core", "optional", *(f"proposals/{name}" for name in PROPOSALS))
    for path in (ROOT / folder).glob("*.json")
)
DOCUMENTS = {path: json.loads(path.read_text("utf-8")) for path in FILES}
CASES = [case for document in DOCUMENTS.values() for case in document["cases"]]


# What zarrlite does not do yet, by id; a case that holds has to leave this list.
KNOWN = {
    # a raw chunk that is read in part, or through a transpose, may have any length
    "proposals/offset/examples/n5-truncated-edge-part",
    "proposals/offset/examples/n5-truncated-slowest",
    "proposals/offset/examples/n5-varmode",
    "proposals/pad/examples/n5-truncated-edge-part",
    "proposals/pad/examples/n5-truncated-slowest",
    "proposals/pad/examples/n5-varmode",
    # a range behind the part without a size costs a read of that part as well
    "proposals/concat-parts/arrays/read-pad",
    "proposals/concat-parts/arrays/read-suffix-pad",
    "proposals/concat-parts/store/range-across",
    "proposals/concat-parts/store/range-beyond-main",
    "proposals/offset/reads/parts",
    "proposals/pad/reads/parts",
    # chunks are asked for one by one, also by get_partial_values of concat-parts
    "proposals/concat-parts/store/batch",
    "proposals/sharding/arrays/read-neighbours",
    "proposals/sharding/arrays/read-two-shards",
    # every range of one chunk reads the index of its shard again
    "proposals/sharding/arrays/read-everything",
    "proposals/sharding/arrays/read-nested",
    # an entry of a shard of the draft may lie in the index
    "proposals/sharding/arrays/into-index",
    "proposals/sharding/store/corrupt-in-index",
    "proposals/sharding/store/corrupt-into-index",
    "proposals/sharding/store/corrupt-whole-value",
    # a shard of which all chunks are erased is read first
    "proposals/sharding/store/erase-all",
    "proposals/sharding/store/erase-edge",
    # two concat-parts in one stack may share a suffix, and then lose data
    "proposals/concat-parts/configuration/stack-duplicate",
    # `type` of the draft's own object: the pointer, and two of them that differ
    "proposals/sharding/configuration/draft-type",
    "proposals/sharding/configuration/draft-type-twice",
}


def cases(kind: str) -> pytest.MarkDecorator:
    """Parametrize a test by all cases of a kind."""
    found = [case for case in CASES if case["kind"] == kind]
    marks = [[pytest.mark.xfail(strict=True)] if case["id"] in KNOWN else [] for case in found]
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=case["id"], marks=m) for case, m in zip(found, marks, strict=True)]
    )


def decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def content(case: dict[str, Any]) -> bytes:
    """The bytes of the document of a `metadata` case."""
    return decode(case["text_base64"]) if "text_base64" in case else json.dumps(case["document"]).encode()


def stored(case: dict[str, Any]) -> dict[str, bytes]:
    """Everything in the store of an `array`, `damage` or `reads` case."""
    values = {key: json.dumps(document).encode() for key, document in case["documents"].items()}
    return values | {key: decode(value) for key, value in case["values"].items()}


def index(selection: list[list[int]] | None) -> Any:
    return ... if selection is None else tuple(slice(*bounds) for bounds in selection)


def assert_read(found: Any, read: dict[str, Any], dtype: np.dtype[Any]) -> None:
    """Compare what was read with what a case says."""
    assert_same(found, np.frombuffer(decode(read["data"]), dtype.newbyteorder("<")).reshape(read["shape"]), dtype)


def assert_same(found: Any, wanted: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Equal, bit for bit where elements have a size."""
    array = np.asarray(found, dtype)
    assert array.shape == wanted.shape
    if dtype.hasobject or dtype.kind == "T":
        assert array.tolist() == wanted.tolist()
    else:
        assert array.astype(dtype.newbyteorder("<")).tobytes() == wanted.tobytes()

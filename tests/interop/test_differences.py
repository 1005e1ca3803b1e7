"""The differences from zarr-python, as listed in docs/coming-from-zarr-python.md.

Each row of `CASES` is an expression with its outcome in zarr-python 3.1 and in zarrlite: a value or an exception.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import ArgumentError, NodeExistsError, ReadOnlyError

PAGE = Path(__file__).parent.parent.parent / "docs" / "coming-from-zarr-python.md"

# subject on the page, expression, outcome in zarr-python, outcome in zarrlite
CASES: list[tuple[str, str, Any, Any]] = [
    ("Zarr v2", "new(zarr_format=2).metadata.zarr_format", 2, ArgumentError),
    ("asynchronous code", "hasattr(lib, 'AsyncArray')", True, False),
    ("names", "[hasattr(lib, name) for name in ('abc', 'registry')]", [True, True], [False, False]),
    ("names", "hasattr(new(), 'store_path')", True, False),
    ("names", "hasattr(lib.group(), 'require_dataset')", True, False),
    ("stores", "hasattr(lib.storage, 'WrapperStore')", True, False),
    ("chunks", "new(shape=(10_000, 10_000), chunks='auto', dtype='f8').chunks", (313, 625), (313, 313)),
    ("automatic shards", "new(shape=(900,), chunks=(10,), shards='auto').shards", (20,), (80,)),
    ("automatic shards", "new(shape=(80,), chunks=(10,), shards='auto').shards", (10,), (80,)),
    ("compression", "codecs(new())[-1]['configuration']['level']", 0, 3),
    ('raw bytes, `dtype="V4"`', "document(new(dtype='V4'))['data_type']['name']", "raw_bytes", TypeError),
    ('raw bytes, `dtype="V4"`', "document(new(dtype='V4'))['data_type'] == 'r32'", False, True),
    ("structured types", "document(new(dtype=[('x', 'i4')]))['data_type']['name']", "structured", "struct"),
    ("byte order", "new(dtype='>i4').dtype.byteorder", ">", "="),
    ('memory order, `order="F"`', "new(order='F')[...].flags.f_contiguous", False, True),
    ('memory order, `order="F"`', "new(config={'order': 'F'})[...].flags.f_contiguous", True, True),
    ("several index arrays in `a[...]`", "cube()[[0, 1], [2, 3]].shape", IndexError, (2, 4)),
    ("several index arrays in `a[...]`", "cube()[[0, 1], [2, 3], 0].tolist()", [8, 28], [8, 28]),
    ("several index arrays in `a[...]`", "cube().oindex[[0, 1], [2, 3]].shape", (2, 2, 4), (2, 2, 4)),
    ("one index array and an integer: `a[0, :, [2, 3]]`", "cube()[0, :, [2, 3]].shape", (4, 2), (2, 4)),
    ("selections that are allowed", "cube()[::-1].shape", IndexError, (4, 4, 4)),
    ("selections that are allowed", "cube()[None].shape", IndexError, (1, 4, 4, 4)),
    ("selections that are allowed", "cube()[np.arange(4) % 2 == 0].shape", IndexError, (2, 4, 4)),
    ("selections that are allowed", "cube().vindex[[0, 1], :, 0].shape", IndexError, (2, 4)),
    ("single elements, `a[0, 0]`", "isinstance(new()[0, 0], np.ndarray)", True, False),
    ("blocks outside of the array", "new().blocks[9:].shape", IndexError, (0, 10)),
    ("missing values in text arrays", "text(None)", "None", ArgumentError),
    ("missing values in text arrays", "text(np.nan)", "nan", ArgumentError),
    ("fill values that do not fit", "int(new(fill_value=1.5).fill_value)", 1, ArgumentError),
    ("shrinking and growing again with `resize`", "shrunk_and_grown()", [7, 7], [7, 0]),
    ("attributes", "new(attributes={'x': np.inf}).attrs['x']", np.inf, ArgumentError),
    ("names of nodes", "lib.group().create_group('__a').path", "__a", ArgumentError),
    ("names of nodes", "lib.group().create_group('a//b').path", "a/b", ArgumentError),
    ("`Group.members()`", "len(lib.group().members())", 0, TypeError),
    ("errors", "issubclass(lib.errors.ContainsArrayError, ValueError)", True, False),
    ("errors", "new(store=existing())", ValueError, NodeExistsError),
    (
        "a write to a read-only node",
        "lib.open_group(existing(), mode='r').create_group('a')",
        ValueError,
        ReadOnlyError,
    ),
    ("settings", "misspelt_setting()", "F", ArgumentError),
    ("`load` of a group", "lib.load(existing())", NotImplementedError, {}),
    ("`copy`, `copy_all`, `copy_store`", "lib.copy_all(lib.group(), lib.group())", NotImplementedError, (0, 0, 0)),
    ("`Group.move`", "lib.group().move('a', 'b')", NotImplementedError, zarrlite.NodeNotFoundError),
    ("`consolidate_metadata`", "names_after_consolidation()", ["a"], ["a", "b"]),
]


def outcome(library: Any, expression: str, folder: Path) -> Any:
    """Return the value of an expression, or the class of the exception that it raises."""

    def new(store: Any = None, **keywords: Any) -> Any:
        return library.create_array(
            {} if store is None else store, **{"shape": (10, 10), "chunks": (5, 5), "dtype": "i4", **keywords}
        )

    def cube() -> Any:
        return library.array(np.arange(64).reshape(4, 4, 4), chunks=(2, 2, 2))

    def document(array: Any) -> Any:
        return array.metadata.to_dict()

    def text(value: Any) -> str:
        array = new(shape=1, chunks=1, dtype=str)
        array[0] = value
        return str(array[0])

    def shrunk_and_grown() -> Any:
        array = new(shape=2, chunks=2)
        array[...] = 7
        array.resize(1)
        array.resize(2)
        return array[...].tolist()

    def existing() -> str:
        library.open_group(folder / "a.zarr")
        return str(folder / "a.zarr")

    def misspelt_setting() -> Any:
        with library.config.set({"array.odrer": "F"}):
            return library.config.get("array.odrer")

    def names_after_consolidation() -> list[str]:
        library.open_group(existing()).create_group("a")
        library.consolidate_metadata(existing())
        library.open_group(existing()).create_group("b")
        return sorted(library.open_group(existing(), mode="r"))

    scope = {**locals(), "lib": library, "np": np, "codecs": lambda array: document(array)["codecs"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns about data types and arguments
        try:
            return eval(expression, scope)
        except Exception as error:
            return type(error)


def agrees(found: Any, expected: Any) -> bool:
    if isinstance(expected, type) and isinstance(found, type):
        return issubclass(found, expected)
    return bool(found == expected)


@pytest.mark.parametrize(("subject", "expression", "theirs", "ours"), CASES, ids=[case[1] for case in CASES])
def test_a_difference_on_the_page_exists(
    subject: str, expression: str, theirs: Any, ours: Any, zarr: ModuleType, tmp_path: Path
) -> None:
    found = outcome(zarrlite, expression, tmp_path / "ours")
    assert agrees(found, ours), found
    if zarr.__version__.startswith("3.1."):
        found = outcome(zarr, expression, tmp_path / "theirs")
        assert agrees(found, theirs), found


def rows() -> list[list[str]]:
    """Return the rows of the table of differences, without its header."""
    table = PAGE.read_text(encoding="utf-8").partition("## Differences")[2]
    found = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in table.splitlines() if line.startswith("|")]
    return found[2:]


def test_every_difference_has_a_reason() -> None:
    assert len(rows()) > 30
    for row in rows():
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row


def test_every_case_is_a_row_of_the_page() -> None:
    assert {case[0] for case in CASES} <= {row[0] for row in rows()}

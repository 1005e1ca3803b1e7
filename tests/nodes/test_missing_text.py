"""Text arrays refuse missing values, which numpy would convert to the text "None" or "nan"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import zarrlite
from zarrlite import ArgumentError

TEXT = np.dtypes.StringDType()
NULLABLE = np.dtypes.StringDType(na_object=None)
MISSING: dict[str, tuple[Any, str]] = {
    "None in a list": (["a", None, "b"], "element (1,) is None"),
    "nan in a list": (["a", "b", float("nan")], "element (2,) is nan"),
    "None in an object array": (np.array(["a", None, "b"], object), "element (1,) is None"),
    "nan in an object array": (np.array([np.nan, "a", "b"], object), "element (0,) is nan"),
    "a numpy nan in an object array": (np.array(["a", np.float32("nan"), "b"], object), "element (1,) is"),
    "pandas.NA in an object array": (np.array(["a", pd.NA, "b"], object), "element (1,) is <NA>"),
    "pandas.NaT in an object array": (np.array(["a", pd.NaT, "b"], object), "element (1,) is NaT"),
    "an array of pandas": (pd.array(["a", None, "b"], dtype="string"), "element (1,) is <NA>"),
    "a series of pandas": (pd.Series(["a", None, "b"]), "element (1,) is nan"),
    "a nullable array of numpy": (np.array(["a", None, "b"], NULLABLE), "element (1,) is None"),
    "numbers with nan": (np.array([1.5, np.nan, 2]), "element (1,) is nan"),
    "times with NaT": (np.array([1, "NaT", 2], "M8[s]"), "element (1,) is NaT"),
    "a masked array": (np.ma.array(["a", "b", "c"], mask=[False, True, False]), "element (1,) is masked"),
    "the value None": (None, "the value is None"),
    "the value nan": (float("nan"), "the value is nan"),
    "the value pandas.NA": (pd.NA, "the value is <NA>"),
}


@pytest.mark.parametrize("dtype", [TEXT, np.dtype("U4"), np.dtype("S4")], ids=str)
@pytest.mark.parametrize("name", MISSING)
def test_missing_values_are_refused_with_a_remedy(name: str, dtype: Any) -> None:
    values, place = MISSING[name]
    array = zarrlite.create_array({}, shape=3, dtype=dtype)
    array[...] = ["x", "y", "z"]
    with pytest.raises(ArgumentError) as error:
        array[...] = values
    assert str(error.value).startswith(f"values that are stored as text must not be missing, but {place}")
    assert str(error.value).endswith("; replace missing values first, for example with ''")
    assert array[...].tolist() in (["x", "y", "z"], [b"x", b"y", b"z"])


def test_arrays_are_not_created_from_missing_values() -> None:
    store = zarrlite.MemoryStore()
    with pytest.raises(ArgumentError, match="must not be missing"):
        zarrlite.create_array(store, data=np.array(["a", None], object), dtype="string")
    assert list(store.list()) == []


def test_appended_values_must_not_be_missing() -> None:
    array = zarrlite.create_array({}, data=np.array(["a"], TEXT))
    with pytest.raises(ArgumentError, match="must not be missing"):
        array.append(["b", None])
    assert array[...].tolist() == ["a"]


def test_missing_values_of_bytes_are_refused_with_a_remedy() -> None:
    array = zarrlite.create_array({}, shape=2, dtype="bytes")
    with pytest.raises(
        ArgumentError, match="must be bytes, not NoneType; replace missing values first, for example with b''"
    ):
        array[...] = np.array([b"a", None], object)


@pytest.mark.parametrize(
    "values",
    [["a", "None", "nan"], np.array(["a", "", "b"], object), np.array(["a", 1.5, True], object), [1, 2, 3],
     pd.Series(["a", "b", "c"]), np.array(["a", "b", "c"], NULLABLE), np.ma.array(["a", "b", "c"]), "x"],
    ids=repr,
)  # fmt: skip
def test_other_values_are_stored_as_numpy_stores_them(values: Any) -> None:
    array = zarrlite.create_array({}, shape=3, dtype=TEXT)
    expected = np.empty(3, TEXT)
    array[...] = expected[...] = values if isinstance(values, (list, str)) else np.asarray(values)
    assert array[...].tolist() == expected.tolist()

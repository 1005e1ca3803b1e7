"""Random xarray datasets, each generated from a number that serves as the seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

DTYPES = ["i1", "u2", "i4", "i8", "f4", "f8", "c16", "?", "U", "S", "T", "M8[ns]", "m8[ns]"]
ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"units_of": "K", "valid_min": -3},
    {"flags": [1, 2], "note": "grün", "nested": {"a": 1.5}},
]


def values(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    """Return random elements. Some floats are NaN, and some times are NaT."""
    numbers = np.asarray(random.integers(0, 100, shape))
    if dtype in "UT":
        kind = "U4" if dtype == "U" else np.dtypes.StringDType()
        return np.array([f"é{n}" if n % 3 else "" for n in numbers.ravel()], kind).reshape(shape)
    if dtype == "S":
        return np.array([b"%d" % n for n in numbers.ravel()], "S4").reshape(shape)
    if dtype[0] in "Mm":
        found = np.asarray(numbers * 86_400_000_000_000).astype(dtype)
        found[numbers % 7 == 0] = "NaT"
        return found
    found = numbers.astype(dtype)
    if found.dtype.kind in "fc":
        found[numbers % 5 == 0] = np.nan
    return found


def encoding(random: np.random.Generator, variable: xr.Variable) -> dict[str, Any]:
    """Return a random encoding for a variable: chunks, shards, packing and fill value."""
    found: dict[str, Any] = {}
    if variable.ndim and random.integers(2):
        chunks = tuple(int(random.integers(1, max(2, n + 1))) for n in variable.shape)
        found["chunks"] = chunks
        if random.integers(2):
            found["shards"] = tuple(n * int(random.integers(1, 3)) for n in chunks)
    if variable.dtype.kind == "f":
        choice = random.integers(4)
        if choice == 1:
            found["_FillValue"] = -9.0
        elif choice == 2:
            found |= {"dtype": "i2", "scale_factor": 0.5, "add_offset": 3.0, "_FillValue": -999}
    if variable.dtype.kind == "i" and random.integers(2):
        found["_FillValue"] = 77
    return found


def dataset(number: int) -> tuple[xr.Dataset, dict[str, dict[str, Any]]]:
    """Return the dataset generated from this number, and the encodings of its variables."""
    random = np.random.default_rng(number)
    sizes = {name: int(random.integers(1, 7)) for name in ("x", "y", "time")[: random.integers(1, 4)]}
    variables = {}
    for i in range(random.integers(1, 5)):
        dims = [name for name in sizes if random.integers(3)]
        dtype = str(random.choice(DTYPES))
        attributes = ATTRIBUTES[random.integers(len(ATTRIBUTES))]
        variables[f"v{i}"] = xr.Variable(dims, values(random, tuple(sizes[d] for d in dims), dtype), attributes)
    coords = {name: (name, np.arange(size) * 2) for name, size in sizes.items() if random.integers(2)}
    if "time" in sizes:
        coords["time"] = ("time", np.datetime64("2000-01-01", "ns") + np.arange(sizes["time"]) * np.timedelta64(1, "D"))
    made = xr.Dataset(variables, coords, ATTRIBUTES[random.integers(len(ATTRIBUTES))])
    if "v0" in made and random.integers(2):
        made = made.set_coords("v0")
    return made, {name: encoding(random, made[name].variable) for name in variables}

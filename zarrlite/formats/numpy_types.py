"""Data types in numpy's notation, which Zarr v2 and the 2022 draft of Zarr v3 share: `<f4`, `|S10`, lists of fields.

Rules (Zarr v2, Data type encoding: "the NumPy array protocol type string (typestr) format")
- Types of one byte may have any byte order mark: Zarr.jl writes `<i1`, netCDF-C writes `>S1`.
- All fields must have the same byte order, because the codec `bytes` has only one setting for all of them.
- A type without a counterpart in Zarr v3 is refused: objects, long doubles, fields that are arrays.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from zarrlite.data_types import DataType
from zarrlite.data_types.native import from_numpy
from zarrlite.errors import ArgumentError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Json, show

_match_type = re.compile(
    r"bool|[|<>]?(?:b1|[iu]1)|[<>](?:[iuf][248]|c8|c16|[mM]8(?:\[\w{1,16}\])?|U[1-9][0-9]{0,6})"
    r"|[|<>][SV][1-9][0-9]{0,6}"
).fullmatch


def parse_type(config: Config, member: str, value: Json) -> tuple[DataType, np.dtype[Any]]:
    """Parse `value`, a member of a document. Returns the data type, and the numpy dtype of stored elements."""
    byte_orders: set[str] = set()
    descr = _descr(config, member, value, byte_orders)
    if len(byte_orders) > 1:
        raise config.error("must not mix byte orders: the bytes codec has one for all fields", member)
    try:
        dtype = np.dtype(descr)
        data_type = from_numpy(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        message = error.message if isinstance(error, ArgumentError) else str(error)
        raise config.error(f"{show(value)} is not a data type: {message}", member) from None
    registry.data_types.parse(data_type.to_json(), config.at(member), config.context)  # checks the size of elements
    return data_type, dtype


def byte_order(dtype: np.dtype[Any] | None) -> str | None:
    """Return the byte order of stored elements. Returns None for elements without a byte order."""
    if dtype is None:
        return None
    if dtype.names is not None:
        orders = (byte_order(dtype[name]) for name in dtype.names)
        return next(filter(None, orders), None)
    if dtype.byteorder == "|":
        return None
    return "big" if dtype.newbyteorder(">") == dtype else "little"


def _descr(config: Config, member: str, value: Json, byte_orders: set[str]) -> Any:
    """Return a data type as an argument for `np.dtype`, and add the byte orders that it contains to `byte_orders`."""
    if isinstance(value, str) and _match_type(value):
        if value[0] not in "<>":
            return value
        if value[1] in "SV" or value[1:] in ("b1", "i1", "u1"):
            return f"|{value[1:]}"
        byte_orders.add(value[0])
        return value
    if isinstance(value, list) and value:
        return [_field(config, member, item, byte_orders) for item in value]
    raise config.error(f"{show(value)} is not a data type that zarrlite reads", member)


def _field(config: Config, member: str, value: Json, byte_orders: set[str]) -> Any:
    match value:
        case [str(name), data_type]:
            return name, _descr(config, member, data_type, byte_orders)
        case [str(), _, _]:
            raise config.error(f"must not have fields that are arrays, such as {show(value)}", member)
    raise config.error(f"a field must be a name and a data type, not {show(value)}", member)

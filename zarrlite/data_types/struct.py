"""Records with named fields: `struct`, and its legacy form `structured`.

Rules
- Fields are packed in the order of declaration; each has a fixed size. A field may itself be a struct.
- A fill value has exactly one value for each field.
- `structured` is written back with its own syntax: each field as [name, data type], the fill value as base64. When
  `structured` is read, the syntax of `struct` is accepted as well.

In comments, "extension struct" and "extension structured" are data-types/struct and data-types/structured in
zarr-extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import MAX_ITEMSIZE, DataType, NDArray, refuse, wrong_type
from zarrlite.data_types.native import from_numpy
from zarrlite.data_types.scalars import parse_bytes, unwrap, write_base64
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import Config, Faults, Json, escape, show
from zarrlite.extensions.registry import data_types, register


@register
@dataclass(frozen=True)
class Struct(DataType):
    """Records with named fields."""

    name = "struct"
    fields: tuple[tuple[str, DataType], ...]

    @classmethod
    def from_config(cls, config: Config) -> Self:
        values = config.list("fields")
        # extension struct, Configuration: "MUST contain at least one field"
        if not values:
            raise config.error("must have at least one field", "fields")
        fields: dict[str, DataType] = {}
        faults = Faults()
        for i, value in enumerate(values):
            with faults.collecting():
                item = cls._field_config(value, f"{config.at('fields')}/{i}", config)
                _add_field(fields, item)
        faults.raise_any()
        if sum(data_type.itemsize or 0 for data_type in fields.values()) > MAX_ITEMSIZE:
            raise config.error(f"must have at most {MAX_ITEMSIZE} bytes in total", "fields", "limit")
        return cls(tuple(fields.items()))

    @classmethod
    def _field_config(cls, value: Json, pointer: str, config: Config) -> Config:
        """Return the members `name` and `data_type` of one field."""
        # extension struct, Configuration: "Each field MUST be a JSON object with the following keys"
        if not isinstance(value, dict):
            message = f'must be an object with "name" and "data_type", not {show(value)}'
            raise MetadataError(message, pointer=pointer, kind="type", document=config.context.document)
        return Config(value, pointer, config.context)

    def to_config(self) -> dict[str, Json]:
        return {"fields": [{"name": name, "data_type": data_type.to_json()} for name, data_type in self.fields]}

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        # extension struct, Bytes codec encoding: "No padding bytes are inserted between fields"
        return np.dtype([(name, data_type.dtype) for name, data_type in self.fields])

    @property
    def has_byte_order(self) -> bool:
        # extension struct, Endianness: "Struct types composed entirely of single-byte fields"
        return any(data_type.has_byte_order for _, data_type in self.fields)

    def is_raw(self, byte_order: str) -> bool:
        return all(data_type.is_raw(byte_order) for _, data_type in self.fields)

    def to_bytes(self, array: NDArray, byte_order: str) -> NDArray:
        if self.is_raw(byte_order):
            return super().to_bytes(array, byte_order)
        array = np.ascontiguousarray(array, self.dtype).reshape(-1)
        columns = [t.to_bytes(array[name], byte_order).reshape(len(array), -1) for name, t in self.fields]
        return np.concatenate(columns, axis=1).reshape(-1)

    def from_bytes(self, data: NDArray, byte_order: str) -> NDArray:
        if self.is_raw(byte_order):
            return super().from_bytes(data, byte_order)
        rows = data.reshape(-1, self.dtype.itemsize)
        array: NDArray = np.empty(len(rows), self.dtype)
        start = 0
        for name, data_type in self.fields:
            stop = start + data_type.dtype.itemsize
            array[name] = data_type.from_bytes(np.ascontiguousarray(rows[:, start:stop]).reshape(-1), byte_order)
            start = stop
        return array

    @property
    def default_fill_value(self) -> np.void:
        return self._pack([data_type.default_fill_value for _, data_type in self.fields])

    def _pack(self, scalars: Sequence[Any]) -> np.void:
        """Build a record from one scalar for each field, preserving all bits."""
        parts = (np.array(s, t.dtype).tobytes() for s, (_, t) in zip(scalars, self.fields, strict=True))
        return self._scalar(b"".join(parts))

    def _scalar(self, data: bytes) -> np.void:
        """Return a read-only record, backed by the immutable `data`, so that a fill value cannot be changed."""
        scalar: np.void = np.frombuffer(data, self.dtype)[0]
        return scalar

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.void:
        # extension struct, Fill value representation: "object mapping each field name to its fill value"
        if not isinstance(value, dict):
            raise wrong_type("an object with a value for each field", value)
        names = dict(self.fields)
        for name in value:
            if name not in names:
                known = ", ".join(names)
                raise refuse(f"is not a field (fields: {known})", f"/{escape(name)}", "unknown-member")
        return self._pack([_parse_field(name, data_type, value, byte_order) for name, data_type in self.fields])

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return {name: data_type.fill_value_json(value[name], byte_order) for name, data_type in self.fields}

    def cast_scalar(self, value: Any) -> np.void:
        value = unwrap(value)
        names = [name for name, _ in self.fields]
        if isinstance(value, np.void) and value.dtype.names is not None:
            value = {name: value[name] for name in value.dtype.names}
        if isinstance(value, dict):
            if set(value) != set(names):
                raise ValueError(f"{self.name} needs the fields {', '.join(names)}, not {', '.join(map(str, value))}")
            value = tuple(value[name] for name in names)
        if not isinstance(value, tuple):
            raise TypeError(f"{self.name} needs a tuple, a dict or a record, not {value!r}")
        if len(value) != len(names):
            raise ValueError(f"{self.name} needs {len(names)} values, not {len(value)}")
        return self._pack([t.cast_scalar(v) for v, (_, t) in zip(value, self.fields, strict=True)])

    def check(self, array: NDArray) -> str | None:
        for name, data_type in self.fields:
            message = data_type.check(array[name])
            if message:
                return f"field {show(name)}: {message}"
        return None

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        fields = []
        offset = 0
        for name in dtype.names or ():
            field, start = dtype.fields[name][:2]  # type: ignore[index]
            # extension struct, Notes: "Fields are packed contiguously with no inter-field padding"
            if start != offset:
                raise _not_packed(dtype)
            offset += field.itemsize
            fields.append((name, _field_from_numpy(name, field)))
        if offset != dtype.itemsize:
            raise _not_packed(dtype)
        return cls(tuple(fields))


def _add_field(fields: dict[str, DataType], item: Config) -> None:
    """Parse one field and add it to `fields`."""
    # extension struct, Configuration: "A non-empty string that identifies the field"
    name = item.string("name")
    if not name:
        raise item.error("must not be empty", "name")
    # extension struct, Configuration: "Field names MUST be unique within the same struct data type"
    if name in fields:
        raise item.error(f"field names must be unique, but {show(name)} occurs twice", "name", "conflict")
    data_type: Any = data_types.parse(item.raw("data_type"), item.at("data_type"), item.context)
    item.finish()
    # extension struct, Configuration: "MUST NOT be used as field types"
    if data_type.itemsize is None:
        raise item.error(f"must be a data type of fixed size, not {show(data_type.name)}", "data_type")
    fields[name] = data_type


def _parse_field(name: str, data_type: DataType, value: dict[str, Json], byte_order: str) -> Any:
    """Return the fill value of one field."""
    pointer = f"/{escape(name)}"
    # extension struct, Fill value representation: "MUST have a corresponding entry in the fill value object"
    if name not in value:
        raise refuse("is required and missing", pointer, "missing")
    try:
        return data_type.parse_fill_value(value[name], byte_order)
    except MetadataError as error:
        raise error.under(pointer) from None


def _field_from_numpy(name: str, dtype: np.dtype[Any]) -> DataType:
    """Return the data type of one field of a numpy dtype."""
    if dtype.kind == "O":  # numpy itself refuses fields of StringDType
        raise ArgumentError(f"field {name!r}: {dtype} has no fixed size; use U<n> for text and S<n> for bytes")
    try:
        return from_numpy(dtype)
    except ArgumentError as error:
        raise ArgumentError(f"field {name!r}: {error.message}") from None


def _not_packed(dtype: np.dtype[Any]) -> ArgumentError:
    """Return the error for a dtype with padding."""
    return ArgumentError(
        f"the fields of {dtype!r} must be packed, without padding; use numpy.lib.recfunctions.repack_fields(dtype)"
    )


@register
class Structured(Struct):
    """Records as zarr-python wrote them before `struct` was registered.

    Extension structured, Read-only alias: "Implementations MUST be able to read arrays whose metadata uses" it.
    """

    name = "structured"
    # extension structured, Missing endian configuration: "MUST be treated as little-endian"
    endian_optional = True

    @classmethod
    def _field_config(cls, value: Json, pointer: str, config: Config) -> Config:
        # extension structured, Tuple-based field definitions: "define fields as 2-element arrays"
        if isinstance(value, list):
            if len(value) != 2:
                message = f"must be a name and a data type, not {show(value)}"
                raise MetadataError(message, pointer=pointer, document=config.context.document)
            return _Pair(dict(zip(("name", "data_type"), value, strict=True)), pointer, config.context)
        return super()._field_config(value, pointer, config)

    def to_config(self) -> dict[str, Json]:
        return {"fields": [[name, data_type.to_json()] for name, data_type in self.fields]}

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.void:
        if not isinstance(value, str):
            return super().parse_fill_value(value, byte_order)
        # extension structured, Base64-encoded fill values: "string of the raw packed bytes"
        data = parse_bytes(value)
        if len(data) != self.dtype.itemsize:
            raise refuse(f"must have {self.dtype.itemsize} bytes, not {len(data)}")
        # extension structured, Base64-encoded fill values: "follows the endian parameter of the bytes codec"
        array = self.from_bytes(np.frombuffer(data, "u1"), byte_order)
        message = self.check(array)
        if message:
            raise refuse(message)
        return self._scalar(array.tobytes())

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return write_base64(self.to_bytes(np.array(value, self.dtype), byte_order).tobytes())


class _Pair(Config):
    """The members of a field that is written as [name, data type]. JSON pointers contain the positions in this list."""

    def at(self, key: str | int) -> str:
        return super().at(["name", "data_type"].index(str(key)))

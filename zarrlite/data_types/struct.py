"""Records of named fields: `struct`, and `structured`, the form that came before it.

Rules
- Fields are packed in the order of declaration, "No padding bytes are inserted"; each has a fixed size.
- Names are unique and not empty; a struct may hold structs.
- Fill value: an object with "each field name"; nothing is filled in, nothing is ignored.
- `structured` (legacy) has fields as [name, data type] and base64 of the packed bytes as fill value, in the byte order
  of the `bytes` codec, little endian without one. Both newer forms are read as well; written is the legacy one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import MAX_ITEMSIZE, DataType, refuse, wrong_type
from zarrlite.data_types.native import from_numpy
from zarrlite.data_types.scalars import parse_bytes, unwrap, write_base64
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import Config, Faults, Json, escape, show
from zarrlite.extensions.registry import data_types, register


@register
@dataclass(frozen=True)
class Struct(DataType):
    """Records of named fields."""

    name = "struct"
    fields: tuple[tuple[str, DataType], ...]

    @classmethod
    def from_config(cls, config: Config) -> Self:
        values = config.list("fields")
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
            raise config.error(f"must have at most {MAX_ITEMSIZE} bytes in all", "fields", "limit")
        return cls(tuple(fields.items()))

    @classmethod
    def _field_config(cls, value: Json, pointer: str, config: Config) -> Config:
        """The members `name` and `data_type` of one field."""
        if not isinstance(value, dict):
            message = f'must be an object with "name" and "data_type", not {show(value)}'
            raise MetadataError(message, pointer=pointer, kind="type", document=config.context.document)
        return Config(value, pointer, config.context)

    def to_config(self) -> dict[str, Json]:
        return {"fields": [{"name": name, "data_type": data_type.to_json()} for name, data_type in self.fields]}

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([(name, data_type.dtype) for name, data_type in self.fields])

    @property
    def has_byte_order(self) -> bool:
        return any(data_type.has_byte_order for _, data_type in self.fields)

    @property
    def default_fill_value(self) -> np.void:
        return self._pack([data_type.default_fill_value for _, data_type in self.fields])

    def _pack(self, scalars: Sequence[Any]) -> np.void:
        """A scalar of `dtype` from one of each field, bit for bit."""
        parts = (np.array(s, t.dtype).tobytes() for s, (_, t) in zip(scalars, self.fields, strict=True))
        return self._scalar(b"".join(parts))

    def _scalar(self, data: bytes) -> np.void:
        scalar: np.void = np.frombuffer(data, self.dtype)[0]  # of immutable bytes, so that nobody changes a fill value
        return scalar

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.void:
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

    def check(self, array: np.ndarray[Any, Any]) -> str | None:
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
            if start != offset:
                raise _not_packed(dtype)
            offset += field.itemsize
            fields.append((name, _field_from_numpy(name, field)))
        if offset != dtype.itemsize:
            raise _not_packed(dtype)
        return cls(tuple(fields))


def _add_field(fields: dict[str, DataType], item: Config) -> None:
    """Read one field and put it with those before it."""
    name = item.string("name")
    if not name:
        raise item.error("must not be empty", "name")
    if name in fields:
        raise item.error(f"{show(name)} is the name of an earlier field", "name", "conflict")
    data_type: Any = data_types.parse(item.raw("data_type"), item.at("data_type"), item.context)
    item.finish()
    if data_type.itemsize is None:
        raise item.error(f"must have a fixed size, which {show(data_type.name)} has not", "data_type")
    fields[name] = data_type


def _parse_field(name: str, data_type: DataType, value: dict[str, Json], byte_order: str) -> Any:
    pointer = f"/{escape(name)}"
    if name not in value:
        raise refuse("is required and missing", pointer, "missing")
    try:
        return data_type.parse_fill_value(value[name], byte_order)
    except MetadataError as error:
        raise error.under(pointer) from None


def _field_from_numpy(name: str, dtype: np.dtype[Any]) -> DataType:
    if dtype.kind == "O":  # numpy itself refuses StringDType here
        raise ArgumentError(f"field {name!r}: {dtype} has no fixed size; use U<n> for text and S<n> for bytes")
    try:
        return from_numpy(dtype)
    except ArgumentError as error:
        raise ArgumentError(f"field {name!r}: {error.message}") from None


def _not_packed(dtype: np.dtype[Any]) -> ArgumentError:
    return ArgumentError(
        f"the fields of {dtype!r} are not packed, as Zarr stores them; use numpy.lib.recfunctions.repack_fields(dtype)"
    )


@register
class Structured(Struct):
    """Records as zarr-python wrote them before `struct` was registered."""

    name = "structured"
    endian_optional = True  # "MUST be treated as little-endian"

    @classmethod
    def _field_config(cls, value: Json, pointer: str, config: Config) -> Config:
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
        data = parse_bytes(value)
        if len(data) != self.dtype.itemsize:
            raise refuse(f"must have {self.dtype.itemsize} bytes, not {len(data)}")
        array = np.frombuffer(data, self.dtype.newbyteorder(byte_order)).astype(self.dtype)  # type: ignore[arg-type]
        message = self.check(array)
        if message:
            raise refuse(message)
        return self._scalar(array.tobytes())

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        array = np.array(value, self.dtype)
        return write_base64(array.astype(self.dtype.newbyteorder(byte_order)).tobytes())  # type: ignore[arg-type]


class _Pair(Config):
    """A field as [name, data type]: the same getters, with the pointers of an array."""

    def at(self, key: str | int) -> str:
        return super().at(["name", "data_type"].index(str(key)))

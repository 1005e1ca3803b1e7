"""Moments and durations: `numpy.datetime64` and `numpy.timedelta64`.

Rules
- An element is a 64-bit integer that counts `scale_factor` times `unit`; -2^63 is NaT, "not a time".
- Fill value: an integer within 64 bits, or "NaT". NaT is always written as "NaT".
- "us" and "μs" (Greek mu) mean the same and are written back as read.
"""

from __future__ import annotations

import datetime
import numbers
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import DataType, refuse, wrong_type
from zarrlite.data_types.scalars import unwrap
from zarrlite.extensions.config import Config, Json, is_integer, show
from zarrlite.extensions.registry import register

UNITS: Final = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")
_LOW, _HIGH = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class TimeType(DataType):
    """What the two have in common."""

    unit: str
    scale_factor: int = 1
    code: ClassVar[str]  # numpy's letter
    castable: ClassVar[tuple[type, ...]]  # what callers may give, besides an integer

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.string("unit", UNITS), config.integer("scale_factor", 1, 2**31 - 1))

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"{self.code}8[{self.scale_factor}{self.unit}]")

    @property
    def has_byte_order(self) -> bool:
        return True

    @property
    def default_fill_value(self) -> Any:
        return self._scalar(_LOW)

    def _scalar(self, count: int) -> Any:
        return np.array(count, np.int64).view(self.dtype)[()]

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        if value == "NaT":
            return self._scalar(_LOW)
        if isinstance(value, str):
            raise refuse(f'must be an integer or "NaT", not {show(value)}')
        if not is_integer(value):
            raise wrong_type('an integer or "NaT"', value)
        if not _LOW <= value <= _HIGH:
            raise refuse(f"must be an integer from {_LOW} to {_HIGH}, not {show(value)}")
        return self._scalar(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return "NaT" if np.isnat(value) else int(value.view(np.int64))

    def cast_scalar(self, value: Any) -> Any:
        value = unwrap(value)
        if isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.timedelta64)):
            count = int(value)
            if not _LOW <= count <= _HIGH:
                raise OverflowError(f"{self.name} needs an integer from {_LOW} to {_HIGH}, not {count}")
            return self._scalar(count)
        if not isinstance(value, self.castable):
            raise TypeError(f"{self.name} needs a time, a text or an integer, not {value!r}")
        exact = self.dtype.type(value)  # in a unit of its own
        if np.isnat(exact):
            return self.default_fill_value
        scalar = np.array(exact, self.dtype)[()]
        # numpy cuts off what a coarser unit cannot hold, wraps around where a finer one overflows, and makes
        # another dtype of a generic one.
        if scalar.dtype != self.dtype or scalar.astype(exact.dtype) != exact:
            raise ValueError(f"{value!r} is no multiple of {self.scale_factor} {self.unit} within 64 bits")
        return scalar

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(*np.datetime_data(dtype))


@register
class Datetime64(TimeType):
    """Moments since the Unix epoch."""

    name = "numpy.datetime64"
    code = "M"
    castable = (np.datetime64, datetime.date, str)


@register
class Timedelta64(TimeType):
    """Durations."""

    name = "numpy.timedelta64"
    code = "m"
    castable = (np.timedelta64, datetime.timedelta, str)

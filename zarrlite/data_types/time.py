"""Points in time and durations: `numpy.datetime64` and `numpy.timedelta64`.

Rules
- An element is a 64-bit integer, which counts periods of `scale_factor` units; -2^63 is NaT, "not a time".
- NaT is always written as "NaT".
- "us" and "μs" (Greek mu) are equivalent; the one that was read is written back.

In comments, "extension numpy.datetime64" is data-types/numpy.datetime64/README.md in zarr-extensions. The README of
numpy.timedelta64 contains the same rules.
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

# extension numpy.datetime64, Configuration: the permitted values of "unit"
UNITS: Final = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")
_LOW, _HIGH = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class TimeType(DataType):
    """The base class of the two time types."""

    unit: str
    scale_factor: int = 1
    code: ClassVar[str]  # numpy's type code
    castable: ClassVar[tuple[type, ...]]  # the types of values that callers may pass, in addition to integers

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # extension numpy.datetime64, Configuration: "an integer from the inclusive range [1, 2147483647]"
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
        """Return the scalar that is stored as this integer."""
        return np.array(count, np.int64).view(self.dtype)[()]

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        # extension numpy.datetime64, Fill value representation: 'As the string "NaT", which denotes the value NaT'
        if value == "NaT":
            return self._scalar(_LOW)
        if isinstance(value, str):
            raise refuse(f'must be an integer or "NaT", not {show(value)}')
        # extension numpy.datetime64, Fill value representation: "As a JSON number with no fraction or exponent part"
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
            raise TypeError(f"{self.name} needs a time, a string or an integer, not {value!r}")
        if isinstance(value, str) and value.lower() == "nat":  # numpy 2.5 deprecates NaT without a unit
            return self.default_fill_value
        exact = self.dtype.type(value)  # a numpy scalar that keeps the unit of the value
        if np.isnat(exact):
            return self.default_fill_value
        scalar = np.array(exact, self.dtype)[()]
        # Refuse inexact conversions: numpy truncates when it converts to a coarser unit, wraps around when a finer
        # unit overflows, and returns another dtype for the generic unit.
        if scalar.dtype != self.dtype or scalar.astype(exact.dtype) != exact:
            unit = f"{self.scale_factor} {self.unit}"
            raise ValueError(f"{self.name} with a unit of {unit} cannot represent {value!r} exactly in 64 bits")
        return scalar

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(*np.datetime_data(dtype))


@register
class Datetime64(TimeType):
    """Points in time, relative to the Unix epoch."""

    name = "numpy.datetime64"
    code = "M"
    castable = (np.datetime64, datetime.date, str)


@register
class Timedelta64(TimeType):
    """Signed durations."""

    name = "numpy.timedelta64"
    code = "m"
    castable = (np.timedelta64, datetime.timedelta, str)

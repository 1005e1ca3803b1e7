"""The data types. Core types are imported with the package, and every other type when its name first occurs."""

from zarrlite.data_types.base import DataType
from zarrlite.data_types.core import Bool, Complex, Float, Integer, Raw
from zarrlite.data_types.native import from_dtype

__all__ = ["Bool", "Complex", "DataType", "Float", "Integer", "Raw", "from_dtype"]

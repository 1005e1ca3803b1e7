"""The storage transformers, one per file. A module is loaded when its transformer is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.storage_transformers.base import StorageTransformer

if TYPE_CHECKING:
    from zarrlite.storage_transformers.concat_parts import ConcatParts
    from zarrlite.storage_transformers.parts_source import Part
    from zarrlite.storage_transformers.sharding import Sharding

_CLASSES = {"ConcatParts": "concat_parts", "Part": "parts_source", "Sharding": "sharding"}

__all__ = ["ConcatParts", "Part", "Sharding", "StorageTransformer"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(importlib.import_module(f"zarrlite.storage_transformers.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The chunk key encodings, one per file. A module is loaded when its chunk key encoding is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding

if TYPE_CHECKING:
    from zarrlite.chunk_key_encodings.default import DefaultKeys
    from zarrlite.chunk_key_encodings.fanout import FanoutKeys
    from zarrlite.chunk_key_encodings.suffix import SuffixKeys
    from zarrlite.chunk_key_encodings.template import TemplateKeys
    from zarrlite.chunk_key_encodings.v2 import V2Keys

_CLASSES = {
    "DefaultKeys": "default",
    "FanoutKeys": "fanout",
    "SuffixKeys": "suffix",
    "TemplateKeys": "template",
    "V2Keys": "v2",
}

__all__ = ["ChunkKeyEncoding", "DefaultKeys", "FanoutKeys", "SuffixKeys", "TemplateKeys", "V2Keys"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(importlib.import_module(f"zarrlite.chunk_key_encodings.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

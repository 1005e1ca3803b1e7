"""The `concat-parts` storage transformer: each chunk is the concatenation of several stored objects.

Rules (proposal `concat-parts`, Description and Configuration)
- "The key for each part is formed by appending the key_suffix to the base key of the chunk."
- Writing splits a chunk by the `size` of the parts, which "is required for all but at most one part".
- No two parts may share a key: suffixes must differ and must not start with a digit (chunk 1 with suffix `0` would have
  the key of chunk 10). Nor may a suffix make a key point outside of the array (`names.key_text_fault`).

parts_store.py reads and writes the parts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Self

from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.extension import runtime
from zarrlite.extensions.registry import register
from zarrlite.names import key_text_fault
from zarrlite.storage_transformers.anatomy import Divided
from zarrlite.storage_transformers.base import ArrayInStore, StorageTransformer
from zarrlite.storage_transformers.parts_source import Part
from zarrlite.storage_transformers.parts_store import PartsStore
from zarrlite.stores.base import Store


@register
@dataclass(frozen=True)
class ConcatParts(StorageTransformer):
    """Stores each chunk in consecutive parts, each of which is a separate object."""

    # proposal concat-parts, Concatenate Parts Storage Transformer: "Name: concat-parts"
    name = "concat-parts"
    parts: tuple[Part, ...]
    journal: bool = runtime(True)  # whether an interrupted change of a chunk can be completed

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(Part(*part) for part in self.parts))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        parts: list[Part] = []
        taken: set[str] = set()
        # proposal concat-parts, Configuration: "An array of part objects to concatenate, in order."
        for item in config.objects("parts"):
            parts.append(cls._part(item, taken))
            taken.add(parts[-1].key_suffix)
        if not parts:
            raise config.error("must have at least one part", "parts")
        return cls(tuple(parts))

    @classmethod
    def _part(cls, item: Config, taken: set[str]) -> Part:
        # proposal concat-parts, Configuration: "key_suffix | string | Required."
        suffix = item.string("key_suffix")
        fault = key_text_fault(suffix)
        if "0" <= suffix[:1] <= "9":
            fault = f"must not start with a digit: c/1 + {suffix!r} would be a key of chunk c/1{suffix[0]}"
        if fault:
            raise item.error(f"{suffix!r} {fault}", "key_suffix")
        if suffix in taken:
            raise item.error(f"{suffix!r} is the suffix of an earlier part", "key_suffix", "conflict")
        # proposal concat-parts, Configuration: "size | integer | Optional."
        size = item.integer("size", default=None)
        item.finish()
        return Part(suffix, size)

    def to_config(self) -> dict[str, Json]:
        return {"parts": [{k: v for k, v in part._asdict().items() if v is not None} for part in self.parts]}

    @property
    def leading_bytes(self) -> int:
        """The total size of the parts before the part without a size. New shards leave that many bytes unused."""
        # proposal concat-parts, Example with sharding_indexed and a Header: "account for the 64-byte header padding"
        sizes = [part.size for part in self.parts]
        return sum(size or 0 for size in sizes[: sizes.index(None)]) if None in sizes else 0

    def check(self, array: ArrayInStore) -> None:
        """Refuse a suffix that a `concat-parts` nearer to the array uses, because two parts would have the same key."""
        taken = {part.key_suffix for other in self._nearer(array) for part in other.parts}
        for i, part in enumerate(self.parts):
            if part.key_suffix and part.key_suffix in taken:
                message = f"{part.key_suffix!r} is the suffix of a part of an earlier concat-parts"
                pointer = f"/configuration/parts/{i}/key_suffix"
                raise MetadataError(message, pointer=pointer, kind="conflict")

    def _nearer(self, array: ArrayInStore) -> list[ConcatParts]:
        """Return the `concat-parts` transformers that are nearer to the array than this one."""
        nearer = itertools.takewhile(lambda other: other is not self, array.storage_transformers)
        return [other for other in nearer if isinstance(other, ConcatParts)]

    def wrap(self, store: Store, array: ArrayInStore) -> Store:
        return PartsStore(store, self.parts, array, self.journal, len(self._nearer(array)))

    def anatomy(self) -> Divided:
        return Divided(self.parts)

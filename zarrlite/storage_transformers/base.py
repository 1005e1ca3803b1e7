"""The interface of storage transformers: stores over stores.

Rules (core spec, Storage transformers)
- The order is Array -> first -> ... -> last -> Store: the first entry of the list is next to the array.
- Keys are relative to the array. Chunk keys are those that the chunk key encoding can decode. All other keys pass
  through unchanged; `zarr.json` never occurs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from zarrlite.chunk_grids.base import ChunkGrid
from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.extensions.extension import Extension, Ignored
from zarrlite.pipeline.codec import Codec
from zarrlite.selections.selection import Shape
from zarrlite.stores.base import Store

if TYPE_CHECKING:
    from zarrlite.storage_transformers.anatomy import Combined, Divided


class ArrayInStore(NamedTuple):
    """The parts of an array's metadata that storage transformers may depend on."""

    shape: Shape
    chunk_grid: ChunkGrid
    chunk_key_encoding: ChunkKeyEncoding
    codecs: tuple[Codec | Ignored, ...]
    storage_transformers: tuple[StorageTransformer | Ignored, ...]


class StorageTransformer(Extension):
    """Builds, from the next store of the stack, the store that the array or the previous transformer sees."""

    kind: ClassVar[str] = "storage_transformer"

    def check(self, array: ArrayInStore) -> None:
        """Raise MetadataError, with a pointer relative to the transformer, if it does not fit the array."""

    def fold(self, array: ArrayInStore) -> ArrayInStore | None:
        """Return an equivalent array without this transformer, its first one. Returns None if there is no such one."""
        return None

    @abstractmethod
    def wrap(self, store: Store, array: ArrayInStore) -> Store:
        """Return the transformed store."""

    def anatomy(self) -> Divided | Combined | None:
        """Describe how chunks are stored in the next store. Returns None if that is not known."""
        return None

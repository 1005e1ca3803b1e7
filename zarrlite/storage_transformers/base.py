"""The interface of storage transformers, each of which wraps a store in another store.

Rules (core spec, Storage transformers)
- The order is Array -> first -> ... -> last -> Store: the first entry of the list is next to the array.
- Keys are relative to the array. Chunk keys are those that the chunk key encoding can decode. All other keys pass
  through unchanged; `zarr.json` is never among them.
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
    """Wraps the next store of the stack; the array, or the previous transformer, uses the resulting store."""

    kind: ClassVar[str] = "storage_transformer"

    @property
    def leading_bytes(self) -> int:
        """The number of bytes at the start of each value, such as a header, that are stored separately."""
        return 0

    def check(self, array: ArrayInStore) -> None:
        """Raise MetadataError if the array cannot use this transformer.

        The JSON pointer in the error is relative to the transformer.
        """

    def fold(self, array: ArrayInStore) -> ArrayInStore | None:
        """Return an equivalent array without this transformer, which must be the first one of `array`.

        Returns None if that is not possible.
        """
        return None

    @abstractmethod
    def wrap(self, store: Store, array: ArrayInStore) -> Store:
        """Return the transformed store."""

    def anatomy(self) -> Divided | Combined | None:
        """Describe how chunks are stored in the next store. Returns None if this is not known."""
        return None


def leading_bytes_after(array: ArrayInStore, transformer: StorageTransformer | None = None) -> int:
    """Return `leading_bytes` of the transformer after `transformer`, or of the first if `transformer` is None."""
    known = iter([each for each in array.storage_transformers or () if not isinstance(each, Ignored)])
    if transformer is not None:
        next((each for each in known if each is transformer), None)
    receiver = next(known, None)
    return 0 if receiver is None else receiver.leading_bytes

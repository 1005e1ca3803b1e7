"""What a storage transformer is: a store in front of a store.

Rules (core spec, Storage transformers)
- The order is Array -> first -> ... -> last -> Store: the first entry of the list is nearest to the array.
- Keys are relative to the array. Chunk keys are those that the chunk key encoding decodes; every other key passes
  through untouched, and `zarr.json` never comes by.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from zarrlite.extensions.extension import Extension
from zarrlite.stores.base import Store

if TYPE_CHECKING:
    from zarrlite.metadata.documents import ArrayMetadata


class StorageTransformer(Extension):
    """Makes, from the next store of the stack, the store that the array or the previous transformer sees."""

    kind: ClassVar[str] = "storage_transformer"

    def check(self, metadata: ArrayMetadata) -> None:
        """Raise MetadataError, with a pointer relative to the transformer, if it does not fit the array."""

    def fold(self, metadata: ArrayMetadata) -> ArrayMetadata | None:
        """The same array, of which this is the first transformer, without it; None: it takes the transformer."""
        return None

    @abstractmethod
    def wrap(self, store: Store, metadata: ArrayMetadata) -> Store:
        """The transformed store."""

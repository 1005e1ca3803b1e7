"""The storage transformers."""

from zarrlite.storage_transformers.base import StorageTransformer

__all__ = ["StorageTransformer"]

"""The stores, in a module named as in zarr-python: `zarrlite.storage.LocalStore`."""

from typing import TYPE_CHECKING, Any

from zarrlite import stores
from zarrlite.stores import LocalStore, MemoryStore, Store, StoreLike

if TYPE_CHECKING:
    from zarrlite.stores import FsspecStore, ObjectStore, ZipStore

__all__ = ["FsspecStore", "LocalStore", "MemoryStore", "ObjectStore", "Store", "StoreLike", "ZipStore"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(stores, name)  # some stores are imported on first use
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Arrays and stores in tasks that run in other processes or on other machines.

Rules
- A task contains an array without its attributes and caches, and no open resources.
- Pickling some stores copies their values, or an object whose data other processes cannot locate. Everything that a
  task wrote to such a copy would be lost, so these stores are refused. Writable zip files are refused as well, because
  only one process may write them.
"""

from __future__ import annotations

import pickle

from zarrlite.errors import ArgumentError, ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.stores import Store, ZipStore


def for_tasks(array: Array) -> Array:
    """Return the same array with a smaller pickle: without attributes, caches and callbacks."""
    metadata = array.metadata.replace(attributes=None)
    return Array(array.store, array.path, metadata, array.options._replace(cache=None, progress=None))


def check_reachable(store: Store) -> None:
    """Refuse a store that loses access to its data when it is pickled and loaded, such as an in-memory store."""
    zip_file = store
    while not isinstance(zip_file, ZipStore) and isinstance(getattr(zip_file, "store", None), Store):
        zip_file = zip_file.store  # type: ignore[attr-defined]
    if isinstance(zip_file, ZipStore) and not store.read_only:
        remedy = "write to a directory, then copy that into the zip file"
        raise ArgumentError(f"{store!r} must be written by a single process; {remedy}")
    remedy = "use a directory or an object store; a custom store class must define location()"
    try:
        found: Store = pickle.loads(pickle.dumps(store))
    except (ZarrliteError, TypeError, AttributeError, pickle.PicklingError) as error:
        raise ArgumentError(f"{store!r} must be reachable from other processes: {error}; {remedy}") from error
    if found.location() != store.location():
        raise ArgumentError(f"{store!r} must be reachable from other processes; {remedy}")

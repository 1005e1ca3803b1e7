"""Arrays and stores in tasks, which other processes and machines run.

Rules
- A task carries an array without attributes and caches, and nothing that is open.
- A pickle of some stores is a copy of their values, or of an object without a location. A task that wrote to one would
  lose what it writes, so such stores are refused. So are zip files that are written, each by a single process.
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
    """Refuse a store whose pickle is not the same place, such as one in memory."""
    zip_file = store
    while not isinstance(zip_file, ZipStore) and isinstance(getattr(zip_file, "store", None), Store):
        zip_file = zip_file.store  # type: ignore[attr-defined]
    if isinstance(zip_file, ZipStore) and not store.read_only:
        raise ArgumentError(f"{store!r} must be written by one process; write a directory, and copy that")
    remedy = "use a directory or an object store; a store class of your own needs location()"
    try:
        found: Store = pickle.loads(pickle.dumps(store))
    except (ZarrliteError, TypeError, AttributeError, pickle.PicklingError) as error:
        raise ArgumentError(f"{store!r} must be reachable from other processes: {error}; {remedy}") from error
    if found.location() != store.location():
        raise ArgumentError(f"{store!r} must be reachable from other processes; {remedy}")

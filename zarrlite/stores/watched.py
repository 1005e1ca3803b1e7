"""A view of a store. The view is notified of every change that is made through it.

Rules
- `changed` is called before and after each change, even if the change fails: a value that is read in between may be the
  old one or the new one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from zarrlite.buffers.ranges import Buffer
from zarrlite.stores.base import Change, Store, check_key
from zarrlite.stores.views import PrefixStore


class WatchedStore(PrefixStore):
    """A view of a whole store. A subclass defines `changed`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, "")

    @abstractmethod
    def changed(self, keys: Iterable[str]) -> None:
        """React to a change to these keys that is about to be made or has been made."""

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        self.changed([check_key(key)])
        try:
            return self.store.set(key, value, new)
        finally:
            self.changed([key])

    def erase(self, key: str) -> None:
        self.changed([check_key(key)])
        try:
            self.store.erase(key)
        finally:
            self.changed([key])

    def erase_prefix(self, prefix: str) -> None:
        keys = [*self.store.list_prefix(prefix)]
        self.changed(keys)
        try:
            self.store.erase_prefix(prefix)
        finally:
            self.changed(keys)

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        keys: list[str] = []

        def noting() -> Iterator[tuple[str, Change]]:
            for key, change in changes:
                keys.append(check_key(key))
                self.changed([key])
                yield key, change

        try:
            # keep lists as lists: some stores handle them more cheaply than iterators
            self.store.change([*noting()] if isinstance(changes, list) else noting())
        finally:
            self.changed(keys)

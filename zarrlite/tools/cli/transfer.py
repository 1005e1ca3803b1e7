"""What copy and reencode share: a target that is filled in steps, and can be gone on with after an interruption.

Rules
- The document of a node is written when all of its data is: what is unfinished is no node, and nobody can open it.
- Beside the data lies a journal: of what source, by which plan, and how many steps are done. The same command goes on
  from there; another one is refused. A step that was interrupted is done again.
- The source must not change: the names, sizes and times of its objects are compared when going on and at the end.
- Only a node, or what a transfer left, is ever replaced; nothing else is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zarrlite.errors import ArgumentError, NodeExistsError, StoreError
from zarrlite.extensions.config import Json, dump_json
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.node import make_room
from zarrlite.stores import LocalStore, Store
from zarrlite.stores.views import ReadOnlyStore
from zarrlite.tools.cli.locate import JOURNAL

_NO_ROOM = -1  # steps that are done while something else is still being removed
_SECONDS = 1.0  # between two notes of how far it is


class Transfer:
    """From a node to a place where there is none yet."""

    def __init__(self, source: Array | Group, target: Store, path: str, plan: Json) -> None:
        self.source, self.target, self.path = source, target, path
        self.prefix = key_prefix(path)
        self.objects = list_objects(source)
        self._plan = {"source": _place(source), **plan}
        self._state: dict[str, Any] = {"plan": self._plan, "objects": _fingerprint(self.objects), "done": _NO_ROOM}
        self._noted = time.monotonic()
        _refuse_overlap(source, target, self.prefix)

    def begin(self, *, overwrite: bool) -> int:
        """Make room; how many steps are done already."""
        old = self._read_journal()
        same = old is not None and old.get("plan") == self._plan and isinstance(old.get("done"), int)
        if same and old is not None and old.get("objects") == self._state["objects"] and old["done"] >= 0:
            self._state["done"] = old["done"]
            return int(old["done"])
        if not overwrite:
            self._refuse_what_is_there(old, same)
        exists = self.target.size(self.prefix + DOCUMENT) is not None
        if old is None and not exists and any(self.target.list_dir(self.prefix)):
            raise NodeExistsError("the target is not empty and no Zarr v3; choose another place", path=self.path)
        if exists or old is not None:
            self._note()
            self.target.erase(self.prefix + DOCUMENT)
            keys = list(self.target.list_prefix(self.prefix))
            self.target.erase_values(key for key in keys if key != self.prefix + JOURNAL)
        make_room(self.target, self.path, overwrite=False)
        self._state["done"] = 0
        self._note()
        return 0

    def _refuse_what_is_there(self, old: dict[str, Any] | None, same: bool) -> None:
        message = None
        if same:
            message = "the source has changed since the transfer began; --overwrite begins anew"
        elif old is not None:
            message = "an unfinished transfer of something else is there; finish it, or say --overwrite"
        elif self.target.size(self.prefix + DOCUMENT) is not None:
            message = "the target is there already; --overwrite replaces it"
        if message is not None:
            raise NodeExistsError(message, path=self.path)

    def _read_journal(self) -> dict[str, Any] | None:
        data = self.target.get(self.prefix + JOURNAL)
        if data is None:
            return None
        try:
            state = json.loads(bytes(data))
        except ValueError:
            state = None
        return state if isinstance(state, dict) else {}

    def _note(self) -> None:
        try:
            self.target.set(self.prefix + JOURNAL, dump_json(self._state))
        except StoreError as error:
            place = self.target.location(self.prefix)[1]
            raise StoreError(f"{place} cannot be written: {getattr(error.__cause__, 'strerror', error)}") from error
        self._noted = time.monotonic()

    def advance(self, n: int = 1) -> None:
        """`n` more steps are done."""
        self._state["done"] += n
        if time.monotonic() - self._noted >= _SECONDS:
            self._note()

    @contextmanager
    def running(self) -> Iterator[None]:
        """While data moves; an interruption is noted."""
        try:
            yield
        except KeyboardInterrupt:
            self._note()
            raise KeyboardInterrupt("run the same command again to go on") from None

    def check_source(self) -> None:
        """Refuse to finish what was made of two versions of the source."""
        if _fingerprint(list_objects(self.source)) != self._state["objects"]:
            raise StoreError("the source has changed meanwhile; run the command again with --overwrite")

    def end(self) -> None:
        """All is there, the documents too."""
        self.target.erase(self.prefix + JOURNAL)


def list_objects(source: Array | Group) -> list[tuple[str, int, int]]:
    """Key, size and time of everything that is stored for a node, and below it."""
    store, prefix = source.store, key_prefix(source.path)
    below = store.store if isinstance(store, ReadOnlyStore) else store
    found = []
    for key in sorted(store.list_prefix(prefix)):
        changed = 0
        if isinstance(below, LocalStore):
            info = os.stat(os.path.join(below.root, key))
            changed = info.st_mtime_ns
        found.append((key[len(prefix) :], store.size(key) or 0, changed))
    return found


def _fingerprint(objects: list[tuple[str, int, int]]) -> str:
    digest = hashlib.sha256()
    for each in objects:
        digest.update(repr(each).encode(errors="surrogatepass"))
    return digest.hexdigest()


def _place(source: Array | Group) -> str:
    return str(source.store.location(key_prefix(source.path))[1])


def _refuse_overlap(source: Array | Group, target: Store, prefix: str) -> None:
    (_, from_place), (_, to_place) = source.store.location(key_prefix(source.path)), target.location(prefix)
    if from_place.startswith(to_place) or to_place.startswith(from_place):
        raise ArgumentError("the source and the target lie within each other; choose another place")

"""The journal of `copy` and `reencode`, which fill a target in steps.

Rules
- The document of a node is written after all of its data: an unfinished target is not a node, and cannot be opened.
- A journal next to the data records the source, the plan, and the number of completed steps. Rerunning the same command
  resumes after the recorded steps; a different command is refused. The plan does not include whether the steps run in
  this process or on dask workers.
- The source must not change: the names, sizes and modification times of its objects are compared when a transfer
  resumes and when it ends.
- Only nodes and unfinished transfers are ever replaced; nothing else is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zarrlite import threads
from zarrlite.errors import ArgumentError, NodeExistsError, StoreError
from zarrlite.extensions.config import Json, dump_json
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.node import make_room
from zarrlite.stores import LocalStore, Store, ZipStore
from zarrlite.stores.base import place_of
from zarrlite.stores.object import ObjectStore
from zarrlite.stores.views import ReadOnlyStore

JOURNAL = "__zarrlite.transfer.json"  # stored next to the data of an unfinished transfer
_CLEARING = -1  # value of "done" in the journal while the previous contents of the target are being removed
_JOURNAL_SECONDS = 1.0  # seconds; the journal is updated at most this often while data is copied


class Transfer:
    """A transfer of a node to a path in a store."""

    def __init__(self, source: Array | Group, target: Store, path: str, plan: Json) -> None:
        self.source, self.target, self.path = source, target, path
        self.prefix = key_prefix(path)
        self.objects = list_objects(source)
        self._plan = {"source": _source_location(source), **plan}
        self._state: dict[str, Any] = {"plan": self._plan, "objects": _fingerprint(self.objects), "done": _CLEARING}
        self._journal_time = time.monotonic()
        _refuse_overlap(source, target, self.prefix)

    def begin(self, *, overwrite: bool) -> int:
        """Prepare the target, and return the number of steps that an interrupted run has completed."""
        journal = self._read_journal()
        same_plan = journal is not None and journal.get("plan") == self._plan and isinstance(journal.get("done"), int)
        same_objects = journal is not None and journal.get("objects") == self._state["objects"]
        if journal is not None and same_plan and same_objects and journal["done"] >= 0:
            self._state["done"] = journal["done"]
            return int(journal["done"])
        if not overwrite:
            self._refuse_existing(journal, same_plan)
        exists = self.target.size(self.prefix + DOCUMENT) is not None
        if journal is None and not exists and any(self.target.list_dir(self.prefix)):
            raise NodeExistsError("the target must be empty or a Zarr v3 node; choose another target", path=self.path)
        if exists or journal is not None:
            self._write_journal()
            self.target.erase(self.prefix + DOCUMENT)
            keys = list(self.target.list_prefix(self.prefix))
            self.target.erase_values(key for key in keys if key != self.prefix + JOURNAL)
        make_room(self.target, self.path, overwrite=False)
        self._state["done"] = 0
        self._write_journal()
        return 0

    def _refuse_existing(self, journal: dict[str, Any] | None, same_plan: bool) -> None:
        """Refuse a target that only `overwrite` may replace."""
        message = None
        if same_plan:
            message = "the source has changed since the transfer began; pass overwrite=True to start over"
        elif journal is not None:
            message = "the target is an unfinished transfer by another command; rerun that, or pass overwrite=True"
        elif self.target.size(self.prefix + DOCUMENT) is not None:
            message = "the target already exists; pass overwrite=True to replace it"
        if message is not None:
            raise NodeExistsError(message, path=self.path)

    def _read_journal(self) -> dict[str, Any] | None:
        """Return the journal, or an empty one if it is damaged. Returns None if there is no journal."""
        data = self.target.get(self.prefix + JOURNAL)
        if data is None:
            return None
        try:
            state = json.loads(bytes(data))
        except ValueError:
            state = None
        return state if isinstance(state, dict) else {}

    def _write_journal(self) -> None:
        try:
            self.target.set(self.prefix + JOURNAL, dump_json(self._state))
        except StoreError as error:
            location = self.target.location(self.prefix)[1]
            raise StoreError(f"{location} cannot be written: {getattr(error.__cause__, 'strerror', error)}") from error
        self._journal_time = time.monotonic()

    def advance(self, n: int = 1) -> None:
        """Count `n` more steps as completed."""
        self._state["done"] += n
        if time.monotonic() - self._journal_time >= _JOURNAL_SECONDS:
            self._write_journal()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record the completed steps in the journal if Ctrl-C interrupts the block."""
        try:
            yield
        except KeyboardInterrupt:
            if isinstance(self.target, ZipStore):
                raise KeyboardInterrupt("the zip file was not changed") from None
            self._write_journal()
            raise KeyboardInterrupt("rerun the same command to resume") from None

    def check_source(self) -> None:
        """Refuse to finish if the source has changed, because the copy would mix two versions of it."""
        if _fingerprint(list_objects(self.source)) != self._state["objects"]:
            raise StoreError("the source changed during the transfer; start over with overwrite=True")

    def end(self) -> None:
        """Remove the journal; call it after the last document is written."""
        self.target.erase(self.prefix + JOURNAL)


def ignore(n: int) -> None:
    """Report no progress."""


def list_objects(source: Array | Group) -> list[tuple[str, int, int | str]]:
    """Return the key, size and modification time of every object that is stored for a node and the nodes below it.

    In an object store, the ETag takes the place of the modification time.
    """
    store, prefix = source.store, key_prefix(source.path)
    base = store.store if isinstance(store, ReadOnlyStore) else store
    if isinstance(base, ObjectStore):
        return [(key[len(prefix) :], size, tag) for key, size, tag in sorted(base.list_versions(prefix))]
    keys = sorted(store.list_prefix(prefix))
    # raises an error if an object must not be read, such as a symlink that leads out of the store
    sizes = threads.gather(store.size, keys, place_of(store))
    objects: list[tuple[str, int, int | str]] = []
    for key, size in zip(keys, sizes, strict=True):
        modified = 0
        if isinstance(base, LocalStore):
            modified = os.stat(os.path.join(base.root, key)).st_mtime_ns
        objects.append((key[len(prefix) :], size or 0, modified))
    return objects


def _fingerprint(objects: list[tuple[str, int, int | str]]) -> str:
    digest = hashlib.sha256()
    for item in objects:
        digest.update(repr(item).encode(errors="surrogatepass"))
    return digest.hexdigest()


def _source_location(source: Array | Group) -> str:
    return str(source.store.location(key_prefix(source.path))[1])


def _refuse_overlap(source: Array | Group, target: Store, prefix: str) -> None:
    source_store, source_prefix = source.store.location(key_prefix(source.path))
    target_store, target_prefix = target.location(prefix)
    if source_store != target_store:
        return
    if source_prefix.startswith(target_prefix) or target_prefix.startswith(source_prefix):
        raise ArgumentError("the source and the target must not contain each other; choose another target")

"""Copy the stored objects of a node and all nodes below it without decoding them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from zarrlite import threads
from zarrlite.errors import MetadataError
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.node import has_text, load
from zarrlite.stores import Store
from zarrlite.stores.base import place_of, slowest_place
from zarrlite.tools.transfer.journal import JOURNAL, Transfer, ignore
from zarrlite.tools.transfer.workers import connected

_BATCH = 64  # maximum number of objects in a step
_BATCH_BYTES = 2**26  # bytes; no further object is added to a step that has reached this size

Item = tuple[str, int]  # key relative to the node, size in bytes


class Copy:
    """The task of copying a node to a path in a store. Running it again resumes an interrupted run."""

    def __init__(self, source: Array | Group, target: Store, path: str) -> None:
        self.source, self.target = source, target
        self.transfer = Transfer(source, target, path, {"command": "copy"})
        objects = [(key, size) for key, size, _ in self.transfer.objects if not f"/{key}".endswith(f"/{JOURNAL}")]
        # copy documents last, and those of members before those of their groups: a node that can be opened is complete
        left_out = self._left_out([key for key, _ in objects if _is_document(key)])
        objects = [item for item in objects if not item[0].startswith(left_out)]
        objects.sort(key=lambda item: (_is_document(item[0]), -item[0].count("/")))
        self.total = len(objects)
        self.nbytes = sum(size for _, size in objects)
        self._data = [item for item in objects if not _is_document(item[0])]
        self._documents = objects[len(self._data) :]
        self._copy = CopyObjects(source.store, key_prefix(source.path), target, key_prefix(path))

    def _left_out(self, documents: Sequence[str]) -> tuple[str, ...]:
        """Return the prefixes of the nodes that cannot be copied. Warns about every node whose document is refused."""
        store, prefix = self.source.store, key_prefix(self.source.path)

        def fault(key: str) -> tuple[MetadataError, bool] | None:
            path = (prefix + key)[: -len(DOCUMENT)].rstrip("/")
            try:
                load(store, path)
            except MetadataError as error:
                return error, has_text(store, path)
            return None

        left_out = []
        for key, found in zip(documents, threads.gather(fault, documents, place_of(store)), strict=True):
            if found is None:
                continue
            error, is_copied = found
            below = key[: -len(DOCUMENT)]
            if not is_copied:
                left_out.append(below)
            how = "is copied unchecked" if is_copied else "is not copied"
            warnings.warn(f"{self.source.name}: the node {below[:-1]!r} {how}: {error}", stacklevel=3)
        return tuple(left_out)

    def run(self, *, overwrite: bool, dask: Any = None, advance: Callable[[int], object] = ignore) -> int:
        """Copy the objects, and call `advance` with the number of objects in each step.

        Returns the number of objects that an earlier run had copied.
        """
        with connected(dask, self.source.store, self.target) as run_steps:
            done = self.transfer.begin(overwrite=overwrite)
            advance(done)
            with self.transfer.running(), closing(run_steps(self._copy, _batches(self._data[done:]))) as steps:
                for batch in steps:
                    self.transfer.advance(len(batch))
                    advance(len(batch))
                self._copy_documents(advance)
        self.transfer.end()
        return done

    def _copy_documents(self, advance: Callable[[int], object]) -> None:
        self.transfer.check_source()
        for _, level in itertools.groupby(self._documents, key=lambda item: item[0].count("/")):
            batch = list(level)
            self._copy(batch)
            advance(len(batch))


@dataclass(frozen=True)
class CopyObjects:
    """Copies several objects, which is the work of one step."""

    source: Store
    source_prefix: str
    target: Store
    target_prefix: str

    def __call__(self, batch: list[Item]) -> None:
        place = slowest_place(self.source, self.target)
        threads.run(self._copy_object, batch, sum(size for _, size in batch), place)

    def _copy_object(self, item: Item) -> None:
        value = self.source.get(self.source_prefix + item[0])
        if value is not None:
            self.target.set(self.target_prefix + item[0], value)


def _batches(objects: Iterable[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    nbytes = 0
    for item in objects:
        batch.append(item)
        nbytes += item[1]
        if len(batch) == _BATCH or nbytes >= _BATCH_BYTES:
            yield batch
            batch, nbytes = [], 0
    if batch:
        yield batch


def _is_document(key: str) -> bool:
    return f"/{key}".endswith(f"/{DOCUMENT}")

"""A hierarchy of another format, seen as one of Zarr v3.

Rules
- Nothing is written: documents are made when they are asked for, chunks stay where they are.
- A subclass says three things: the document of a node, where a value lies below, and what is directly under a prefix.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.errors import MetadataError, ReadOnlyError
from zarrlite.extensions.config import Json, dump_json
from zarrlite.names import DOCUMENT
from zarrlite.stores.base import Buffers, Listing, Request, Store, check_key, check_prefix


class ForeignStore(Store):
    """A store whose documents are made from those of another format; read-only."""

    read_only = True
    format: ClassVar[str] = "another format"  # what it is called in messages

    def __init__(self, store: Store) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignStore) and type(other) is type(self) and other.store == self.store

    def __hash__(self) -> int:
        return hash((type(self), self.store))

    @abstractmethod
    def document(self, path: str) -> dict[str, Json] | None:
        """The `zarr.json` of the node at a path; None: there is no node."""

    @abstractmethod
    def below(self, key: str) -> str | None:
        """The key that a value other than a document has in the store below; None: there is no such value."""

    @abstractmethod
    def list_dir(self, prefix: str) -> Listing:
        """Keys and prefixes directly under a prefix, as they are seen here."""

    def refuse_new(self, path: str) -> ReadOnlyError:
        """The error for a node that was to be created."""
        message = f"{path!r} cannot be created in {self.store!r}: hierarchies of {self.format} are read only"
        return ReadOnlyError(message, path=path)

    def _document(self, key: str) -> Buffer | None:
        document = self.document(key[: -len(DOCUMENT)].rstrip("/"))
        return None if document is None else dump_json(document)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        found: Buffers = [None] * len(requests)
        passed: list[int] = []
        below: list[Any] = []
        for i, (key, byte_range, *rest) in enumerate(requests):
            if _is_document(check_key(key)):
                document = self._document(key)
                found[i] = None if document is None else byte_range.of(document)
            elif (name := self.below(key)) is not None:
                passed.append(i)
                below.append((name, byte_range, *rest))
        values = self.store.get_partial_values(below, memory)
        for i, value in zip(passed, values, strict=True):
            found[i] = value
        return found

    def source(self, key: str) -> Source:
        below = None if _is_document(check_key(key)) else self.below(key)
        return InMemory(self.get(key)) if below is None else self.store.source(below)

    def size(self, key: str) -> int | None:
        if _is_document(check_key(key)):
            try:
                document = self._document(key)
            except MetadataError:
                return 0  # it is there, and whoever reads it learns why it is refused
            return None if document is None else len(document)
        below = self.below(key)
        return None if below is None else self.store.size(below)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location()  # all of it: where a value lies below may be anywhere there

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        pending = [check_prefix(prefix)]
        while pending:
            entry = pending.pop()
            if entry and not entry.endswith("/"):
                yield entry
            else:
                keys, prefixes = self.list_dir(entry)
                pending += sorted([*keys, *prefixes], reverse=True)


def _is_document(key: str) -> bool:
    return key == DOCUMENT or key.endswith("/" + DOCUMENT)

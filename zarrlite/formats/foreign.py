"""A hierarchy of another format as a read-only Zarr v3 store.

Rules
- Nothing is written: documents are generated on request, and chunks stay where they are.
- A subclass defines three things: the document of a node, the key of a value in the underlying store, and the keys and
  prefixes directly under a prefix.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from types import TracebackType
from typing import Any, ClassVar

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.errors import MetadataError, ReadOnlyError
from zarrlite.extensions.config import Json, dump_json
from zarrlite.names import DOCUMENT
from zarrlite.stores.base import Buffers, Listing, Request, Store, check_key, check_prefix


class ForeignStore(Store):
    """A read-only store whose documents are generated from those of another format."""

    read_only = True
    format: ClassVar[str] = "another format"  # its name in error messages
    is_consolidated: bool = False  # whether documents are read from consolidated metadata

    def __init__(self, store: Store) -> None:
        self.store = store
        self.limits = store.limits

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignStore) and type(other) is type(self) and other.store == self.store

    def __hash__(self) -> int:
        return hash((type(self), self.store))

    @abstractmethod
    def document(self, path: str) -> dict[str, Json] | None:
        """Return the content of the `zarr.json` of the node at a path. Returns None if there is no node."""

    @abstractmethod
    def underlying_key(self, key: str) -> str | None:
        """Return the key, in the underlying store, of a value that is not a document.

        Returns None if the key cannot have a value.
        """

    @abstractmethod
    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under a prefix, as Zarr v3 names them."""

    def refuse_new(self, path: str) -> ReadOnlyError:
        """Return the error for an attempt to create a node."""
        message = f"{path!r} cannot be created in {self.store!r}: hierarchies of {self.format} are read-only"
        return ReadOnlyError(message, path=path)

    def _document(self, key: str) -> Buffer | None:
        document = self.document(key[: -len(DOCUMENT)].rstrip("/"))
        return None if document is None else dump_json(document, allow_nan=True)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        found: Buffers = [None] * len(requests)
        passed: list[int] = []  # indices of the requests that the underlying store serves
        below: list[Any] = []
        for i, (key, byte_range, *rest) in enumerate(requests):
            if _is_document(check_key(key)):
                document = self._document(key)
                found[i] = None if document is None else byte_range.of(document)
            elif (name := self.underlying_key(key)) is not None:
                passed.append(i)
                below.append((name, byte_range, *rest))
        values = self.store.get_partial_values(below, memory) if below else []
        for i, value in zip(passed, values, strict=True):
            found[i] = value
        return found

    def source(self, key: str) -> Source:
        underlying = None if _is_document(check_key(key)) else self.underlying_key(key)
        return InMemory(self.get(key)) if underlying is None else self.store.source(underlying)

    def size(self, key: str) -> int | None:
        if _is_document(check_key(key)):
            try:
                document = self._document(key)
            except MetadataError:
                return 0  # the document exists, but cannot be converted; reading it raises the error
            return None if document is None else len(document)
        underlying = self.underlying_key(key)
        return None if underlying is None else self.store.size(underlying)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location()  # values under the prefix may have any key in the underlying store

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

    def close(self) -> None:
        self.store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.store.__exit__(kind, error, traceback)


def _is_document(key: str) -> bool:
    return key == DOCUMENT or key.endswith("/" + DOCUMENT)

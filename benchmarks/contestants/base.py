"""The interface of all contestants.

Rules
- A place is the path of a directory, or the store that `memory` returned.
- Each contestant has its own loops over many selections, so that no common layer adds to its time.
- A method that a contestant does not support raises Unsupported, which the report shows as "-".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from benchmarks.data import Array


class Unsupported(Exception):
    """The contestant does not support the operation."""


class Contestant(ABC):
    """A library, with the settings that README.md lists."""

    name: str
    atomic: bool  # whether chunks are written under a temporary name and then renamed
    packages: tuple[str, ...]  # names of packages; the report states their versions
    cold_import: str  # code for `python -c` that imports the library
    cold_read: str  # code for `python -c` that prints the element {i}, {j} of the array at {path!r}

    def session(self) -> AbstractContextManager[Any]:
        """Return a context manager with global settings, active around everything that is timed."""
        return nullcontext()

    @abstractmethod
    def memory(self, files: Mapping[str, bytes]) -> Any:
        """Create a store in memory with these files."""

    @abstractmethod
    def files(self, place: Any) -> dict[str, bytes]:
        """Return the files of a store in memory."""

    @abstractmethod
    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        """Open the array at a place; `strategy` is the way to change shards, for libraries that have a choice."""

    @abstractmethod
    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        """Read selections one by one."""

    @abstractmethod
    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        """Read pairs of index arrays one by one."""

    @abstractmethod
    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        """Write selections one by one."""

    @abstractmethod
    def open_all(self, paths: Sequence[str]) -> list[Any]:
        """Open the arrays at many paths."""

    def open_dataset(self, place: Any) -> Any:
        """Open a dataset of xarray with consolidated metadata."""
        raise Unsupported("has no engine of xarray")

    @abstractmethod
    def members(self, path: str) -> dict[str, Any]:
        """Return the arrays of a group by name, each with its metadata parsed."""

    @abstractmethod
    def describe(self, array: Any) -> tuple[Any, ...]:
        """Return shape, data type and chunk shape of an array that `open_all` or `members` returned."""

"""The interface of all contestants.

Rules
- A `place` is the path of a directory, or a store that `memory` returned.
- If a workload has many selections, the contestant itself loops over them, so that no shared code adds to its time.
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
    """A library with the settings listed in README.md."""

    name: str
    atomic: bool  # whether chunks are written under a temporary name and then renamed
    packages: tuple[str, ...]  # packages whose versions the report states
    cold_import: str  # code for `python -c` that imports the library
    cold_read: str  # code for `python -c` that prints the element {i}, {j} of the array at {path!r}

    def session(self) -> AbstractContextManager[Any]:
        """Return a context manager that applies global settings. Everything that is timed runs inside it."""
        return nullcontext()

    @abstractmethod
    def memory(self, files: Mapping[str, bytes]) -> Any:
        """Create an in-memory store with these files."""

    @abstractmethod
    def files(self, place: Any) -> dict[str, bytes]:
        """Return the files in an in-memory store."""

    @abstractmethod
    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        """Open the array at `place`. `strategy` selects how shards are updated, if the library offers a choice."""

    @abstractmethod
    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        """Read selections one by one."""

    @abstractmethod
    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        """Read orthogonal selections one by one. Each is a pair of index arrays."""

    @abstractmethod
    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        """Write selections one by one."""

    @abstractmethod
    def open_all(self, paths: Sequence[str]) -> list[Any]:
        """Open the arrays at these paths."""

    def open_dataset(self, place: Any) -> Any:
        """Open an xarray dataset with consolidated metadata."""
        raise Unsupported("has no xarray engine")

    @abstractmethod
    def members(self, path: str) -> dict[str, Any]:
        """Return the arrays of a group by name. The metadata of each array has been parsed."""

    @abstractmethod
    def describe(self, array: Any) -> tuple[Any, ...]:
        """Return the shape, data type and chunk shape of an array that `open_all` or `members` returned."""

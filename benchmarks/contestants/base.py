"""What every contestant can be asked to do.

Rules
- A place is the path of a directory, or what `memory` returns.
- Loops over many selections are the contestant's own, so that none pays for a common layer.
- What a contestant cannot do raises Unsupported, which the report shows as "-".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from benchmarks.data import Array


class Unsupported(Exception):
    """The contestant has no way to do this."""


class Contestant(ABC):
    """A library, with the settings that README.md lists."""

    name: str
    atomic: bool  # chunks are written under a temporary name and renamed
    packages: tuple[str, ...]  # whose versions the report states
    cold_import: str  # code for `python -c`
    cold_read: str  # the same, with {path!r}, {i} and {j} for the element to print

    def session(self) -> AbstractContextManager[Any]:
        """Settings that hold for the whole process, around everything that is timed."""
        return nullcontext()

    @abstractmethod
    def memory(self, files: Mapping[str, bytes]) -> Any:
        """A store in memory that holds these files."""

    @abstractmethod
    def files(self, place: Any) -> dict[str, bytes]:
        """What a store in memory holds."""

    @abstractmethod
    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        """The array at a place; `strategy` is how shards are changed, for whoever has a choice."""

    @abstractmethod
    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        """One read after the other."""

    @abstractmethod
    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        """The same for pairs of index arrays."""

    @abstractmethod
    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        """One write after the other."""

    @abstractmethod
    def open_all(self, paths: Sequence[str]) -> list[Any]:
        """The arrays at many paths."""

    @abstractmethod
    def members(self, path: str) -> dict[str, Any]:
        """The arrays of a group by name, each with its metadata parsed."""

    @abstractmethod
    def describe(self, array: Any) -> tuple[Any, ...]:
        """Shape, data type and chunk shape of what `open_all` or `members` returned."""

"""zarrista, a Python interface to the Rust library zarrs. It does not use zarr-python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import zarrista
from zarrista.store import FilesystemStore

from benchmarks.contestants.base import Contestant, Unsupported
from benchmarks.data import Array

_COLD = """
import zarrista
from zarrista.store import FilesystemStore
print(zarrista.Array.open(FilesystemStore({path!r}))[{i}, {j}].to_numpy().item())
"""


class Zarrista(Contestant):
    """zarrista with its default settings."""

    name = "zarrista"
    atomic = False
    packages: tuple[str, ...] = ("zarrista",)
    cold_import = "import zarrista"
    cold_read = _COLD

    def memory(self, files: Mapping[str, bytes]) -> Any:
        raise Unsupported("no store in memory that can be filled")

    def files(self, place: Any) -> dict[str, bytes]:
        raise Unsupported("no store in memory that can be listed")

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        return zarrista.Array.open(FilesystemStore(place))

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        try:
            return [_squeeze(array[selection].to_numpy(), selection) for selection in selections]
        except NotImplementedError as error:
            raise Unsupported("no steps") from error

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        raise Unsupported("no index arrays")

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        for selection, value in zip(selections, values, strict=True):
            array[selection] = value

    def open_all(self, paths: Sequence[str]) -> list[Any]:
        return [self.open(path) for path in paths]

    def members(self, path: str) -> dict[str, Any]:
        arrays = zarrista.Group.open(FilesystemStore(path)).child_arrays()
        return {array.path[1:]: array for array in arrays}

    def describe(self, array: Any) -> tuple[Any, ...]:
        return tuple(array.shape), array.metadata["data_type"], tuple(array.chunk_shape([0, 0]))


def _squeeze(elements: Array, selection: Any) -> Array:
    """Drop the axes that are indexed by integers; zarrista keeps them."""
    if selection is ...:
        return elements
    return elements.reshape([n for n, part in zip(elements.shape, selection, strict=True) if isinstance(part, slice)])

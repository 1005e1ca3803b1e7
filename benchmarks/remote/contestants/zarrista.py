"""zarrista with an obstore client, through its async interface.

Rules
- zarrista supports neither points nor index arrays, so each element takes a separate call; all calls run concurrently.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import zarrista
from zarrista.store import FilesystemStore

from benchmarks.contestants.zarrista import Zarrista
from benchmarks.data import Array
from benchmarks.remote.contestants.base import Remote
from benchmarks.remote.place import Place

REQUESTS = 64
TARGET = {"concurrent_target": REQUESTS, "chunk_concurrent_minimum": REQUESTS}


_loop = asyncio.new_event_loop()
atexit.register(_loop.close)
_run = _loop.run_until_complete


class RemoteZarrista(Zarrista, Remote):
    """zarrista with 64 concurrent requests."""

    packages = ("zarrista", "obstore")

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        return _run(self._opened(place))

    async def _opened(self, place: Place) -> Any:
        return await zarrista.AsyncArray.open(self.client(place), f"/{place.path}")

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [_run(self._get(array, selection)) for selection in selections]

    async def _get(self, array: Any, selection: Any) -> Any:
        if selection is ... or all(part.step in (None, 1) for part in selection):
            return (await array.retrieve_array_subset(selection, **TARGET)).to_numpy()
        rows, columns = selection
        boxes = [(rows, column) for column in range(*columns.indices(array.shape[1]))]
        return np.concatenate(await self._all(array, boxes), axis=1)

    @staticmethod
    async def _all(array: Any, boxes: Iterable[Any]) -> list[Any]:
        found = await asyncio.gather(*(array.retrieve_array_subset(box) for box in boxes))
        return [tensor.to_numpy() for tensor in found]

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [_run(self._get_orthogonal(array, *selection)) for selection in selections]

    async def _get_orthogonal(self, array: Any, rows: Array, columns: Array) -> Any:
        boxes = [(int(i), int(j)) for i in rows for j in columns]
        return np.concatenate(await self._all(array, boxes)).reshape(len(rows), len(columns))

    def get_points(self, array: Any, points: tuple[Array, Array]) -> Any:
        boxes = [*zip(*(part.tolist() for part in points), strict=True)]
        return np.concatenate(_run(self._all(array, boxes)), axis=None)

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        for selection, value in zip(selections, values, strict=True):
            _run(self._put(array, selection, value))

    @staticmethod
    async def _put(array: Any, selection: Any, value: Array) -> None:
        await array.store_array_subset(selection, value, **TARGET)

    def members(self, place: Any) -> dict[str, Any]:
        return {array.path.rpartition("/")[2]: array for array in _run(self._members(place))}

    async def _members(self, place: Place) -> list[Any]:
        client, path = self.client(place), f"/{place.path}"
        group: Any = await zarrista.AsyncGroup.open(client, path)
        consolidated = group.consolidated_metadata
        if consolidated is None:
            arrays: list[Any] = await group.child_arrays()
            return arrays
        documents = consolidated["metadata"].items()
        return [zarrista.AsyncArray.from_metadata(member, client, f"{path}/{name}") for name, member in documents]

    def upload(self, path: str, place: Place) -> None:
        _run(self._upload(path, place))

    async def _upload(self, path: str, place: Place) -> None:
        source: Any = zarrista.Array.open(FilesystemStore(path))
        target = zarrista.AsyncArray.from_metadata(source.metadata, self.client(place), f"/{place.path}")
        await target.store_metadata()
        slots = asyncio.Semaphore(REQUESTS)

        async def copy(coords: list[int]) -> None:
            async with slots:
                await target.store_encoded_chunk(coords, source.retrieve_encoded_chunk(coords).buffer)

        await asyncio.gather(*map(copy, _grid(source)))

    def download(self, place: Place, path: str) -> None:
        _run(self._download(place, path))

    async def _download(self, place: Place, path: str) -> None:
        source = await self._opened(place)
        target = zarrista.Array.from_metadata(source.metadata, FilesystemStore(path))
        target.store_metadata()
        slots = asyncio.Semaphore(REQUESTS)

        async def copy(coords: list[int]) -> None:
            async with slots:
                target.store_encoded_chunk(coords, (await source.retrieve_encoded_chunk(coords)).buffer)

        await asyncio.gather(*map(copy, _grid(source)))


def _grid(array: Any) -> list[list[int]]:
    rows, columns = array.chunk_grid_shape
    return [[i, j] for i in range(rows) for j in range(columns)]

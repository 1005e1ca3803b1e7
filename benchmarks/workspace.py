"""The temporary files of a run: the image, an array in every layout that is used, and a group of many arrays.

Rules
- Arrays to be read are written by the `limit` baseline or, if they have extensions, by zarrlite, and by no other
  contestant.
- Only the arrays of the current workload are kept. New files are flushed to disk before anything is timed.
- Files that are no longer needed are emptied; they are removed when the run ends. A file system may scan recently
  removed files whenever it creates a file (ext4 without a journal was 20 times slower for minutes after 8,000 files
  had been removed).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.contestants import Contestant, load
from benchmarks.data import Array, Layout, Scale, image, layout, ratio


class Workspace:
    """A directory with all files that the workloads use."""

    server: str | None = None  # name and version of the server that stores the arrays, if there is one

    def __init__(self, root: str, scale: Scale) -> None:
        self.root = root
        self.scale = scale
        self._arrays: dict[Layout, str] = {}  # paths of the arrays that exist
        self._datasets: dict[Layout, str] = {}  # paths of datasets
        self._count = 0
        self._new: list[str] = []  # directories of the current round
        self._memory: dict[str, Any] = {}  # contestant -> in-memory store with the array of the current workload
        self._files: dict[str, bytes] = {}  # keys and values of the array of the current workload
        self.started: set[tuple[str, str]] = set()  # (workload, entry) pairs whose bytecode is already cached

    @cached_property
    def data(self) -> Array:
        """The whole image."""
        return image(self.scale.shape)

    def image(self, layout: Layout) -> Array:
        """Return the part of the image that an array of this layout contains."""
        return self.data[: layout.shape[0], : layout.shape[1]]

    @cached_property
    def data_file(self) -> str:
        """The path of a file with the image, for other processes."""
        path = f"{self.root}/image.npy"
        np.save(path, self.data)
        return path

    def directory(self) -> str:
        """Create a directory that `clear_new` will empty, and return its path."""
        self._count += 1
        path = f"{self.root}/{self._count}"
        os.mkdir(path)
        self._new.append(path)
        return path

    def clear_new(self) -> None:
        """Empty the files that were created for one round."""
        while self._new:
            _clear(self._new.pop())

    def empty(self, layout: Layout) -> str:
        """Create an array without chunks, and return its path."""
        return self.store({"zarr.json": layout.json()})

    def store(self, files: Mapping[str, bytes]) -> str:
        """Create a directory with these files, and return its path."""
        root = self.directory()
        for key, value in files.items():
            path = f"{root}/{key}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(value)
        return root

    def array(self, layout: Layout) -> str:
        """Return the path of an array with all its chunks. The array must not be changed."""
        if layout not in self._arrays:
            path = self._keep(self.empty(layout))
            writer = load(_reference(layout))
            writer.put(writer.open(path, write=True), [...], [self.image(layout)])
            if layout.nbytes > 2**24:
                os.sync()  # pending writes must not disturb the timing
            self._arrays[layout] = path
        return self._arrays[layout]

    def dataset(self, layout: Layout) -> str:
        """Return the path of an xarray dataset that contains the array. The dataset must not be changed."""
        if layout not in self._datasets:
            from benchmarks.datasets import dataset_files

            self._datasets[layout] = self._keep(self.store(dataset_files(self, layout)))
        return self._datasets[layout]

    def content(self, layout: Layout, path: str) -> Array:
        """Read the array at a path with the `limit` baseline or, if it has extensions, with zarrlite."""
        reader = load(_reference(layout))
        array: Array = reader.get(reader.open(path), [...])[0]
        return array

    def _keep(self, path: str) -> str:
        """Exempt a directory from `clear_new`."""
        self._new.remove(path)
        return path

    def warm(self, layout: Layout) -> None:
        """Touch as much memory as a full read or write needs, and read the files of the array.

        On virtual machines, the cost of new memory can vary by a factor of ten between turns, and files can drop out of
        the page cache. The memory touched here is freed on return, and reused by the next allocations.
        """
        buffer: Any = np.empty(layout.nbytes * 5 // 4, "u1")
        buffer.fill(1)
        for directory, _, names in os.walk(self._arrays.get(layout, "")):
            for name in names:
                with open(os.path.join(directory, name), "rb", buffering=0) as file:
                    file.readinto(buffer)

    def copy(self, layout: Layout) -> str:
        """Copy an array with all its chunks, and return the path of the copy."""
        path = self.directory()
        shutil.copytree(self.array(layout), path, dirs_exist_ok=True)
        return path

    def files(self, layout: Layout) -> dict[str, bytes]:
        """Return all keys and values of an array."""
        root = self.array(layout)
        values = {}
        for directory, _, names in os.walk(root):
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    values[os.path.relpath(file.name, root)] = file.read()
        return values

    def memory(self, layout: Layout, contestant: Contestant) -> Any:
        """Return a contestant's in-memory store with an array and all its chunks. The store must not be changed."""
        if contestant.name not in self._memory:
            self._files = self._files or self.files(layout)
            self._memory[contestant.name] = contestant.memory(self._files)
        return self._memory[contestant.name]

    def keep(self, layouts: Collection[Layout]) -> None:
        """Empty all stored arrays and datasets that are not in these layouts, and drop the arrays in memory."""
        self._memory.clear()
        self._files = {}
        for unused in [known for known in self._arrays if known not in layouts]:
            _clear(self._arrays.pop(unused))
        for unused in [known for known in self._datasets if known not in layouts]:
            _clear(self._datasets.pop(unused))

    @cached_property
    def group(self) -> str:
        """The path of a group of many arrays without chunks."""
        document = layout(self.scale, "1M", "zstd").document()
        files = {"zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": {}}}
        for name in self.names:
            files[f"{name}/zarr.json"] = {**document, "attributes": {"title": name, "unit": "counts"}}
        return self._keep(self.store({key: json.dumps(value).encode() for key, value in files.items()}))

    @property
    def names(self) -> list[str]:
        """The names of the arrays in the group."""
        return [f"array{n:04}" for n in range(self.scale.nodes)]

    def ratios(self) -> dict[str, float]:
        """Return the compression ratio of zstd for each chunk size."""
        return {size: ratio(self.data, chunk) for size, chunk in self.scale.chunks.items()}


def _clear(root: str) -> None:
    """Truncate all files below a directory."""
    for directory, _, names in os.walk(root):
        for name in names:
            os.truncate(f"{directory}/{name}", 0)


def _reference(layout: Layout) -> str:
    """Return the name of the contestant that writes and reads back arrays in this layout."""
    return "limit" if layout.kind == "plain" else "zarrlite"

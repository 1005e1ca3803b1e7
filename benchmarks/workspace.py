"""The temporary files of a run: the image, an array in every layout that is asked for, a group of many arrays.

Rules
- Arrays that are read are written by the limit, those with extensions by zarrlite; nothing else writes there.
- Only the arrays of the current workload are kept; what has been made is on disk before anything is timed.
- Files that are done with are emptied; they go when the run ends. A file system may look at everything that was removed
  lately whenever it makes a file (ext4 without a journal: 20 times slower for minutes after 8,000 files had gone).
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
    """A directory with everything that workloads use."""

    def __init__(self, root: str, scale: Scale) -> None:
        self.root = root
        self.scale = scale
        self._made: dict[Layout, str] = {}
        self._count = 0
        self._new: list[str] = []
        self._memory: dict[str, Any] = {}  # the array of the current workload, by contestant
        self._files: dict[str, bytes] = {}  # and by key
        self.started: set[tuple[str, str]] = set()  # which processes have their byte code

    @cached_property
    def data(self) -> Array:
        """The whole image."""
        return image(self.scale.shape)

    def image(self, layout: Layout) -> Array:
        """The part of the image that an array has."""
        return self.data[: layout.shape[0], : layout.shape[1]]

    @cached_property
    def data_file(self) -> str:
        """The image in a file, for other processes."""
        path = f"{self.root}/image.npy"
        np.save(path, self.data)
        return path

    def directory(self) -> str:
        """A new directory, which `clear_new` empties."""
        self._count += 1
        path = f"{self.root}/{self._count}"
        os.mkdir(path)
        self._new.append(path)
        return path

    def clear_new(self) -> None:
        """Empty what has been made for one round."""
        while self._new:
            _clear(self._new.pop())

    def empty(self, layout: Layout) -> str:
        """A new array without chunks."""
        return self.store({"zarr.json": layout.json()})

    def store(self, files: Mapping[str, bytes]) -> str:
        """A new directory with these files."""
        root = self.directory()
        for key, value in files.items():
            path = f"{root}/{key}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(value)
        return root

    def array(self, layout: Layout) -> str:
        """An array with all its chunks, to be read only."""
        if layout not in self._made:
            path = self._kept(self.empty(layout))
            writer = load(_maker(layout))
            writer.put(writer.open(path, write=True), [...], [self.image(layout)])
            if layout.nbytes > 2**24:
                os.sync()  # writing it back must not disturb what is timed
            self._made[layout] = path
        return self._made[layout]

    def content(self, layout: Layout, path: str) -> Array:
        """What lies at a path, as the limit or, with extensions, zarrlite reads it."""
        reader = load(_maker(layout))
        array: Array = reader.get(reader.open(path), [...])[0]
        return array

    def _kept(self, path: str) -> str:
        self._new.remove(path)
        return path

    def warm(self, layout: Layout) -> None:
        """Touch what a full read or write will need, so that nobody waits for memory that a host has taken back.

        On virtual machines fresh memory can cost ten times as much at one moment as at the next, and files can drop out
        of the page cache. Memory that has just been freed is given out first.
        """
        buffer: Any = np.empty(layout.nbytes * 5 // 4, "u1")
        buffer.fill(1)
        for directory, _, names in os.walk(self._made.get(layout, "")):
            for name in names:
                with open(os.path.join(directory, name), "rb", buffering=0) as file:
                    file.readinto(buffer)

    def copy(self, layout: Layout) -> str:
        """An array with all its chunks, to be changed."""
        path = self.directory()
        shutil.copytree(self.array(layout), path, dirs_exist_ok=True)
        return path

    def files(self, layout: Layout) -> dict[str, bytes]:
        """An array with all its chunks, by key."""
        root = self.array(layout)
        found = {}
        for directory, _, names in os.walk(root):
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    found[os.path.relpath(file.name, root)] = file.read()
        return found

    def memory(self, layout: Layout, contestant: Contestant) -> Any:
        """An array with all its chunks in memory, to be read only."""
        if contestant.name not in self._memory:
            self._files = self._files or self.files(layout)
            self._memory[contestant.name] = contestant.memory(self._files)
        return self._memory[contestant.name]

    def keep(self, layouts: Collection[Layout]) -> None:
        """Empty the other arrays, and remove those in memory."""
        self._memory.clear()
        self._files = {}
        for made in [made for made in self._made if made not in layouts]:
            _clear(self._made.pop(made))

    @cached_property
    def group(self) -> str:
        """A group of many arrays, of which no chunks exist."""
        document = layout(self.scale, "1M", "zstd").document()
        files = {"zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": {}}}
        for name in self.names:
            files[f"{name}/zarr.json"] = {**document, "attributes": {"title": name, "unit": "counts"}}
        return self._kept(self.store({key: json.dumps(value).encode() for key, value in files.items()}))

    @property
    def names(self) -> list[str]:
        """The arrays of the group."""
        return [f"array{n:04}" for n in range(self.scale.nodes)]

    def ratios(self) -> dict[str, float]:
        """How much smaller zstd makes the image, by size of chunks."""
        return {size: ratio(self.data, chunk) for size, chunk in self.scale.chunks.items()}


def _clear(root: str) -> None:
    for directory, _, names in os.walk(root):
        for name in names:
            os.truncate(f"{directory}/{name}", 0)


def _maker(layout: Layout) -> str:
    return "limit" if layout.kind == "plain" else "zarrlite"

"""xarray datasets, opened and read with the engines of zarrlite and zarr-python.

A dataset consists of the image and a coordinate for each dimension. Both engines use its consolidated metadata.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import Contestant
from benchmarks.data import Layout
from benchmarks.workloads import Run, Workload, same
from benchmarks.workspace import Workspace


def dataset_files(space: Workspace, layout: Layout) -> dict[str, bytes]:
    """Return the keys and values of a dataset whose variable `image` is stored in this layout."""
    names = ("y", "x")
    documents = {"image": {**layout.document(), "dimension_names": names}}
    values = {f"image/{key}": value for key, value in space.files(layout).items()}
    for name, length in zip(names, layout.shape, strict=True):
        form = Layout((length, 1), (length, 1), "raw").document()
        grid = {"name": "regular", "configuration": {"chunk_shape": (length,)}}
        documents[name] = {**form, "shape": (length,), "chunk_grid": grid, "dimension_names": (name,)}
        values[f"{name}/c/0"] = np.arange(length, dtype="<u2").tobytes()
    consolidated = {"kind": "inline", "must_understand": False, "metadata": documents}
    root = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": consolidated}
    values["zarr.json"] = json.dumps(root).encode()
    return values | {f"{name}/zarr.json": json.dumps(document).encode() for name, document in documents.items()}


@dataclass(frozen=True)
class OpenDataset(Workload):
    """Open a dataset and read its coordinates, from which xarray builds indexes."""

    layout: Layout
    reference = "zarr-python"

    @property
    def entrants(self) -> Sequence[str]:
        return "zarr-python", "zarrlite"

    def dataset(self, space: Any) -> Any:
        """Return the location of the dataset."""
        return space.dataset(self.layout)

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        place = self.dataset(space)
        return lambda: contestant.open_dataset(place)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        same(result["x"], np.arange(self.layout.shape[1]))
        if set(result.variables) != {"image", "y", "x"}:
            raise ValueError(f"the dataset must have the variables image, x and y, not {list(result.variables)}")


class ReadDataset(OpenDataset):
    """Open a dataset, and read all of it."""

    fresh = True

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        place = self.dataset(space)
        return lambda: contestant.open_dataset(place).load()

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        super().check(space, contestant, result)
        same(result["image"], space.image(self.layout))

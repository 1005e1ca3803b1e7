"""Reading chunks in parts while another process replaces them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.codecs import Bytes, ShardingIndexed
from zarrlite.errors import DataError
from zarrlite.storage_transformers import ConcatParts, Part

LIBRARY = str(Path(zarrlite.__file__).parents[1])
# two versions of one shard of four inner chunks; the first inner chunk of the second version is empty
OLD = np.repeat(np.arange(1, 5, dtype="u2"), 64)
NEW = np.where(OLD == 1, 0, OLD + 10).astype("u2")
WRITER = """
import sys
import numpy as np
import zarrlite

array = zarrlite.open_array(sys.argv[1], mode="r+")
versions = [np.load(f"{sys.argv[1]}/{name}.npy") for name in ("new", "old")]
print("ready", flush=True)
while True:
    for version in versions:
        array[:] = version
"""


@pytest.mark.parametrize(
    "parts",
    [
        [Part(""), Part(".index", 4 * 16 + 4)],
        [Part(".first", 2), Part(""), Part(".index", 4 * 16 + 4)],
    ],
    ids=["index apart", "start and index apart"],
)
def test_readers_of_a_chunk_being_replaced_see_one_version_or_an_error(tmp_path: Path, parts: Any) -> None:
    np.save(tmp_path / "old.npy", OLD)
    np.save(tmp_path / "new.npy", NEW)
    array = zarrlite.create_array(
        tmp_path,
        data=OLD,
        chunks=OLD.shape,
        codecs=[ShardingIndexed((64,), [Bytes()])],
        storage_transformers=[ConcatParts(parts)],
    )
    selections = [slice(64, 128), slice(0, 64), slice(0, 192), slice(64, 256), slice(None), 70, 0]
    outcomes = {"old": 0, "new": 0, "error": 0}
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": LIBRARY}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            end = time.monotonic() + 2
            while time.monotonic() < end:
                for selection in selections:
                    outcomes[_outcome(array, selection)] += 1
        finally:
            writer.kill()
    print(outcomes)
    assert outcomes["old"]
    assert outcomes["new"]


def _outcome(array: zarrlite.Array, selection: Any) -> str:
    try:
        values = array[selection]
    except DataError:
        return "error"
    for name, version in {"old": OLD, "new": NEW}.items():
        if np.array_equal(values, version[selection]):
            return name
    pytest.fail(f"array[{selection}] mixes two versions: {np.unique(values).tolist()}")

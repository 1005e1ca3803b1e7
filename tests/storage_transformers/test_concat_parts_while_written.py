"""Readers of a chunk that is split into parts find the old chunk or the new one, even if its writer is killed."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.codecs import Bytes, ShardingIndexed, Zstd
from zarrlite.storage_transformers import ConcatParts, Part

LIBRARY = str(Path(zarrlite.__file__).parents[1])
# two versions of one shard of four inner chunks; the first inner chunk of the second version is empty
OLD = np.repeat(np.arange(1, 5, dtype="u2"), 64)
NEW = np.where(OLD == 1, 0, OLD * 7919).astype("u2")
VERSIONS = {"old": OLD, "new": NEW}
INDEX = 4 * 16 + 4
PARTS = {
    "index apart": [Part(""), Part(".index", INDEX)],
    "start and index apart": [Part(".first", 2), Part(""), Part(".index", INDEX)],
    "index within": [Part(".first", 2), Part("")],
}
STRATEGIES = ["rewrite", "in-place", "append"]
# After writing a version, the writer also writes both versions of the second inner chunk alone, so a reader may see
# either version of that inner chunk.
WRITER = """
import sys
import numpy as np
import zarrlite

path, strategy = sys.argv[1:]
array = zarrlite.open_array(path, mode="r+", options={"/codecs/0": {"strategy": strategy}})
versions = [np.load(f"{path}/{name}.npy") for name in ("new", "old")]
print("ready", flush=True)
while True:
    for version in versions:
        array[:] = version
        array[64:128] = versions[0][64:128]
        array[64:128] = versions[1][64:128]
        array[64:128] = version[64:128]
"""


@contextlib.contextmanager
def written(path: Path, parts: Any, strategy: str) -> Iterator[tuple[zarrlite.Array, subprocess.Popen[bytes]]]:
    """Start a process that writes the versions of an array in turn, and kill it when the context ends."""
    np.save(path / "old.npy", OLD)
    np.save(path / "new.npy", NEW)
    array = zarrlite.create_array(
        path,
        data=OLD,
        chunks=OLD.shape,
        codecs=[ShardingIndexed((64,), [Bytes(), Zstd()])],
        storage_transformers=[ConcatParts(parts)],
    )
    command = [sys.executable, "-c", WRITER, str(path), strategy]
    environment = os.environ | {"PYTHONPATH": LIBRARY}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            yield array, writer
        finally:
            writer.kill()


def state_of(values: Any, selection: Any) -> str:
    """Return the name of the version to which values belong. The second inner chunk may be from either version."""
    for name, version in VERSIONS.items():
        for other in VERSIONS.values():
            state = version.copy()
            state[64:128] = other[64:128]
            if np.array_equal(values, state[selection]):
                return name
    pytest.fail(f"array[{selection}] mixes two versions: {np.unique(values).tolist()}")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_readers_of_a_chunk_being_written_see_one_version_of_it(tmp_path: Path, parts: Any, strategy: str) -> None:
    selections = [slice(128, 192), slice(0, 64), slice(0, 192), slice(64, 256), slice(None), 130, 0]
    outcomes = {"old": 0, "new": 0}
    with written(tmp_path, parts, strategy) as (array, writer):
        end = time.monotonic() + 0.5
        while time.monotonic() < end or not all(outcomes.values()):  # until both versions have been read
            assert writer.poll() is None
            for selection in selections:
                outcomes[state_of(array[selection], selection)] += 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_a_killed_writer_leaves_one_version_that_the_next_writer_replaces(
    tmp_path: Path, parts: Any, strategy: str
) -> None:
    moments = random.Random(strategy)
    for trial in range(2):
        path = tmp_path / str(trial)
        path.mkdir()
        with written(path, parts, strategy) as (_, writer), contextlib.suppress(subprocess.TimeoutExpired):
            writer.wait(moments.uniform(0, 0.05))
        assert writer.returncode == -9  # ended by SIGKILL, not by an error
        found = zarrlite.open_array(path, mode="r")
        assert state_of(found[...], slice(None)) in VERSIONS
        assert [*found[...]] == [found[i] for i in range(len(OLD))]
        array = zarrlite.open_array(path, mode="r+")
        array[128:] = 5
        assert state_of(array[:128], slice(0, 128)) in VERSIONS
        assert np.all(array[128:] == 5)
        array[...] = NEW
        np.testing.assert_array_equal(array, NEW)

"""Costs, measured as counts of calls, opened files and imported modules, which do not depend on the machine's speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import Array
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd

MAX_PYTHON_CALLS = 70  # maximum to read one chunk


def count_calls(operation: Callable[[], Any]) -> tuple[int, int]:
    """Return how many calls of Python functions and how many calls of C functions an operation makes."""
    counts = {"call": 0, "c_call": 0}

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        operation()
    finally:
        sys.setprofile(before)
    return counts["call"] - 1, counts["c_call"] - 1  # not counting `operation` itself and the second `setprofile`


@pytest.fixture
def array(tmp_path: Path) -> Array:
    """Return a newly opened array of one zstd chunk on disk."""
    data = np.arange(10_000, dtype="int32").reshape(100, 100)
    zarrlite.create_array(tmp_path, name="group/array", data=data, chunks=(100, 100))
    return zarrlite.open_array(tmp_path, path="group/array", mode="r")


READS: dict[str, Callable[[Array], Any]] = {
    "a[0:10, 0:10]": lambda a: a[0:10, 0:10],
    "a[...]": lambda a: a[...],
    "a[5, 5]": lambda a: a[5, 5],
    "a[:]": lambda a: a[:],
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_one_chunk_takes_few_calls(
    array: Array, read: Callable[[Array], Any], record_property: Callable[[str, Any], None]
) -> None:
    read(array)  # a first read, because some work is done only once for each array
    python, c = count_calls(lambda: read(array))
    record_property("python_calls", python)
    record_property("c_calls", c)
    print(f"{python} Python calls, {c} C calls")
    assert python < MAX_PYTHON_CALLS


@pytest.mark.parametrize(
    ("codecs", "limit"),
    [
        ([Bytes()], 30),
        ([Bytes(), Zstd(), Crc32c()], 40),
        ([ShardingIndexed((10, 10), [Bytes()])], 55),
        ([ShardingIndexed((10, 10), [Bytes(), Zstd(), Crc32c()])], 60),
    ],
    ids=["uncompressed", "zstd", "shard, uncompressed", "shard, zstd"],
)
def test_reading_one_element_takes_few_calls(tmp_path: Path, codecs: Any, limit: int) -> None:
    data = np.arange(10_000, dtype="int32").reshape(100, 100)
    array = zarrlite.create_array(tmp_path, data=data, chunks=(50, 50), codecs=codecs)
    assert array[77, 3] == data[77, 3]
    python, _ = count_calls(lambda: array[78, 4])
    assert python < limit


def test_known_documents_are_not_validated_again(tmp_path: Path) -> None:
    for i in range(3):
        zarrlite.create_array(tmp_path, name=f"a{i}", shape=(10, 10), dtype="u1", attributes={"number": i})
    zarrlite.open_array(tmp_path / "a0", mode="r")
    first = count_calls(lambda: zarrlite.open_array(tmp_path / "a1", mode="r"))[0]
    assert first < 50
    attributes = [zarrlite.open_array(tmp_path / f"a{i}", mode="r").attrs["number"] for i in range(3)]
    assert attributes == [0, 1, 2]
    zarrlite.open_array(tmp_path / "a0").attrs["number"] = [1]
    again = zarrlite.open_array(tmp_path / "a0", mode="r")
    again.attrs["number"].append(2)  # type: ignore[union-attr]
    assert zarrlite.open_array(tmp_path / "a0", mode="r").attrs["number"] == [1]


def test_arrays_with_equal_documents_share_pipelines_but_not_attributes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        zarrlite.create_array(tmp_path, name=name, data=np.arange(6, dtype="u1"), attributes={})
    a, b = (zarrlite.open_array(tmp_path / name, mode="r") for name in ("a", "b"))
    assert a[1] == b[1] == 1
    assert a._chunks.pipeline((0,)) is b._chunks.pipeline((0,))
    other = zarrlite.open_array(tmp_path / "b", mode="r+", write_empty_chunks=True)
    assert other._chunks.pipeline((0,)) is not b._chunks.pipeline((0,))
    a.metadata.attributes["mine"] = 1  # type: ignore[index]
    assert dict(b.attrs) == dict(zarrlite.open_array(tmp_path / "a", mode="r").attrs) == {}


def test_opening_a_known_array_and_reading_one_element_takes_few_calls(tmp_path: Path) -> None:
    zarrlite.create_array(tmp_path, data=np.arange(100, dtype="u2").reshape(10, 10), chunks=(5, 5), codecs=[Bytes()])

    def read() -> Any:
        return zarrlite.open_array(str(tmp_path), mode="r")[6, 7]

    assert read() == 67
    python, _ = count_calls(read)
    assert python < 49


def test_the_first_read_of_an_array_takes_few_calls(array: Array) -> None:
    array[0, 0]
    again = zarrlite.open_array(array.store, path=array.path, mode="r")
    python, _ = count_calls(lambda: again[0:10, 0:10])
    assert python < 2 * MAX_PYTHON_CALLS


def test_calls_grow_only_with_the_number_of_chunks_read(tmp_path: Path) -> None:
    small = zarrlite.create_array(tmp_path / "s", data=np.arange(100, dtype="u1"), chunks=10)
    large = zarrlite.create_array(tmp_path / "l", data=np.arange(2000) % 200, dtype="u1", chunks=10)
    for array in (small, large):
        array[0:10]
    assert count_calls(lambda: small[20:30]) == count_calls(lambda: large[20:30])
    one = count_calls(lambda: large[0:10])[0]
    ten = count_calls(lambda: large[0:100])[0]
    assert ten < 10 * one


def opened_files(do: Callable[[], Any]) -> list[str]:
    found: list[str] = []

    def recording(real: Any) -> Any:
        return lambda path, *rest, **keywords: (found.append(os.fspath(path)), real(path, *rest, **keywords))[1]

    # functions are patched instead of using an audit hook, because a hook could not be removed afterwards, and tests of
    # interrupts would interrupt it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", recording(os.open))
        patch.setattr("builtins.open", recording(open))
        do()
    return found


@pytest.mark.parametrize(
    "read",
    [
        lambda p: zarrlite.open(p, path="group/array", mode="r")[0:10, 0:10],
        lambda p: zarrlite.open_array(p, path="group/array", mode="r")[0:10, 0:10],
        lambda p: zarrlite.open_array(p / "group" / "array", mode="r")[...],
    ],
    ids=["open", "open_array", "open_array at its own root"],
)
def test_opening_and_reading_opens_only_the_document_and_the_chunk(
    array: Array, tmp_path: Path, read: Callable[[Path], Any]
) -> None:
    root = tmp_path / "group" / "array"
    read(tmp_path)  # load the modules that are imported on first use
    assert opened_files(lambda: read(tmp_path)) == [str(root / "zarr.json"), str(root / "c" / "0" / "0")]
    assert opened_files(lambda: array[0:10, 0:10]) == [str(root / "c" / "0" / "0")]


def test_opening_a_member_through_its_group_opens_two_documents(array: Array, tmp_path: Path) -> None:
    zarrlite.open_group(tmp_path, mode="r")  # load the modules that are imported on first use
    found = opened_files(lambda: zarrlite.open_group(tmp_path, mode="r")["group/array"])
    assert found == [str(tmp_path / "zarr.json"), str(tmp_path / "group" / "array" / "zarr.json")]


def test_reading_one_inner_chunk_reads_ranges_of_one_file(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=np.arange(100_000), chunks=100, shards=100_000, compressors=None)
    read = 0
    pread = os.pread

    def counting(fd: int, length: int, offset: int) -> bytes:
        nonlocal read
        data = pread(fd, length, offset)
        read += len(data)
        return data

    from zarrlite.stores import files

    original = files.pread
    files.pread = counting  # type: ignore[assignment]
    try:
        assert array[555:560].tolist() == [555, 556, 557, 558, 559]
    finally:
        files.pread = original
    index = 1000 * 16 + 4
    assert index < read <= index + 100 * 8


IMPORT = """
import json, sys
before = set(sys.modules)
import zarrlite
zarrlite.open
print(json.dumps(sorted(set(sys.modules) - before)))
"""
HEAVY = {
    "asyncio",
    "concurrent.futures.thread",
    "email",
    "http",
    "importlib.metadata",
    "multiprocessing",
    "numcodecs",
    "rich",
    "ssl",
    "subprocess",
    "unittest",
    "urllib.request",
    "xml",
    "zarr",
}


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """Return the modules that a new interpreter loads for `import zarrlite` and the use of one of its names."""
    root = str(Path(zarrlite.__file__).parents[1])
    found = subprocess.run(
        [sys.executable, "-c", IMPORT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    return set(json.loads(found.stdout))


def test_import_loads_no_large_modules(imported: set[str]) -> None:
    assert imported & HEAVY == set()


def test_import_loads_no_third_party_modules_except_the_dependencies(imported: set[str]) -> None:
    tops = {name.partition(".")[0] for name in imported}
    third = {name for name in tops if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert third - {"zarrlite"} <= {"numpy", "zstandard", "google_crc32c"}


def test_import_loads_no_codec_before_its_first_use(imported: set[str]) -> None:
    assert not imported & {"zarrlite.codecs.blosc", "zarrlite.codecs.gzip", "zarrlite.data_types.struct"}

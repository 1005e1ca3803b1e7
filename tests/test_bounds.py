"""Time and memory are proportional to the stored and requested data, whatever sizes documents and chunks claim.

The memory tests run their code in a separate process whose memory is limited by the operating system. Costs are
counted, not timed.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pickle
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import ArgumentError, DataError, n5, tiff
from zarrlite.codecs import Bytes, Gzip, ShardingIndexed, Zstd
from zarrlite.extensions.config import Config, Context
from zarrlite.layout import check, explain
from zarrlite.pipeline.decoding import default_limit
from zarrlite.storage_transformers import ConcatParts
from zarrlite.tools.layout.objects import Stack

ROOT = Path(zarrlite.__file__).parents[1]
PRELUDE = """
import json, resource, numpy as np, zarrlite
from zarrlite import MemoryStore

def limit_memory(megabytes):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20,) * 2)

def document(node_type, **members):
    return {"zarr_format": 3, "node_type": node_type, **members}
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of memory need Linux")


def run(code: str, **environment: str) -> str:
    """Run code in a separate process, and return its output."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("call", ["list(group.members(None))", "group.tree()", "group.info", "group._repr_html_()"])
def test_a_long_chain_of_consolidated_groups_costs_no_more_than_its_text(call: str) -> None:
    run(f"""
        paths = ["a"]
        while len(paths) < 1500:
            paths.append(paths[-1] + "/a")
        nodes = {{path: document("group") for path in paths}}
        copies = {{"kind": "inline", "must_understand": False, "metadata": nodes}}
        root = document("group", consolidated_metadata=copies)
        store = MemoryStore({{"zarr.json": json.dumps(root).encode()}})
        group = zarrlite.open_group(store, mode="r")
        limit_memory(128)
        {call}
    """)


def test_a_deep_hierarchy_is_walked_without_recursion() -> None:
    run("""
        from zarrlite.layout import check
        group = json.dumps(document("group")).encode()
        store = MemoryStore({"/".join(["a"] * n + ["zarr.json"]): group for n in range(1200)})
        group = zarrlite.open_group(store, mode="r")
        assert group.nmembers(None) == 1199
        assert group.tree().count("\\n") == 1199
        assert list(check(store)) == []
        zarrlite.copy(group, MemoryStore())
        zarrlite.consolidate_metadata(store)
    """)


def test_only_the_attributes_that_are_shown_are_formatted() -> None:
    run("""
        attributes = {str(i): list(range(100)) for i in range(20_000)}
        group = zarrlite.create_group(MemoryStore(), attributes=attributes)
        array = zarrlite.create_array(MemoryStore(), shape=(), dtype="i1", attributes=attributes)
        limit_memory(16)
        assert len(group._repr_html_()) < 10_000
        assert len(array._repr_html_()) < 50_000
    """)


@pytest.mark.parametrize("length", [2**63 - 1, 10**18])
def test_arrays_larger_than_every_float_are_described(length: int, capsys: Any, tmp_path: Path) -> None:
    from zarrlite.tools.cli.main import main

    array = zarrlite.create_array(tmp_path / "a", shape=(length,) * 64, chunks=(1,) * 64, dtype="f8")
    size = f"about 2**{(8 * length**64).bit_length() - 1}"
    assert size in str(array.info)
    assert size in array._repr_html_()
    assert array.to_svg().startswith("<svg")
    assert main(["info", str(tmp_path / "a")]) == 0
    assert main(["info", "--storage", "--json", str(tmp_path / "a")]) == 0


LARGE = {"shape": (4, 6), "dtype": "u1", "chunks": (4, 2**32), "fill_value": 1}
SHARDS = {"shape": (4, 6), "dtype": "u1", "chunks": (4, 2**8), "shards": (4, 2**32), "fill_value": 1}
SHARDING = {
    "chunk_shape": [1, 2**28],
    "codecs": ["bytes"],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
REFUSED: dict[str, dict[str, Any]] = {
    "compressed": LARGE,
    "with a checksum": {**LARGE, "compressors": ["crc32c"]},
    "text": {**LARGE, "dtype": "string", "fill_value": "x"},
    "inner chunks": {**LARGE, "shards": (4, 2**33)},
    "the index of a shard": {**SHARDS, "shards": (4, 2**40)},
    "a compressed shard": {**LARGE, "codecs": [{"name": "sharding_indexed", "configuration": SHARDING}, "gzip"]},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_chunks_beyond_the_limit_are_neither_read_nor_written(kind: str) -> None:
    run(f"""
        array = zarrlite.create_array(MemoryStore({{"c/0/0": b""}}), overwrite=True, **{REFUSED[kind]!r})
        array.store.set("c/0/0", b"")
        value = array.metadata.fill_value
        limit_memory(64)
        for action in (
            lambda: array[0, 0],
            lambda: array[1:3],
            lambda: array.vindex[[0, 1], [2, 3]],
            lambda: array.__setitem__((0, 0), value),
            lambda: array.__setitem__(..., value),
            lambda: array.resize((2, 2)),
        ):
            try:
                action()
            except zarrlite.ZarrliteError as error:
                assert str(error).startswith("chunk c/0/0: must have at most 1073741824 bytes once decoded, not"), error
                assert str(error).endswith("or set ZARRLITE_MAX_CHUNK_BYTES"), error
            else:
                raise AssertionError(action)
    """)


def test_parts_of_large_uncompressed_chunks_are_read(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, **LARGE, compressors=None)
    (tmp_path / "c/0").mkdir(parents=True)
    with open(tmp_path / "c/0/0", "wb") as file:
        file.truncate(4 * 2**32)  # a sparse file
    assert array[2, 3] == 0
    assert array[:, 1:3].tolist() == [[0, 0]] * 4


def test_a_shard_may_exceed_the_limit_if_its_inner_chunks_do_not() -> None:
    array = zarrlite.create_array({}, **SHARDS | {"shards": (4, 2**28)}, max_chunk_bytes=2**25)
    array[1, 2] = 7
    assert array[1].tolist() == [1, 1, 7, 1, 1, 1]


@pytest.fixture
def set_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that sets ZARRLITE_MAX_CHUNK_BYTES, and clears the cached value of this variable."""

    def set_limit(value: str) -> None:
        monkeypatch.setenv("ZARRLITE_MAX_CHUNK_BYTES", value)
        default_limit.cache_clear()

    yield set_limit
    default_limit.cache_clear()


def test_every_function_that_opens_tiff_files_takes_max_chunk_bytes() -> None:
    keywords: dict[str, Any] = {"chunks": (10, 20), "compression": "zstd"}
    images: dict[str, bytes] = {}
    tiff.create_array(images, data=np.ones((10, 20), "float32"), **keywords)
    opened = tiff.open_array(images, max_chunk_bytes=799)
    with pytest.raises(DataError, match="must have at most 799 bytes once decoded, not 800"):
        opened[...]
    for array in (opened, tiff.create_array({}, shape=(10, 20), dtype="f4", max_chunk_bytes=799, **keywords)):
        with pytest.raises(ArgumentError, match="must have at most 799 bytes once decoded, not 800"):
            array[...] = 2
    assert tiff.open_array(images, max_chunk_bytes=800)[9, 19] == 1
    folder = {"0.0.tif": tiff.header((10, 20), "f4")(bytes(800)) + bytes(800)}
    assert tiff.open_folder(folder, max_chunk_bytes=799).options.max_chunk_bytes == 799


def test_every_function_that_opens_n5_takes_max_chunk_bytes() -> None:
    container: dict[str, bytes] = {}
    keywords: dict[str, Any] = {"path": "a", "shape": (10, 20), "dtype": "f4", "chunks": (10, 20)}
    limited = n5.create_array(container, **keywords, max_chunk_bytes=799)
    member = n5.open(container, max_chunk_bytes=799)["a"]
    for array in (limited, member, n5.open(container, path="a", max_chunk_bytes=799)):
        assert array.options.max_chunk_bytes == 799
    with pytest.raises(ArgumentError, match="max_chunk_bytes=800"):
        limited[...] = 1
    n5.create_array(container, **keywords, overwrite=True, max_chunk_bytes=800)[...] = 1
    with pytest.raises(DataError, match="max_chunk_bytes=800"):
        n5.open(container, path="a", max_chunk_bytes=799)[...]
    assert n5.open(container, path="a", max_chunk_bytes=800)[9, 19] == 1
    with pytest.raises(ArgumentError, match=r"^max_chunk_bytes must be a number of bytes"):
        n5.create_array({}, shape=3, dtype="i1", max_chunk_bytes=0)


def test_every_function_that_opens_an_array_takes_max_chunk_bytes(set_limit: Callable[[str], None]) -> None:
    root = zarrlite.create_group("memory://")
    root.create_array("a", data=range(100), chunks=(100,))
    keywords: dict[str, Any] = {"mode": "r", "max_chunk_bytes": 799}
    for array in (
        zarrlite.open(root.store, path="a", **keywords),
        zarrlite.open_array(root.store, path="a", **keywords),
        zarrlite.open_group(root.store, **keywords)["a"],
        pickle.loads(pickle.dumps(zarrlite.open_array(root.store, path="a", **keywords))),
    ):
        with pytest.raises(DataError, match="must have at most 799 bytes once decoded, not 800"):
            array[...]
    for create in (root.create_array, lambda name, **kw: zarrlite.create_array(root.store, name=name, **kw)):
        with pytest.raises(ArgumentError, match="must have at most 799 bytes once decoded, not 800"):
            create("b", data=range(100), chunks=(100,), max_chunk_bytes=799)
        assert "b" not in root
    set_limit("799")
    with pytest.raises(DataError, match="must have at most 799 bytes once decoded, not 800"):
        zarrlite.open(root.store, path="a")[...]
    assert zarrlite.open(root.store, path="a", max_chunk_bytes=800)[99] == 99


@pytest.mark.parametrize("value", [0, -1, True, "1", 1.5])
def test_a_limit_that_is_not_a_size_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^max_chunk_bytes must be a number of bytes, at least 1, not "):
        zarrlite.create_array({}, shape=3, dtype="i1", max_chunk_bytes=value)


@pytest.mark.parametrize("value", ["", "0", "1 GiB", "-1", "1e9"])
def test_an_environment_variable_that_is_not_a_size_is_refused(value: str, set_limit: Callable[[str], None]) -> None:
    set_limit(value)
    with pytest.raises(ArgumentError, match=r"^ZARRLITE_MAX_CHUNK_BYTES must be a number of bytes, at least 1, not "):
        zarrlite.create_array({}, data=[1])


def test_fsck_refuses_chunks_beyond_the_limit_without_decoding_them() -> None:
    run(f"""
        from zarrlite.codecs import Zstd
        from zarrlite.layout import check, explain
        array = zarrlite.create_array(MemoryStore(), **{LARGE | {"chunks": (4, 2**29)}!r})
        array.store.set("c/0/0", b"".join(Zstd(1).encode(bytes(2**20)) for i in range(2**11)))
        limit_memory(256)
        (problem,) = check(array.store)
        assert problem.kind == "limit", problem
        assert "must have at most 1073741824 bytes once decoded, not 2147483648" in problem.message, problem
        (stored,) = explain(array, "c/0/0")
        assert any(r.fault for _, r in stored.layout.walk())
    """)


def test_a_document_with_many_unknown_names_searches_the_installed_packages_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches = []
    search = importlib.metadata.entry_points
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **keys: searches.append(keys) or search(**keys))
    monkeypatch.syspath_prepend("/nowhere")  # changing `sys.path` invalidates the cached results of earlier searches
    array = zarrlite.create_array({}, shape=3, dtype="i1").metadata.to_json()
    for n in range(3):
        names = [{"name": f"unknown.{n}.{i}", "must_understand": False} for i in range(500)]
        assert zarrlite.validate(json.dumps({**array, "codecs": ["bytes", *names]}).encode()) == []
    assert searches == [{"group": "zarrlite.codec"}]


def test_the_first_thousand_faults_of_a_document_are_reported() -> None:
    array = zarrlite.create_array({}, shape=3, dtype="i1").metadata.to_json()
    codecs = [f"unknown.{i}" for i in range(5000)]
    faults = zarrlite.validate(json.dumps({**array, "codecs": codecs}).encode())
    assert [fault.pointer for fault in faults] == [f"/codecs/{i}" for i in range(1000)]


def test_parts_are_parsed_at_a_cost_in_proportion_to_their_number() -> None:
    class Suffix(str):
        """A string that counts how often it is looked up in a set."""

        lookups = 0

        def __hash__(self) -> int:
            Suffix.lookups += 1
            return super().__hash__()

    parts = [{"key_suffix": Suffix(f".{i}"), "size": 1} for i in range(500)]
    assert len(ConcatParts.from_config(Config({"parts": parts}, "", Context())).parts) == 500
    assert Suffix.lookups < 5 * 500


def nested_shards(levels: int, entries: Callable[[int], list[tuple[int, int]]]) -> zarrlite.Array:
    """Create nested shards. `entries` computes the 64 index entries of a shard from the size of the shard inside it."""
    codecs: list[Any] = [Bytes()]
    for level in range(levels):
        codecs = [ShardingIndexed((64**level,), codecs, [Bytes()])]
    value = b"\7" * 64
    for _ in range(levels):
        value += b"".join(struct.pack("<QQ", *entry) for entry in entries(len(value)))
    size = 64**levels
    array = zarrlite.create_array(
        CountingStore(), shape=size, dtype="u1", chunks=(size,), codecs=codecs, overwrite=True
    )
    array.store.set("c/0", value)
    return array


class CountingStore(zarrlite.MemoryStore):
    """A store that counts the bytes that are read."""

    nbytes = 0

    def get(self, key: str, *args: Any) -> Any:
        value = super().get(key, *args)
        self.nbytes += len(value or b"")
        return value


SHARED = {
    "the same bytes": lambda size: [(0, size if size > 64 else 1)] * 64,
    "overlapping bytes": lambda size: [(i, size - i if size > 64 else 1) for i in range(64)],
}


@pytest.mark.parametrize("levels", [2, 4])
@pytest.mark.parametrize("entries", SHARED)
def test_shards_whose_chunks_share_bytes_are_checked_in_proportion_to_their_size(entries: str, levels: int) -> None:
    array = nested_shards(levels, SHARED[entries])
    size = array.store.size("c/0")
    array.store.nbytes = 0
    problems = list(check(array.store))
    assert array.store.nbytes < 4 * levels * size
    assert len(problems) < 64
    if entries == "the same bytes":
        assert problems == []
        assert array[5] == 7
    else:
        assert any("overlap" in problem.message for problem in problems)
    explain(array, "c/0")
    assert array.store.nbytes < 100 * levels * size


def test_only_damaged_entries_of_an_index_are_examined_one_by_one() -> None:
    array = zarrlite.create_array({}, shape=2**12, dtype="u1", chunks=(1,), shards=(2**12,))
    array[7] = 7
    data = bytearray(array.store.get("c/0"))
    first = len(data) - 4 - 16 * 2**12
    data[first + 16 * 9 : first + 16 * 9 + 8] = bytes(8)  # overwrites half of the index entry of a missing chunk
    array.store.set("c/0", bytes(data))
    layout = Stack(array).layout("c/0")
    assert layout is not None
    entries = next(r for _, r in layout.walk() if r.what == "entries")
    assert [r.what for r in entries.faulty()] == ["entry (9)"]
    assert [r.what for r in entries.children() if r.fault] == ["entry (9)"]


@pytest.mark.parametrize(
    ("codec", "empty", "message"),
    [(Zstd(), Zstd().encode(b""), "1000 zstd frames"), (Gzip(), Gzip().encode(b""), "1000 gzip streams")],
    ids=["zstd", "gzip"],
)
def test_compressed_values_may_have_a_thousand_frames_without_content(codec: Any, empty: bytes, message: str) -> None:
    value = codec.encode(b"value")
    assert codec.decode(empty * 500 + value + empty * 500, 5) == b"value"
    with pytest.raises(DataError, match=f"^must have at most {message} without content"):
        codec.decode(empty * 600 + value + empty * 600, 5)


@pytest.mark.parametrize("codec", [Zstd(), Gzip()], ids=["zstd", "gzip"])
def test_frames_of_all_sizes_are_decoded(codec: Any) -> None:
    sizes = [0, 1, 300, 70_000, 5, 2**20, 1000]
    pieces = [np.random.default_rng(size).integers(0, 50, size, "u1").tobytes() for size in sizes]
    assert codec.decode(b"".join(map(codec.encode, pieces)), sum(sizes)) == b"".join(pieces)

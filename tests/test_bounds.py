"""Time and memory are in proportion to what is stored, read or asked for, whatever a document or a chunk claims.

Memory is limited by the operating system, in a process of its own; costs are counted. Nothing here is timed.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import zarrlite
from zarrlite import ArgumentError, DataError

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
    """Run code in a process of its own, and return its output."""
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
def test_shapes_beyond_every_float_are_described(length: int, capsys: Any, tmp_path: Path) -> None:
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


def test_the_limit_is_an_option_of_every_way_to_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setenv("ZARRLITE_MAX_CHUNK_BYTES", "799")
    with pytest.raises(DataError, match="must have at most 799 bytes once decoded, not 800"):
        zarrlite.open(root.store, path="a")[...]
    assert zarrlite.open(root.store, path="a", max_chunk_bytes=800)[99] == 99


@pytest.mark.parametrize("value", [0, -1, True, "1", 1.5])
def test_a_limit_that_is_not_a_size_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="^max_chunk_bytes must be a number of bytes, at least 1, not "):
        zarrlite.create_array({}, shape=3, dtype="i1", max_chunk_bytes=value)


@pytest.mark.parametrize("value", ["", "0", "1 GiB", "-1", "1e9"])
def test_an_environment_variable_that_is_not_a_size_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRLITE_MAX_CHUNK_BYTES", value)
    with pytest.raises(ArgumentError, match="^ZARRLITE_MAX_CHUNK_BYTES must be a number of bytes, at least 1, not "):
        zarrlite.create_array({}, shape=3, dtype="i1")


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

"""fsck finds all planted damage, and reports nothing in healthy hierarchies."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats.draft_hierarchies import HIERARCHIES, memory
from layout.arrays import ARRAYS, DATA, KINDS, make
from layout.damage import DAMAGE, flip

import zarrlite
from zarrlite import (
    Array,
    DataError,
    LocalStore,
    MemoryStore,
    MetadataWarning,
    NodeNotFoundError,
    Store,
    n5,
    register,
    tiff,
)
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed
from zarrlite.layout import Problem, check, explain
from zarrlite.storage_transformers import Sharding, StorageTransformer
from zarrlite.tools.layout.check import MAX_REPORTED, REMEDIES
from zarrlite.tools.layout.objects import Stack
from zarrlite.tools.layout.tree import tiles


def found(store: Any, path: str = "") -> list[tuple[str, str]]:
    return [(problem.key, problem.kind) for problem in check(store, path)]


@pytest.mark.parametrize("kind", ARRAYS)
def test_no_problems_are_found_in_a_healthy_array(kind: str) -> None:
    assert list(check(ARRAYS[kind]().store)) == []


def test_no_problems_are_found_in_a_healthy_hierarchy(tmp_path: Path) -> None:
    root = zarrlite.create_group(tmp_path)
    for i, kind in enumerate(KINDS):
        make(kind, zarrlite.stores.PrefixStore(root.store, f"deep/{i}/"))
    root.create_group("deep")
    root.create_array("scalar", data=7)
    root.create_array("empty", shape=(0, 5), dtype="i4")
    zarrlite.consolidate_metadata(tmp_path)
    done: list[str] = []
    assert list(check(root.store, done=done.append)) == []
    assert sorted(done) == sorted(root.store.list())


@pytest.mark.parametrize("name", [name for name in HIERARCHIES if name != "refused"])
def test_no_problems_are_found_in_a_healthy_hierarchy_of_the_draft(name: str) -> None:
    assert list(check(memory(name))) == []


def test_no_problems_are_found_in_tiff_files_and_n5_containers(tmp_path: Path) -> None:
    tiff.create_array(tmp_path / "tiff", data=DATA, chunks=(4, 4))
    folder = tiff.open_folder(tmp_path / "tiff")
    n5.create_array(tmp_path / "n5", shape=DATA.shape, dtype=DATA.dtype, chunks=(4, 4))[...] = DATA
    assert list(check(LocalStore(tmp_path / "tiff"))) == []
    assert list(check(folder.store, folder.path)) == []
    assert list(check(n5.open(tmp_path / "n5").store)) == []
    n5.write_documents(tmp_path / "n5")
    assert list(check(LocalStore(tmp_path / "n5"))) == []


@pytest.mark.parametrize(("kind", "damage", "wanted"), DAMAGE.values(), ids=DAMAGE)
def test_planted_damage_is_found(kind: str, damage: Any, wanted: list[tuple[str, str, str]]) -> None:
    array = make(kind)
    damage(array.store)
    problems = list(check(array.store))
    assert len(problems) == len(wanted), problems
    for problem, (key, what, message) in zip(problems, wanted, strict=True):
        assert (problem.key, problem.kind) == (key, what)
        assert problem.message.startswith(message)
        assert problem.remedy == REMEDIES[what]
        assert problem.to_json()["key"] == key


def test_faults_that_lenient_readers_repair_are_reported_and_the_chunks_are_checked() -> None:
    array = make("gzip and crc32c")
    document = json.loads(bytes(array.store.get("zarr.json")))
    del document["fill_value"]
    array.store.set("zarr.json", json.dumps(document).encode())
    flip(array.store, "c/0/0", -1)
    assert found(array.store) == [("zarr.json", "metadata"), ("c/0/0", "checksum")]
    with pytest.warns(MetadataWarning, match="/fill_value: is missing"):
        assert [problem.kind for problem in check(array.store, strict=False)] == ["checksum"]


HIERARCHY: dict[str, tuple[Any, list[tuple[str, str, str]]]] = {
    "a file in a group": (
        lambda s: s.set("a/readme.txt", b"x"),
        [("a/readme.txt", "unknown", "does not belong to the group")],
    ),
    "files without a node": (
        lambda s: s.set("a/stuff/1", b"x"),
        [("a/stuff/", "unknown", "is not a node, but contains 1 object")],
    ),
    "a group without a document": (
        lambda s: s.erase("a/zarr.json"),
        [
            ("zarr.json", "consolidated", "has a copy of a/zarr.json, which does not exist"),
            ("a/", "document", "has no zarr.json, so a/b/zarr.json cannot be found"),
        ],
    ),
    "damage below a group without a document": (
        lambda s: [s.erase("a/zarr.json"), s.set("a/b/c/0/0", b"?")],
        [
            ("zarr.json", "consolidated", "has a copy of a/zarr.json, which does not exist"),
            ("a/", "document", "has no zarr.json, so a/b/zarr.json cannot be found"),
            ("a/b/c/0/0", "size", "chunk (0, 0): elements: has 1 bytes, but a chunk of shape (12, 10) has 240"),
        ],
    ),
    "a name that is reserved": (
        lambda s: s.set("__zarrlite.x/zarr.json", b"{}"),
        [
            (
                "__zarrlite.x/",
                "unknown",
                "cannot be a node: node names must not start with '__zarrlite.', the prefix of zarrlite's own keys",
            )
        ],
    ),
    "a copy that is stale": (
        lambda s: s.set("a/zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {"new": 1}}'),
        [("zarr.json", "consolidated", "has a copy of a/zarr.json that differs from the original")],
    ),
    "a copy that is missing": (
        lambda s: s.set("n/zarr.json", b'{"zarr_format": 3, "node_type": "group"}'),
        [("zarr.json", "consolidated", "has no copy of n/zarr.json")],
    ),
    "documents of other formats": (lambda s: s.set(".zattrs", b"{}"), []),
}


@pytest.mark.parametrize(("damage", "wanted"), HIERARCHY.values(), ids=HIERARCHY)
def test_planted_damage_of_a_hierarchy_is_found(damage: Any, wanted: list[tuple[str, str, str]]) -> None:
    store = MemoryStore()
    zarrlite.create_group(store).create_array("a/b", data=DATA, compressors=None)
    zarrlite.consolidate_metadata(store)
    damage(store)
    assert [(p.key, p.kind, p.message) for p in check(store)] == wanted


def test_part_of_a_hierarchy_can_be_checked_alone() -> None:
    store = MemoryStore()
    root = zarrlite.create_group(store)
    root.create_array("a/b", data=DATA)
    root.create_array("c", data=DATA, codecs=[Bytes(), Crc32c()])
    flip(store, "c/c/0/0", 0)
    assert found(store, "a") == []
    assert found(store, "c") == found(store) == [("c/c/0/0", "checksum")]
    with pytest.raises(NodeNotFoundError):
        list(check(store, "nowhere"))


def test_the_number_of_problems_reported_for_one_object_is_limited() -> None:
    array = zarrlite.create_array(
        {}, data=np.arange(1, 101, dtype="u1"), chunks=(100,), codecs=[ShardingIndexed((1,), [Bytes(), Crc32c()])]
    )
    for i in range(100):
        flip(array.store, "c/0", 5 * i)
    problems = list(check(array.store))
    assert len(problems) == MAX_REPORTED + 1
    assert problems[-1].message == f"has {100 - MAX_REPORTED} more problems"


class Watched(MemoryStore):
    """A store that records how many bytes the largest single read returned."""

    most = 0

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        value = super().get(key, byte_range)
        self.most = max(self.most, len(value or b""))
        return value


def test_a_large_shard_is_read_chunk_by_chunk() -> None:
    store = Watched()
    data = np.arange(2**18, dtype="u4") + 1
    zarrlite.create_array(store, data=data, chunks=data.shape, codecs=[ShardingIndexed((2**10,), [Bytes(), Crc32c()])])
    store.most = 0
    assert list(check(store)) == []
    assert store.most <= 2**12 + 4


class Failing(MemoryStore):
    """A store on a disk with bad blocks."""

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        if key == "c/0/1":
            raise zarrlite.StoreError("input/output error", key=key)
        return super().get(key, byte_range)


def test_unreadable_objects_are_problems_and_the_others_are_checked() -> None:
    store = Failing()
    zarrlite.create_array(store, data=DATA, chunks=(4, 4), codecs=[Bytes(), Crc32c()])
    flip(store, "c/0/2", 0)
    assert found(store) == [("c/0/1", "unreadable"), ("c/0/1", "unreadable"), ("c/0/2", "checksum")]


class Shrinking(MemoryStore):
    """A store whose values are truncated while they are read: it still reports their old sizes."""

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        value = bytes(super().get(key) or b"")
        return byte_range.of(value[: len(value) // 2])


@pytest.mark.parametrize("kind", ARRAYS)
def test_values_truncated_during_the_check_are_problems(kind: str) -> None:
    healthy = ARRAYS[kind]()
    store = Shrinking({key: bytes(healthy.store.get(key) or b"") for key in healthy.store.list()})
    array = Array(store, "", healthy.metadata)
    layouts = [Stack(array).layout(key) for key in store.list()]
    assert all(layout is not None and tiles(layout) for layout in layouts)
    assert any(r.fault for layout in layouts if layout for _, r in layout.walk())


@pytest.mark.parametrize("kind", ARRAYS)
def test_random_damage_is_found_wherever_reading_fails_and_never_crashes(kind: str) -> None:
    """If any chunk cannot be read, the check must report problems."""
    rng = random.Random(kind)
    healthy = ARRAYS[kind]()
    values = {key: bytes(healthy.store.get(key) or b"") for key in healthy.store.list()}
    for _ in range(12):
        array = Array(MemoryStore(dict(values)), "", healthy.metadata)
        keys = [key for key in array.store.list() if key != "zarr.json"]
        for _ in range(rng.randint(1, 3)):
            damage_at_random(rng, array.store, rng.choice(keys))
        problems = list(check(array.store))
        for key in list(array.store.list()):
            layout = Stack(array).layout(key)
            assert layout is not None
            assert (layout.start, layout.stop) == (0, array.store.size(key))
            assert tiles(layout)
        for key in keys:
            if array.store.size(key) is not None:
                assert all(tiles(stored.layout) for stored in explain(array, key, most=4))
        try:
            for coords in np.ndindex(*array.metadata.chunk_grid.grid_shape(array.shape)):
                array.blocks[coords]
            failed = False
        except DataError:
            failed = True
        assert failed <= bool(problems), (kind, problems)
        if not problems:
            assert array[...].shape == array.shape


def damage_at_random(rng: random.Random, store: Store, key: str) -> None:
    data = bytearray(store.get(key) or b"")
    match rng.choice(["flip", "cut", "grow", "erase", "fill", "zero"]):
        case "flip" if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "cut":
            del data[rng.randrange(len(data) + 1) :]
        case "grow":
            data += rng.randbytes(rng.randint(1, 40))
        case "fill" if data:
            start = rng.randrange(len(data))
            data[start : start + 8] = b"\xff" * len(data[start : start + 8])
        case "zero" if data:
            start = rng.randrange(len(data))
            data[start : start + 8] = bytes(len(data[start : start + 8]))
        case "erase":
            store.erase(key)
            return
    store.set(key, bytes(data))


class Sealed(StorageTransformer):
    """A storage transformer from another package, which does not describe itself."""

    name = "test.sealed"

    def wrap(self, store: Store, metadata: Any) -> Store:
        return zarrlite.stores.PrefixStore(store, "sealed/")


def test_an_unknown_storage_transformer_is_not_a_problem() -> None:
    register(Sealed)
    array = zarrlite.create_array({}, data=DATA, chunks=(12, 10), storage_transformers=[Sealed()])
    assert list(check(array.store)) == []
    (stored,) = explain(array, "sealed/c/0/0")
    assert (stored.layout.what, stored.layout.owner, stored.layout.fault) == ("object", "PrefixStore", None)


def test_every_kind_of_problem_has_a_remedy() -> None:
    assert all(Problem("key", kind, "message").remedy for kind in REMEDIES)


def test_a_path_that_cannot_be_a_node_is_refused(tmp_path: Path) -> None:
    zarrlite.create_group(tmp_path)
    with pytest.raises(zarrlite.ArgumentError, match="must not contain lone surrogates"):
        list(check(LocalStore(tmp_path), "\ud800"))


@pytest.mark.parametrize("missing_chunks", ["fill", "error"])
@pytest.mark.parametrize(
    ("shape", "new"),
    [
        pytest.param((8, 8), (5, 7), id="both dimensions"),
        pytest.param((8, 2), (5, 2), id="the other one ends within a shard"),
        pytest.param((7, 8), (9, 3), id="the other one grows"),
    ],
)
def test_a_smaller_array_with_empty_chunks_has_no_chunks_outside_of_its_grid(
    shape: tuple[int, int], new: tuple[int, int], missing_chunks: Any
) -> None:
    data = np.arange(np.prod(shape), dtype="u1").reshape(shape)
    array = zarrlite.create_array(
        {},
        data=data,
        chunks=(2, 2),
        storage_transformers=[Sharding((2, 2))],
        write_empty_chunks=True,
        missing_chunks=missing_chunks,
    )
    array[4, :] = data[4, :] = 0
    array.resize(new)
    assert list(check(array.store)) == []
    kept = np.minimum(shape, new)
    assert np.array_equal(array[: kept[0], : kept[1]], data[: kept[0], : kept[1]])

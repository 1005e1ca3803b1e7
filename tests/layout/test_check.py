"""fsck: every planted damage is found, nothing is found in what is healthy, and only what is safe is repaired."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layout.arrays import ARRAYS, DATA, KINDS, make
from test_draft_stores import HIERARCHIES, disk, memory

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
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd
from zarrlite.layout import Problem, check, explain, repair
from zarrlite.layout.check import MOST, REMEDIES
from zarrlite.layout.objects import Stack
from zarrlite.layout.tree import tiles
from zarrlite.ranges import ALL, ByteRange
from zarrlite.storage_transformers import ConcatParts, Part, Sharding, StorageTransformer
from zarrlite.stores.files import TEMPORARY


def found(store: Any, path: str = "") -> list[tuple[str, str]]:
    return [(problem.key, problem.kind) for problem in check(store, path)]


@pytest.mark.parametrize("kind", ARRAYS)
def test_nothing_is_found_in_a_healthy_array(kind: str) -> None:
    assert list(check(ARRAYS[kind]().store)) == []


def test_nothing_is_found_in_a_healthy_hierarchy(tmp_path: Path) -> None:
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
def test_nothing_is_found_in_a_healthy_hierarchy_of_the_draft(name: str) -> None:
    assert list(check(memory(name))) == []


def test_nothing_is_found_in_tiff_files_and_n5_containers(tmp_path: Path) -> None:
    tiff.create_array(tmp_path / "tiff", data=DATA, chunks=(4, 4))
    folder = tiff.open_folder(tmp_path / "tiff")
    n5.create_array(tmp_path / "n5", shape=DATA.shape, dtype=DATA.dtype, chunks=(4, 4))[...] = DATA
    assert list(check(LocalStore(tmp_path / "tiff"))) == []
    assert list(check(folder.store, folder.path)) == []
    assert list(check(n5.open(tmp_path / "n5").store)) == []
    n5.write_documents(tmp_path / "n5")
    assert list(check(LocalStore(tmp_path / "n5"))) == []


def flip(store: Store, key: str, at: int, mask: int = 1) -> None:
    data = bytearray(store.get(key) or b"")
    data[at] ^= mask
    store.set(key, bytes(data))


def cut(store: Store, key: str, size: int) -> None:
    store.set(key, bytes(store.get(key) or b"")[:size])


DAMAGE: dict[str, tuple[str, Any, list[tuple[str, str, str]]]] = {
    "a flipped bit under a checksum": (
        "gzip and crc32c",
        lambda s: flip(s, "c/0/0", -1),
        [("c/0/0", "checksum", "chunk (0, 0): checksum: the checksum is ")],
    ),
    "a flipped bit in a frame": (
        "zstd",
        lambda s: flip(s, "c/0/1", 0),
        [("c/0/1", "data", "chunk (0, 1): zstd frame: cannot be decoded: ")],
    ),
    "a chunk cut short": (
        "raw",
        lambda s: cut(s, "c/0/0", 31),
        [("c/0/0", "size", "chunk (0, 0): elements: has 31 bytes, a chunk of shape (4, 4) has 32")],
    ),
    "a chunk that is too long": (
        "raw",
        lambda s: s.set("c/0/0", bytes(33)),
        [("c/0/0", "size", "chunk (0, 0): too many bytes: has 33 bytes, at most 32 fit here")],
    ),
    "an empty object": (
        "shard",
        lambda s: s.set("c/0/0", b""),
        [("c/0/0", "index", "chunk (0, 0): too few bytes: the index has 68 bytes, the shard only 0")],
    ),
    "an index entry that leads nowhere": (
        "shard, transposed",
        lambda s: flip(s, "c/0/0", -68 + 7, 0x40),
        [
            ("c/0/0", "index", "chunk (0, 0): index of 4 chunks: entries: entry (0, 0): index entry 0 ends at "),
            ("c/0/0", "checksum", "chunk (0, 0): index of 4 chunks: checksum: the checksum is "),
        ],
    ),
    "an inner chunk": (
        "shard in a shard",
        lambda s: flip(s, "c/0/0", 2 * 2 * 16 + 4),
        [
            ("c/0/0", "data", "chunk (0, 0): inner chunk (0, 0): inner chunk (0, 0): gzip frame: cannot be decoded: "),
            ("c/0/0", "checksum", "chunk (0, 0): inner chunk (0, 0): checksum: the checksum is "),
        ],
    ),
    "a part that is missing": (
        "shard in parts",
        lambda s: s.erase("c/0/0.shard"),
        [
            (
                "c/0/0.shard.head",
                "part",
                "part 1 of 3 of c/0/0.shard: the part 'c/0/0.shard' is missing, others are there",
            )
        ],
    ),
    "an orphan part": (
        "parts",
        lambda s: s.set("c/1/1.crc", bytes(4)),
        [("c/1/1.crc", "part", "part 2 of 2 of c/1/1: the part 'c/1/1' is missing, others are there")],
    ),
    "a part of another size": (
        "parts",
        lambda s: s.set("c/0/0.crc", bytes(5)),
        [("c/0/0.crc", "part", "part 2 of 2 of c/0/0: has 5 bytes, not 4")],
    ),
    "a draft shard": (
        "draft shards",
        lambda s: cut(s, "c/0/0", 50),
        [("c/0/0", "index", "shard (0, 0): too few bytes: the index has 96 bytes, the shard only 50")],
    ),
    "a chunk outside of the grid": (
        "zstd",
        lambda s: s.set("c/3/0", s.get("c/0/0")),
        [("c/3/0", "outside", "chunk (3, 0) is outside of the grid, which has (3, 3) chunks")],
    ),
    "a file that nobody knows": (
        "zstd",
        lambda s: s.set("notes.txt", b"hello"),
        [("notes.txt", "unknown", "'notes.txt' is not the key of a chunk of this array")],
    ),
    "what another writer has left": (
        "zstd",
        lambda s: s.set("c/0/0.__lock", b""),
        [
            (
                "c/0/0.__lock",
                "unknown",
                "'c/0/0.__lock' is not the key of a chunk of this array; it looks like the lock file of a writer",
            )
        ],
    ),
    "a node in an array": (
        "zstd",
        lambda s: s.set("inner/zarr.json", b"{}"),
        [("inner/zarr.json", "unknown", "'inner/zarr.json' is not the key of a chunk of this array")],
    ),
    "a header of N5": (
        "n5",
        lambda s: flip(s, "c/0/0", 1),
        [("c/0/0", "data", "chunk (0, 0): block: is a block of mode 1 (varlength); only mode 0 (default) is read")],
    ),
    "metadata": (
        "raw",
        lambda s: s.set("zarr.json", bytes(s.get("zarr.json")).replace(b'"uint16"', b'"uint17"')),
        [("zarr.json", "unsupported", "/data_type: ")],
    ),
    "a document that is no JSON": (
        "raw",
        lambda s: s.set("zarr.json", b"{"),
        [("zarr.json", "metadata", "/: ")],
    ),
}


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


def test_what_a_lenient_reader_repairs_is_told_and_the_chunks_are_checked_all_the_same() -> None:
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
        [("a/stuff/", "unknown", "is no node, and holds 1 objects")],
    ),
    "a group without a document": (
        lambda s: s.erase("a/zarr.json"),
        [
            ("zarr.json", "consolidated", "has a copy of a/zarr.json, which is not there"),
            ("a/", "document", "has no zarr.json, so that nobody finds a/b/zarr.json"),
        ],
    ),
    "damage below a group without a document": (
        lambda s: [s.erase("a/zarr.json"), s.set("a/b/c/0/0", b"?")],
        [
            ("zarr.json", "consolidated", "has a copy of a/zarr.json, which is not there"),
            ("a/", "document", "has no zarr.json, so that nobody finds a/b/zarr.json"),
            ("a/b/c/0/0", "size", "chunk (0, 0): elements: has 1 bytes, a chunk of shape (12, 10) has 240"),
        ],
    ),
    "a name that is reserved": (
        lambda s: s.set("__x/zarr.json", b"{}"),
        [("__x/", "unknown", "cannot be a node: names that start with '__' are reserved")],
    ),
    "a copy that is stale": (
        lambda s: s.set("a/zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {"new": 1}}'),
        [("zarr.json", "consolidated", "has a copy of a/zarr.json that differs from it")],
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


def test_a_part_of_a_hierarchy_is_checked_alone() -> None:
    store = MemoryStore()
    root = zarrlite.create_group(store)
    root.create_array("a/b", data=DATA)
    root.create_array("c", data=DATA, codecs=[Bytes(), Crc32c()])
    flip(store, "c/c/0/0", 0)
    assert found(store, "a") == []
    assert found(store, "c") == found(store) == [("c/c/0/0", "checksum")]
    with pytest.raises(NodeNotFoundError):
        list(check(store, "nowhere"))


def test_of_one_object_only_so_many_problems_are_told() -> None:
    array = zarrlite.create_array(
        {}, data=np.arange(1, 101, dtype="u1"), chunks=(100,), codecs=[ShardingIndexed((1,), [Bytes(), Crc32c()])]
    )
    for i in range(100):
        flip(array.store, "c/0", 5 * i)
    problems = list(check(array.store))
    assert len(problems) == MOST + 1
    assert problems[-1].message == f"has {100 - MOST} more problems"


class Watched(MemoryStore):
    """A store that notes the most bytes that were read at once."""

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


def test_what_cannot_be_read_is_a_problem_and_the_rest_is_checked() -> None:
    store = Failing()
    zarrlite.create_array(store, data=DATA, chunks=(4, 4), codecs=[Bytes(), Crc32c()])
    flip(store, "c/0/2", 0)
    assert found(store) == [("c/0/1", "unreadable"), ("c/0/1", "unreadable"), ("c/0/2", "checksum")]


class Shrinking(MemoryStore):
    """A store whose values are cut while somebody looks: sizes are those of before."""

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        value = bytes(super().get(key) or b"")
        return byte_range.of(value[: len(value) // 2])


@pytest.mark.parametrize("kind", ARRAYS)
def test_what_is_cut_while_it_is_looked_at_is_a_problem(kind: str) -> None:
    healthy = ARRAYS[kind]()
    store = Shrinking({key: bytes(healthy.store.get(key) or b"") for key in healthy.store.list()})
    array = Array(store, "", healthy.metadata)
    layouts = [Stack(array).layout(key) for key in store.list()]
    assert all(layout is not None and tiles(layout) for layout in layouts)
    assert any(r.fault for layout in layouts if layout for _, r in layout.walk())


@pytest.mark.parametrize("kind", ARRAYS)
def test_random_damage_is_found_wherever_reading_fails_and_never_crashes(kind: str) -> None:
    """What cannot be read is a problem; what is no problem can be read."""
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


# leftovers and repair


def leave(root: Path, name: str, *, pid: int, age: float) -> Path:
    path = root / name / f"{TEMPORARY}{pid}.0.0123456789abcdef"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half a chunk")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_leftovers_of_writers_that_are_gone_are_found_and_removed(tmp_path: Path, gone: int) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    store = LocalStore(tmp_path)
    old = leave(tmp_path, "c/0", pid=gone, age=4000)
    lonely = leave(tmp_path, "c/7/8", pid=gone, age=4000)
    young = leave(tmp_path, "c/0/1", pid=gone, age=10)
    mine = leave(tmp_path, "c", pid=os.getpid(), age=4000)
    busy = leave(tmp_path, "", pid=os.getpid(), age=10)
    problems = list(check(store))
    messages = {problem.key.partition(TEMPORARY)[0]: problem.message for problem in problems}
    assert messages == {
        "c/": "temporary file of 12 bytes, 67 minutes old; its writer may be at work",
        "c/0/": "temporary file of 12 bytes, 67 minutes old; its writer is gone",
        "c/0/1/": "temporary file of 12 bytes, 0 minutes old; its writer is gone",
        "c/7/8/": "temporary file of 12 bytes, 67 minutes old; its writer is gone",
    }
    assert {problem.kind for problem in problems} == {"leftover"}
    assert {p.key.partition(TEMPORARY)[0] for p in repair(store, problems)} == {"c/0/", "c/7/8/"}
    assert [path.exists() for path in (old, lonely, young, mine, busy)] == [False, False, True, True, True]
    assert not (tmp_path / "c/7").exists()
    assert np.array_equal(zarrlite.open_array(tmp_path, mode="r"), DATA)


def test_leftovers_are_found_wherever_the_files_lie(tmp_path: Path, gone: int) -> None:
    zarrlite.create_array(tmp_path, name="a/b", data=DATA)
    disk("sharded", tmp_path / "draft")
    for folder in ("a/b/c", "draft/data/root"):
        leave(tmp_path, folder, pid=gone, age=4000)
    store = zarrlite.stores.PrefixStore(zarrlite.stores.ReadOnlyStore(LocalStore(tmp_path)), "a/")
    for place, path, key in ((store, "b", "b/c/"), (LocalStore(tmp_path / "draft"), "", "data/root/")):
        (problem,) = check(place, path)
        assert (problem.kind, problem.key.partition(TEMPORARY)[0]) == ("leftover", key)


def test_what_writers_write_is_no_leftover(tmp_path: Path) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    leave(tmp_path, "c", pid=os.getpid(), age=0)
    assert list(check(LocalStore(tmp_path))) == []


@pytest.mark.parametrize("transformers", [(), (ConcatParts([Part(""), Part(".crc", 4)]),), (Sharding((2, 2)),)])
def test_chunks_outside_of_the_grid_are_removed_and_nothing_else(transformers: Any) -> None:
    codecs = [Bytes(), Zstd(), Crc32c()]
    array = zarrlite.create_array({}, data=DATA, chunks=(4, 4), codecs=codecs, storage_transformers=transformers)
    document = json.loads(bytes(array.store.get("zarr.json")))
    document["shape"] = [8, 5]
    array.store.set("zarr.json", json.dumps(document).encode())
    problems = list(check(array.store))
    assert {problem.kind for problem in problems} == {"outside"}
    assert repair(array.store, problems) == problems
    assert list(check(array.store)) == []
    assert np.array_equal(zarrlite.open_array(array.store, mode="r"), DATA[:8, :5])


def test_a_chunk_that_is_wanted_again_is_not_removed() -> None:
    array = make("raw")
    array.store.set("c/3/0", bytes(32))
    (problem,) = check(array.store)
    array.resize((16, 10))
    assert repair(array.store, [problem]) == []
    assert array.store.size("c/3/0") == 32


def test_copies_of_documents_are_made_anew() -> None:
    store = MemoryStore()
    zarrlite.create_group(store).create_array("a/b", data=DATA)
    zarrlite.consolidate_metadata(store)
    store.set("a/zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {"new": 1}}')
    problems = list(check(store))
    assert repair(store, problems) == problems
    assert list(check(store)) == []


def test_copies_of_groups_above_are_made_anew_as_well() -> None:
    store = MemoryStore()
    zarrlite.create_group(store).create_array("a/b/c", data=DATA)
    for path in ("a/b", "a", ""):
        zarrlite.consolidate_metadata(store, path)
    document = json.loads(bytes(store.get("a/b/c/zarr.json") or b""))
    store.set("a/b/c/zarr.json", json.dumps({**document, "attributes": {"new": 1}}).encode())
    problems = list(check(store))
    assert [problem.key for problem in problems] == ["zarr.json", "a/zarr.json", "a/b/zarr.json"]
    assert repair(store, problems) == problems
    assert list(check(store)) == []
    assert all(b"consolidated_metadata" in bytes(store.get(problem.key) or b"") for problem in problems)


def test_what_cannot_be_repaired_stays_a_problem() -> None:
    codecs, shards = [Bytes(), Crc32c()], [Sharding((2, 2))]
    array = zarrlite.create_array({}, data=DATA, chunks=(4, 4), codecs=codecs, storage_transformers=shards)
    document = json.loads(bytes(array.store.get("zarr.json")))
    array.store.set("zarr.json", json.dumps({**document, "shape": [8, 5]}).encode())
    flip(array.store, "c/1/0", -1)  # the index of the shard
    before = {key: bytes(array.store.get(key) or b"") for key in array.store.list() if key == "c/1/0"}
    problems = list(check(array.store))
    gone = repair(array.store, problems)
    assert {p.key for p in gone} == {"c/0/1", "c/1/1"}
    assert {key: bytes(array.store.get(key) or b"") for key in before} == before


class Sealed(StorageTransformer):
    """A transformer of another package."""

    name = "test.sealed"

    def wrap(self, store: Store, metadata: Any) -> Store:
        return zarrlite.stores.PrefixStore(store, "sealed/")


def test_a_transformer_of_another_package_is_unknown_and_no_problem() -> None:
    register(Sealed)
    array = zarrlite.create_array({}, data=DATA, chunks=(12, 10), storage_transformers=[Sealed()])
    assert list(check(array.store)) == []
    (stored,) = explain(array, "sealed/c/0/0")
    assert (stored.layout.what, stored.layout.owner, stored.layout.fault) == ("object", "PrefixStore", None)


def test_damaged_data_is_never_touched() -> None:
    for kind, damage, _ in DAMAGE.values():
        array = make(kind)
        damage(array.store)
        before = {key: bytes(array.store.get(key) or b"") for key in array.store.list()}
        problems = [problem for problem in check(array.store) if problem.kind != "outside"]
        assert repair(array.store, problems) == []
        assert {key: bytes(array.store.get(key) or b"") for key in array.store.list()} == before


def test_every_kind_of_problem_has_a_remedy() -> None:
    assert all(Problem("key", kind, "message").remedy for kind in REMEDIES)

"""Writing shards: orders of inner chunks, headers, updates in place and by appending."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL
from zarrlite.chunks.chunks import Chunks
from zarrlite.codecs import Bytes, BytesBytesCodec, Crc32c, Gzip, Offset, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.errors import ArgumentError, StoreError
from zarrlite.pipeline.codec import ChunkOptions
from zarrlite.shards.writing import ORDERS, STRATEGIES, _shared
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores import files
from zarrlite.stores.base import InPlace, overwrite

LITTLE = Bytes()
INDEX = 16 * 16  # bytes of the index of 4 x 4 inner chunks, without a checksum
SHAPE, SHARD, CHUNK = (10, 13), (8, 8), (2, 2)


class RecordingStore(zarrlite.MemoryStore):
    """Records writes (of whole values and of patches), and can fail at the Nth one."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Any] = []
        self.left = 10**9

    def _record(self, *write: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError("no more")
        self.writes.append(write)

    def set(self, key: str, value: Any) -> None:
        self._record("set", key, len(value))
        super().set(key, value)

    def _store(self, key: str, new: Any, old: Any = None) -> None:
        if not isinstance(new, InPlace):
            super()._store(key, new, old)
            return
        for start, value in new.patches:
            self._record("patch", key, start, len(value))
            super().set(key, overwrite(super().get(key), [(start, value)]))


def indexed(**kwargs: Any) -> ShardingIndexed:
    inner = kwargs.pop("codecs", [LITTLE])
    return ShardingIndexed(CHUNK, inner, kwargs.pop("index_codecs", [LITTLE]), **kwargs)


PARTS = ConcatParts([Part(".head", 5), Part(""), Part(".index", INDEX)])
KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "codec": lambda **o: {"chunks": SHARD, "codecs": [indexed(**o)]},
    "index at start": lambda **o: {"chunks": SHARD, "codecs": [indexed(index_location="start", **o)]},
    "compressed": lambda **o: {"chunks": SHARD, "codecs": [indexed(codecs=[LITTLE, Zstd()], **o)]},
    "checked": lambda **o: {"chunks": SHARD, "codecs": [indexed(index_codecs=[LITTLE, Crc32c()], **o)]},
    "transposed": lambda **o: {"chunks": SHARD, "codecs": [Transpose((1, 0)), indexed(**o)]},
    "behind padding": lambda **o: {
        "chunks": SHARD,
        "codecs": [indexed(**o), Pad("start", 7, b"PADDING"), Offset(3), Pad("end", 9, b"OTHER END")],
    },
    "checksum over all": lambda **o: {"chunks": SHARD, "codecs": [indexed(**o), Crc32c()]},
    "in parts": lambda **o: {"chunks": SHARD, "codecs": [indexed(**o)], "storage_transformers": [PARTS]},
    "in many parts": lambda **o: {
        "chunks": SHARD,
        "codecs": [indexed(codecs=[LITTLE, Zstd()], **o)],
        "storage_transformers": [ConcatParts([Part(".a", 2), Part(""), Part(".b", 3), Part(".c", INDEX + 2)])],
    },
    "draft": lambda **o: {"chunks": CHUNK, "codecs": [LITTLE], "storage_transformers": [Sharding((4, 4), **o)]},
    "draft, compressed": lambda **o: {
        "chunks": CHUNK,
        "codecs": [LITTLE, Zstd()],
        "storage_transformers": [Sharding((4, 4), **o)],
    },
    "draft in parts": lambda **o: {
        "chunks": CHUNK,
        "codecs": [LITTLE, Zstd()],
        "storage_transformers": [Sharding((4, 4), **o), PARTS],
    },
    "draft over draft": lambda **o: {
        "chunks": CHUNK,
        "codecs": [LITTLE],
        "storage_transformers": [Sharding((2, 2), **o), Sharding((2, 2), **o)],
    },
}


def some_slice(random: np.random.Generator, n: int) -> slice:
    start, stop = sorted(random.integers(0, n + 1, 2).tolist())
    return slice(start, stop, random.integers(1, 4).item())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_arrays_keep_their_data_with_every_strategy_order_and_header(kind: str, strategy: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    header = 11 * (seed % 2) if kind != "index at start" else 0
    store = RecordingStore()
    model = np.zeros(SHAPE, "u2")
    options = {"strategy": strategy, "order": ORDERS[seed % 3], "header": header}
    array = zarrlite.create_array(store, shape=SHAPE, dtype="u2", **KINDS[kind](**options))
    for step in range(12):
        rows, columns = (some_slice(random, n) for n in SHAPE)
        part = model[rows, columns]
        part[...] = 0 if step % 4 == 3 else step if step % 2 else random.integers(0, 2**16, part.shape)
        array[rows, columns] = part
        np.testing.assert_array_equal(zarrlite.open_array(store, mode="r")[...], model)
        np.testing.assert_array_equal(array[rows, columns], part)
    array[...] = 0
    assert [key for key in store.list() if key != "zarr.json"] == []


def numbered(kind: str, store: Any, **options: Any) -> tuple[zarrlite.Array, Any]:
    """Create an array of one shard with the elements 0, 1, 2 ..., with these runtime options for sharding."""
    model = np.arange(64, dtype="u2").reshape(8, 8)
    array = zarrlite.create_array(store, data=model, **KINDS[kind](**options))
    if isinstance(store, RecordingStore):
        store.writes.clear()
    return array, model


def offsets(value: Any) -> list[int]:
    return np.frombuffer(bytes(value)[-INDEX:], "<u8")[::2].tolist()


SEQUENCES = {
    "row-major": range(16),
    "column-major": [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
    "morton": [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["codec", "draft"])
def test_chunks_are_stored_in_the_chosen_order(kind: str, order: str) -> None:
    store = RecordingStore()
    numbered(kind, store, order=order)
    places = offsets(store.get("c/0/0"))
    assert [places[number] for number in SEQUENCES[order]] == [8 * i for i in range(16)]


@pytest.mark.parametrize(
    ("grid", "sequence"),
    [
        ((3, 2), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]),
        ((1, 4), [(0, 0), (0, 1), (0, 2), (0, 3)]),
        ((5,), [(i,) for i in range(5)]),
        ((), [()]),
        ((2, 1, 2), [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]),
    ],
)
def test_shards_with_uneven_grids_are_written_in_morton_order(grid: Any, sequence: Any) -> None:
    store = RecordingStore()
    shape = tuple(2 * n for n in grid)
    zarrlite.create_array(
        store, data=np.ones(shape, "u1"), chunks=(2,) * len(grid), codecs=[LITTLE],
        storage_transformers=[Sharding(grid, order="morton")],
    )  # fmt: skip
    key = "/".join(["c", *"0" * len(grid)])
    index = np.frombuffer(bytes(store.get(key) or b"")[-16 * len(sequence) :], "<u8").reshape(*grid, 2)
    assert [int(index[(*coords, 0)]) // 2 ** len(grid) for coords in sequence] == list(range(len(sequence)))


@pytest.mark.parametrize("kind", ["codec", "draft"])
def test_changing_a_shard_in_place_writes_only_the_bytes_of_the_chunk(kind: str) -> None:
    store = RecordingStore()
    array, model = numbered(kind, store, strategy="in-place")
    array[2:4, 4:6] = 7
    assert store.writes == [("patch", "c/0/0", 6 * 8, 8)]
    array[7, 7] = model[7, 7] = 9
    assert store.writes[1:] == [("patch", "c/0/0", 15 * 8, 8)]
    model[2:4, 4:6] = 7
    np.testing.assert_array_equal(array[...], model)


def test_changing_a_padded_shard_in_place_rewrites_the_padding() -> None:
    store = RecordingStore()
    array, _ = numbered("behind padding", store, strategy="in-place")
    size = store.size("c/0/0") or 0
    array[2:4, 4:6] = 7
    assert store.writes == [
        ("patch", "c/0/0", size - 9, 9),
        ("patch", "c/0/0", 0, 3),
        ("patch", "c/0/0", 3, 7),
        ("patch", "c/0/0", 10 + 6 * 8, 8),
    ]


def test_changing_a_shard_in_place_does_not_write_kept_padding() -> None:
    chain = [indexed(strategy="in-place"), Pad("start", 4, b"ours", keep_padding=True)]
    store = RecordingStore()
    array = zarrlite.create_array(store, data=np.ones((8, 8), "u1"), chunks=SHARD, codecs=chain)
    store.set("c/0/0", b"mine" + bytes(store.get("c/0/0") or b"")[4:])
    store.writes.clear()
    array[0, 0] = 7
    assert store.writes == [("patch", "c/0/0", 4, 4)]
    chain = [indexed(strategy="append"), Pad("end", 4, b"ours", keep_padding=True)]
    array = zarrlite.create_array(store, data=np.ones((8, 8), "u1"), chunks=SHARD, codecs=chain, overwrite=True)
    store.set("c/0/0", bytes(store.get("c/0/0") or b"")[:-4] + b"mine")
    array[0, 0] = 7
    assert bytes(store.get("c/0/0") or b"").endswith(b"mine")
    assert array[0, 0] == 7


def test_a_shard_with_computed_padding_is_rewritten() -> None:
    chain = [indexed(strategy="in-place"), Pad("start", 1, padding_func=lambda data: bytes([sum(data) % 256]))]
    store = RecordingStore()
    array = zarrlite.create_array(store, data=np.ones((8, 8), "u1"), chunks=SHARD, codecs=chain)
    store.writes.clear()
    array[0, 0] = 7
    assert store.writes == [("set", "c/0/0", 1 + 64 + INDEX)]


def test_a_chunk_that_does_not_fit_in_place_rewrites_the_shard() -> None:
    store = RecordingStore()
    array, _ = numbered("compressed", store, strategy="in-place")
    array[0:2, 0:2] = np.random.default_rng(1).integers(0, 2**16, (2, 2))
    array[0, 1] = array[1, 1] = 5
    kinds = [what for what, *_ in store.writes]
    assert "patch" in kinds
    array[0:4, 0:2] = 0
    array[0:2, 0:2] = 1  # an absent chunk has no bytes that could be overwritten
    assert store.writes[-1][0] == "set"
    assert array[1, 1] == 1


def test_storing_a_smaller_chunk_in_place_changes_its_index_entry() -> None:
    store = RecordingStore()
    array, model = numbered("draft", store, strategy="in-place")
    chunks = Chunks(store, "", array.metadata, array.options).store
    chunks.set("c/0/1", b"short")
    assert store.writes == [("patch", "c/0/0", 8, 5), ("patch", "c/0/0", 128, INDEX)]
    assert bytes(chunks.get("c/0/1") or b"") == b"short"
    assert array[0:2, 4:6].tolist() == model[0:2, 4:6].tolist()


def test_chunks_that_share_bytes_are_not_overwritten_in_place() -> None:
    store = RecordingStore()
    array, model = numbered("codec", store, strategy="in-place")
    shard = bytearray(store.get("c/0/0") or b"")
    shard[-INDEX + 16 : -INDEX + 32] = shard[-INDEX : -INDEX + 16]  # the second entry points to the first chunk
    store.set("c/0/0", bytes(shard))
    model[0:2, 2:4] = model[0:2, 0:2]
    array[0:2, 0:2] = model[0:2, 0:2] = 1
    np.testing.assert_array_equal(array[...], model)


@pytest.mark.parametrize("strategy", ["in-place", "append"])
@pytest.mark.parametrize("kind", ["codec", "checked", "index at start", "draft"])
def test_a_cached_index_is_not_used_for_another_shard_of_the_same_size(kind: str, strategy: str) -> None:
    store = RecordingStore()
    array, model = numbered(kind, store, strategy=strategy)
    ordered = bytes(store.get("c/0/0"))
    array[0, 0] = model[0, 0] = 100
    other = zarrlite.create_array(RecordingStore(), data=model, **KINDS[kind](order="morton"))
    store.set("c/0/0", other.store.get("c/0/0"))  # this shard has the same size, but its chunks are in another order
    assert len(store.get("c/0/0")) == len(ordered)
    assert store.get("c/0/0") != ordered
    for place in ((0, 4), (7, 7), (0, 4)):
        array[place] = model[place] = 200 + sum(place)
        np.testing.assert_array_equal(zarrlite.open_array(store, mode="r")[...], model)


def test_append_adds_chunks_and_index_to_the_old_shard_in_one_write() -> None:
    store = RecordingStore()
    array, _ = numbered("codec", store, strategy="append")
    old = bytes(store.get("c/0/0") or b"")
    array[0:3, 0:2] = 7
    assert store.writes == [("patch", "c/0/0", len(old), 8 + 8 + INDEX)]  # a single write
    assert bytes(store.get("c/0/0") or b"").startswith(old)
    assert array[0:4, 0].tolist() == [7, 7, 7, 24]


def test_append_overwrites_an_index_at_the_start_last() -> None:
    store = RecordingStore()
    array, _ = numbered("index at start", store, strategy="append")
    array[0:2, 0:2] = 7
    assert store.writes == [("patch", "c/0/0", INDEX + 128, 8), ("patch", "c/0/0", 0, INDEX)]


@pytest.mark.parametrize("kind", ["in parts", "draft in parts"])
def test_append_replaces_an_index_in_its_own_part_after_the_data(kind: str) -> None:
    store = RecordingStore()
    array, _ = numbered(kind, store, strategy="append")
    end = store.size("c/0/0") or 0
    array[0, 0] = 7
    (what, key, start, length), last = store.writes
    assert (what, key, start) == ("patch", "c/0/0", end)
    assert last == ("set", "c/0/0.index", INDEX)
    assert store.size("c/0/0") == end + length


@pytest.mark.parametrize("kind", ["in parts", "draft in parts"])
@pytest.mark.parametrize("left", [0, 1])
def test_an_interrupted_append_to_parts_changes_nothing(kind: str, left: int) -> None:
    store = RecordingStore()
    array, model = numbered(kind, store, strategy="append")
    store.left = left
    with pytest.raises(OSError, match="no more"):
        array[0, 0] = 7
    np.testing.assert_array_equal(zarrlite.open_array(store, mode="r")[...], model)
    store.left = 9
    array[0, 0] = 8
    assert zarrlite.open_array(store, mode="r")[0, 0] == 8


@pytest.mark.parametrize("kind", ["in parts", "draft in parts", "in many parts"])
@pytest.mark.parametrize("index", [np.s_[0:4, 0:4], np.s_[...]], ids=["part", "all"])
def test_an_interrupted_rewrite_of_parts_leaves_the_old_shard_or_the_new_one(kind: str, index: Any) -> None:
    outcomes = []
    for left in range(7):
        store = RecordingStore()
        array, model = numbered(kind, store)
        new = model.copy()
        new[index] = 7
        store.left = left
        with contextlib.suppress(OSError):
            array[index] = 7
        found = zarrlite.open_array(store, mode="r")[...]
        outcomes.append((np.array_equal(found, model), np.array_equal(found, new)))
    assert [outcome for outcome, _ in itertools.groupby(outcomes)] == [(True, False), (False, True)]


@pytest.mark.parametrize("room", range(6))
def test_a_rewrite_of_parts_on_a_full_disk_leaves_the_old_shard_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    array, model = numbered("in parts", tmp_path)
    write, left = files.write, room

    def filling(path: str, value: Any, *, fsync: bool) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        write(path, value, fsync=fsync)

    monkeypatch.setattr(files, "write", filling)
    with contextlib.suppress(StoreError):
        array[...] = 7
    # five files are written before any part is renamed: the journal, the three parts, and an empty part
    expected = np.full_like(model, 7) if room == 5 else model
    np.testing.assert_array_equal(zarrlite.open_array(tmp_path, mode="r")[...], expected)
    assert (left < 0) == any("__zarrlite.journal" in file.name for file in tmp_path.rglob("*")) or not room


@pytest.mark.parametrize("kind", ["codec", "draft", "compressed"])
def test_appending_rewrites_a_shard_that_is_more_than_half_unused(kind: str) -> None:
    store = RecordingStore()
    array, model = numbered(kind, store, strategy="append")
    new = sum(store.size(key) or 0 for key in store.list_prefix("c/"))
    for i in range(300):
        array[i % 8, i % 7] = model[i % 8, i % 7] = i
        assert sum(store.size(key) or 0 for key in store.list_prefix("c/")) <= 2 * new + 64
    np.testing.assert_array_equal(array[...], model)


@pytest.mark.parametrize("kind", ["in parts", "draft in parts"])
def test_a_shard_with_its_index_in_a_part_is_never_rewritten_by_appending(kind: str) -> None:
    store = RecordingStore()
    array, model = numbered(kind, store, strategy="append")
    for i in range(100):
        array[i % 8, i % 7] = model[i % 8, i % 7] = i
    assert {(what, key) for what, key, *_ in store.writes} == {("patch", "c/0/0"), ("set", "c/0/0.index")}
    np.testing.assert_array_equal(array[...], model)
    array[...] = model  # this writes the whole shard again, without gaps
    if kind == "in parts":
        assert store.size("c/0/0") == 128


def test_append_keeps_the_old_bytes_of_an_index_in_two_parts() -> None:
    parts = ConcatParts([Part(""), Part(".a", INDEX - 9), Part(".b", 9)])
    store = RecordingStore()
    array = zarrlite.create_array(
        store, data=np.ones((8, 8), "u2"), chunks=SHARD, codecs=[indexed(strategy="append")],
        storage_transformers=[parts],
    )  # fmt: skip
    old = array._chunks.store.get("c/0/0")
    array[0, 0] = 7
    assert bytes(array._chunks.store.get("c/0/0")).startswith(bytes(old))


def test_readers_of_a_shard_in_parts_see_it_before_or_after_an_append() -> None:
    class Appending(RecordingStore):
        """A store to which another writer appends each time a part has been read."""

        other: Any = None

        def get(self, key: str, byte_range: Any = ALL) -> Any:
            value = super().get(key, byte_range)
            other, self.other = self.other, None
            if other is not None:
                other[0, 0] = 9
                self.other = other
            return value

    store = Appending()
    array, model = numbered("in parts", store, strategy="append")
    store.other = array
    model[0, 0] = 9
    for _ in range(3):
        assert zarrlite.open_array(store, mode="r")[...].tolist() in (
            model.tolist(),
            [[0, *model[0, 1:]], *model[1:].tolist()],
        )


def test_a_failure_to_write_the_index_part_restores_the_data_part() -> None:
    store = RecordingStore()
    array = zarrlite.create_array(
        store, data=np.random.default_rng(1).integers(0, 2**16, (8, 8), "u2"), chunks=SHARD,
        codecs=[indexed(codecs=[LITTLE, Gzip()], strategy="in-place")], storage_transformers=[PARTS],
    )  # fmt: skip
    old = array[...]
    fail = store.set

    def refuse(key: str, value: Any) -> None:
        if key.endswith(".index"):
            raise OSError("no more")
        fail(key, value)

    store.set = refuse  # type: ignore[method-assign]
    with pytest.raises(OSError, match="no more"):
        array[0:2, 0:2] = 1
    np.testing.assert_array_equal(zarrlite.open_array(store, mode="r")[...], old)


@pytest.mark.parametrize("strategy", ["in-place", "append"])
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_other_names_of_a_linked_file_keep_the_old_shard(tmp_path: Path, strategy: str, link: Any) -> None:
    array, model = numbered("codec", tmp_path, strategy=strategy)
    (tmp_path / "c/0/0").rename(tmp_path / "elsewhere")
    link(tmp_path / "elsewhere", tmp_path / "c/0/0")
    before = (tmp_path / "elsewhere").read_bytes()
    array[0, 0] = model[0, 0] = 9
    assert (tmp_path / "elsewhere").read_bytes() == before
    np.testing.assert_array_equal(array[...], model)


def test_a_failed_patch_is_undone_even_if_undoing_fails_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array, model = numbered("codec", tmp_path, strategy="in-place")
    calls = 0

    def failing(fd: int, value: Any, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls in (2, 3):  # the calls that write the second piece and restore it
            raise OSError(5, "Input/output error")
        return os.pwrite(fd, value, offset)

    monkeypatch.setattr(files, "_pwrite", failing)
    with pytest.raises(StoreError):
        array[0:4, 0:2] = 7
    assert calls == 4
    np.testing.assert_array_equal(array[...], model)


@pytest.mark.parametrize("seed", range(20))
def test_entries_that_share_bytes_are_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = np.stack([random.integers(0, 30, 8), random.integers(0, 6, 8)], axis=1).astype("u8")
    table[random.integers(0, 8)] = 2**64 - 1
    spans = [(int(o), int(o + n)) if o < 2**63 else (0, 0) for o, n in table]
    shared = _shared(table, range(8))
    many = _shared(np.concatenate([table, np.full((8, 2), 2**64 - 1, "u8")]), range(16))
    for i in range(8):
        others = [spans[j] for j in range(8) if j != i and spans[j][0] < spans[j][1]]
        if any(a < spans[i][1] and b > spans[i][0] for a, b in others) and spans[i][0] < spans[i][1]:
            assert i in shared
            assert i in many


def test_the_header_of_a_damaged_shard_is_not_kept() -> None:
    store = zarrlite.MemoryStore()
    array = zarrlite.create_array(
        store, data=np.ones((8, 8), "u2"), chunks=SHARD, codecs=[indexed(index_codecs=[LITTLE, Crc32c()], header=4)]
    )
    store.set("c/0/0", b"x" * (store.size("c/0/0") or 0))
    array[...] = 2
    assert array[0, 0] == 2
    assert bytes(store.get("c/0/0") or b"")[:4] == bytes(4)


@pytest.mark.parametrize("strategy", ["in-place", "append"])
@pytest.mark.parametrize("kind", ["codec", "draft"])
def test_in_place_and_append_write_into_the_same_file(tmp_path: Path, kind: str, strategy: str) -> None:
    array, model = numbered(kind, tmp_path, strategy=strategy)
    file = tmp_path / "c/0/0"
    before = file.stat()
    array[5, 5] = model[5, 5] = 1
    assert file.stat().st_ino == before.st_ino
    assert file.stat().st_size == before.st_size + (0 if strategy == "in-place" else 8 + INDEX)
    np.testing.assert_array_equal(zarrlite.open_array(tmp_path, mode="r")[...], model)


@pytest.mark.parametrize("strategy", ["in-place", "append"])
@pytest.mark.parametrize("written", [0, 3, 11, 200])
def test_a_patch_on_a_full_disk_changes_nothing(
    tmp_path: Path, strategy: str, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    array, model = numbered("codec", zarrlite.LocalStore(tmp_path, fsync=True), strategy=strategy)
    before = (tmp_path / "c/0/0").read_bytes()
    left = written if strategy == "append" else written % 8

    def filling(fd: int, value: Any, offset: int) -> int:
        nonlocal left
        if not left:
            left = 10**6  # from now on, writes succeed, so that the old values can be restored
            raise OSError(28, "No space left on device")
        n = os.pwrite(fd, memoryview(value)[:left], offset)
        left -= n
        return n

    monkeypatch.setattr(files, "_pwrite", filling)
    with pytest.raises(StoreError, match="'c/0/0' cannot be written: No space left on device"):
        array[5, 5] = 1
    assert (tmp_path / "c/0/0").read_bytes() == before
    array[5, 5] = model[5, 5] = 2
    np.testing.assert_array_equal(array[...], model)


def test_zarr_python_reads_appended_shards(tmp_path: Path, zarr: Any) -> None:
    array, model = numbered("checked", tmp_path, strategy="append", order="morton", header=24)
    for i in range(5):
        array[i, i] = model[i, i] = 100 + i
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[...], model)
    assert (tmp_path / "c/0/0").read_bytes()[:24] == bytes(24)


# headers


def shard_with_header(store: Any) -> zarrlite.Array:
    parts = ConcatParts([Part(".header", 64), Part(""), Part(".index", INDEX)])
    return zarrlite.create_array(
        store, data=np.arange(64, dtype="u2").reshape(8, 8), chunks=SHARD, codecs=[indexed(header=64)],
        storage_transformers=[parts],
    )  # fmt: skip


def test_offsets_in_the_index_include_the_header() -> None:
    store = zarrlite.MemoryStore()
    shard_with_header(store)
    assert bytes(store.get("c/0/0.header") or b"") == bytes(64)
    assert min(offsets(store.get("c/0/0.index"))) == 64
    assert bytes(store.get("c/0/0") or b"")[:4] == b"\0\0\1\0"


@pytest.mark.parametrize(
    ("strategy", "index"), list(itertools.product(STRATEGIES, [np.s_[0, 0], np.s_[...], np.s_[0:4, :]]))
)
def test_writing_keeps_the_header(strategy: str, index: Any) -> None:
    store = zarrlite.MemoryStore()
    shard_with_header(store)
    store.set("c/0/0.header", b"H" * 64)
    array = zarrlite.open_array(store, options={"/codecs/0": {"header": 64, "strategy": strategy}})
    array[index] = 7
    assert bytes(store.get("c/0/0.header") or b"") == b"H" * 64
    assert array[0, 0] == 7
    assert array[7, 7] == (63 if index is not ... else 7)


def test_chunks_that_occupy_the_place_of_the_header_are_moved() -> None:
    store = zarrlite.MemoryStore()
    zarrlite.create_array(store, data=np.full((8, 8), 9, "u2"), chunks=SHARD, codecs=[indexed()])
    array = zarrlite.open_array(store, options={"/codecs/0": {"header": 16}})
    array[0, 0] = 1
    value = bytes(store.get("c/0/0") or b"")
    assert value[:16] == bytes(16)
    assert min(offsets(value)) == 16


# options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "fast"}, "strategy must be one of 'rewrite', 'in-place', 'append', not 'fast'"),
        ({"order": "C"}, "order must be one of 'row-major', 'column-major', 'morton', not 'C'"),
        ({"header": -1}, "header must be a number of bytes, not -1"),
        ({"header": True}, "header must be a number of bytes, not True"),
        ({"header": 2**40}, "header must be a number of bytes, not 1099511627776"),
        ({"header": 1.5}, "header must be a number of bytes, not 1.5"),
    ],
)
def test_invalid_options_are_refused(options: Any, message: str) -> None:
    for make in (lambda **o: ShardingIndexed((2,), **o), lambda **o: Sharding((2,), **o)):
        with pytest.raises(ArgumentError) as caught:
            make(**options)
        assert str(caught.value) == message


def test_shards_that_begin_with_their_index_have_no_header() -> None:
    with pytest.raises(ArgumentError, match="header must be 0 for shards that begin with their index"):
        ShardingIndexed((2,), index_location="start", header=4)


def test_writing_options_are_not_stored() -> None:
    array, _ = numbered("draft", {}, strategy="append", order="morton", header=3)
    assert array.metadata.to_json()["storage_transformers"] == [
        {"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [4, 4]}}
    ]
    assert "append" not in str(numbered("codec", {}, strategy="append")[0].metadata.to_json())


# chunks in shards of the draft are read and written shard by shard


def test_a_draft_shard_is_written_once() -> None:
    store = RecordingStore()
    array, model = numbered("draft", store)
    array[...] = model + 1
    assert store.writes == [("set", "c/0/0", 128 + INDEX)]
    array[0:3, 0:5] = 0
    assert len(store.writes) == 2
    assert array.chunks == (2, 2)
    assert array.shards == (8, 8)
    assert array.nchunks == array.nchunks_initialized + 2 == 16


def test_draft_shards_of_shards_are_written_once() -> None:
    store = RecordingStore()
    array, _ = numbered("draft over draft", store)
    array[...] = 7
    assert [what for what, *_ in store.writes] == ["set"]
    assert array.shards == (8, 8)


# encoding


class ReturnsInput(BytesBytesCodec):
    """A codec that returns its input, which is in the caller's memory, without copying it."""

    name = "test.returns-input"

    def encode(self, data: Any) -> Any:
        return data

    def decode(self, data: Any, limit: int) -> Any:
        return data


CHAINS = {
    "zstd": [LITTLE, Zstd(), Crc32c()],
    "checksum": [LITTLE, Crc32c()],
    "input returned": [LITTLE, ReturnsInput(), Crc32c()],
    "gzip": [LITTLE, Gzip(1), Crc32c()],
    "uncompressed": [LITTLE],
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("write_empty", [False, True])
def test_a_shard_has_the_same_bytes_alone_padded_and_in_parts(chain: Any, write_empty: bool, tmp_path: Path) -> None:
    data = np.random.default_rng(5).integers(0, 1000, (256, 256)).astype("u2")
    data[:64, 64:128] = data[128:] = 0  # inner chunks that contain only the fill value
    zarrlite.register(ReturnsInput)
    codec = ShardingIndexed((64, 64), chain)
    options: Any = {"shape": data.shape, "dtype": "u2", "chunks": data.shape, "write_empty_chunks": write_empty}
    stored = []
    for name, codecs in {"alone": [codec], "padded": [codec, Pad("end", 4)], "parts": [codec]}.items():
        parts = [ConcatParts([Part(""), Part(".index", 16 * 16 + 4)])] if name == "parts" else []
        array = zarrlite.create_array(tmp_path / name, codecs=codecs, storage_transformers=parts, **options)
        array[...] = data
        np.testing.assert_array_equal(array[...], data)
        values = [(tmp_path / name / "c/0" / key).read_bytes() for key in sorted(os.listdir(tmp_path / name / "c/0"))]
        stored.append(b"".join(values)[: -4 if name == "padded" else None])
    serializer: Any = array.metadata.pipeline(data.shape, ChunkOptions(write_empty)).serializer
    blocks = [block for rows in np.split(data, 4) for block in np.split(rows, 4, axis=1)]
    chunks = [serializer.inner.encode(np.ascontiguousarray(block)) for block in blocks]
    assert (None in chunks) is not write_empty
    joined = [None if chunk is None else join(chunk) for chunk in chunks]
    assert stored == [join(serializer.writer.join(joined))] * 3


class Failing(ReturnsInput):
    """A codec that fails after encoding `left` values."""

    name = "test.failing"
    left = 10**9

    def encode(self, data: Any) -> Any:
        Failing.left -= 1
        if Failing.left < 0:
            raise ValueError("no more")
        return data


def test_an_encoding_error_leaves_the_old_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(5).integers(1, 1000, (1024, 1024)).astype("u2")
    zarrlite.register(Failing)
    codec = ShardingIndexed((64, 64), [LITTLE, Failing(), Crc32c()])
    array = zarrlite.create_array(tmp_path, data=data, chunks=data.shape, codecs=[codec])
    monkeypatch.setattr(Failing, "left", 200)  # there are 256 inner chunks
    with pytest.raises(ArgumentError, match="chunk c/0/0 cannot be encoded: no more"):
        array[...] = data + 1
    np.testing.assert_array_equal(array[...], data)
    assert sorted(os.listdir(tmp_path / "c/0")) == ["0"]

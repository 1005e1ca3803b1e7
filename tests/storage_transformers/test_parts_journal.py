"""After an interrupted change of a chunk that is split into parts, readers find the old chunk or the new one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.user_store import UserStore
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd
from zarrlite.errors import DataError
from zarrlite.layout import check, repair
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.storage_transformers.parts_journal import Journal, chunk_of, key_of
from zarrlite.stores import LocalStore, MemoryStore, PrefixStore, Store
from zarrlite.stores.base import Change

JOURNAL = "__zarrlite.journal"
OLD = np.arange(1, 17, dtype="u2").reshape(4, 4)
NEW = OLD[::-1] * 7 + 1
INDEX = 4 * 16 + 4  # bytes of the index of a shard of four inner chunks
BIG = 16 * 4  # bytes of an index without a checksum


def sharded(strategy: str, *codecs: Any, **keywords: Any) -> list[Any]:
    return [ShardingIndexed((2, 2), [*(codecs or [Bytes()])], strategy=strategy, **keywords)]


STACKS: dict[str, dict[str, Any]] = {
    "checksum apart": {"codecs": [Bytes(), Crc32c()], "storage_transformers": [ConcatParts([Part(""), Part(".c", 4)])]},
    "compressed": {
        "codecs": [Bytes(), Zstd(), Crc32c()],
        "storage_transformers": [ConcatParts([Part(".h", 3), Part(".main"), Part(".c", 2), Part(".d", 2)])],
    },
    "all sized": {"codecs": [Bytes()], "storage_transformers": [ConcatParts([Part(".a", 20), Part(".b", 12)])]},
    "last part without bytes": {
        "codecs": [Bytes()],
        "storage_transformers": [ConcatParts([Part(".a", 20), Part(""), Part(".z", 0)])],
    },
    "only one part with bytes": {
        "codecs": [Bytes()],
        "storage_transformers": [ConcatParts([Part(".y", 0), Part(""), Part(".z", 0)])],
    },
    "one part": {"codecs": [Bytes()], "storage_transformers": [ConcatParts([Part(".only")])]},
    "parts of parts": {
        "codecs": [Bytes()],
        "storage_transformers": [ConcatParts([Part(""), Part(".a", 8)]), ConcatParts([Part(".x", 4), Part(".y")])],
    },
    "parts in shards": {
        "chunks": (2, 2),
        "codecs": [Bytes()],
        "storage_transformers": [ConcatParts([Part(""), Part(".a", 3)]), Sharding((2, 2))],
    },
}
for strategy in ("rewrite", "in-place", "append"):
    STACKS |= {
        f"shard, {strategy}": {
            "codecs": sharded(strategy),
            "storage_transformers": [ConcatParts([Part(""), Part(".index", INDEX)])],
        },
        f"shard with a header, {strategy}": {
            "codecs": sharded(strategy, Bytes(), Zstd(), header=8),
            "storage_transformers": [ConcatParts([Part(".h", 8), Part(""), Part(".index", INDEX)])],
        },
        f"shard, index at the start, {strategy}": {
            "codecs": sharded(strategy, index_location="start"),
            "storage_transformers": [ConcatParts([Part(".index", INDEX), Part("")])],
        },
        f"shard, no index apart, {strategy}": {
            "codecs": sharded(strategy),
            "storage_transformers": [ConcatParts([Part(".h", 2), Part("")])],
        },
        f"draft shard, {strategy}": {
            "chunks": (2, 2),
            "codecs": [Bytes()],
            "storage_transformers": [Sharding((2, 2), strategy=strategy), ConcatParts([Part(""), Part(".i", BIG)])],
        },
    }


def write_all(array: zarrlite.Array) -> None:
    array[...] = NEW


def write_some(array: zarrlite.Array) -> None:
    array[0, 0] = 99


def write_several(array: zarrlite.Array) -> None:
    array[1:3, 1:3] = 77


def erase(array: zarrlite.Array) -> None:
    array[...] = 0


CHANGES = [write_all, write_some, write_several, erase]


class Interrupted(PrefixStore):
    """A store in which all changes from the Nth on fail. If `after` is true, the Nth one is made before it fails."""

    def __init__(self, store: Store, error: BaseException, *, after: bool) -> None:
        super().__init__(store, "")
        self.error, self.after = error, after
        self.left: int | None = None

    def _step(self, operation: Any, *args: Any) -> None:
        if self.left is None:
            operation(*args)
            return
        self.left -= 1
        if self.left > 0 or (self.after and self.left == 0):
            operation(*args)
        if self.left <= 0:
            raise self.error

    def set(self, key: str, value: Any) -> None:
        self._step(self.store.set, key, value)

    def erase(self, key: str) -> None:
        self._step(self.store.erase, key)

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        for change in changes:
            self._step(self.store.change, [change])


def stores(tmp_path: Path, count: Any) -> dict[str, Store]:
    return {"memory": MemoryStore(), "own": UserStore(), "local": LocalStore(tmp_path / str(next(count)))}


def create(store: Store, stack: str, data: Any = OLD) -> zarrlite.Array:
    keywords = {"chunks": (4, 4), **STACKS[stack]}
    if data is None:
        return zarrlite.create_array(store, shape=(4, 4), dtype="u2", fill_value=0, **keywords)
    return zarrlite.create_array(store, data=data, fill_value=0, **keywords)


def found_in(store: Store) -> Any:
    """Return the elements. If partial reads need more than one part, first check that they return the same elements."""
    array = zarrlite.open_array(store, mode="r")
    whole = array[...]
    if array.shards is not None or isinstance(array.metadata.codecs[-1], Crc32c):
        for i, j in np.ndindex(whole.shape):
            assert array[i, j] == whole[i, j]
        np.testing.assert_array_equal(array[1:3, 1:4], whole[1:3, 1:4])
    return whole


@pytest.mark.parametrize("kind", ["memory", "own", "local"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_new", [False, True], ids=["replaced", "new"])
@pytest.mark.parametrize("stack", STACKS)
def test_an_interrupted_change_leaves_the_old_chunk_or_the_new_one(
    tmp_path: Path, kind: str, change: Any, is_new: bool, stack: str
) -> None:
    error = KeyboardInterrupt() if change is write_all else OSError(5, "the disk is gone")
    count = itertools.count()
    model = MemoryStore()
    change(create(model, stack, None if is_new else OLD))
    new = found_in(model)
    old = np.zeros_like(OLD) if is_new else OLD
    for after in (False, True):
        for left in itertools.count(1):
            below = stores(tmp_path, count)[kind]
            create(below, stack, None if is_new else OLD)
            store = Interrupted(below, error, after=after)
            array = zarrlite.open_array(store, mode="r+", options=options_of(stack))
            store.left = left
            with contextlib.suppress(OSError, KeyboardInterrupt, zarrlite.StoreError):
                change(array)
            was_interrupted = store.left <= 0
            found = found_in(below)
            is_old, is_changed = (np.array_equal(found, value) for value in (old, new))
            in_shards = stack == "parts in shards"  # four chunks, each of which may be old or new
            assert is_old or is_changed or (in_shards and _is_mixed_by_chunks(found, old, new))
            store.left = None
            write_all(zarrlite.open_array(below, mode="r+"))
            np.testing.assert_array_equal(found_in(below), NEW)
            assert not [key for key in below.list() if JOURNAL in key] or was_interrupted
            if not was_interrupted:
                assert is_changed
                break


def options_of(stack: str) -> dict[str, dict[str, Any]]:
    """Return the runtime options of a stack of transformers; zarr.json does not contain them."""
    strategy = stack.rpartition(", ")[2]
    if strategy not in ("rewrite", "in-place", "append"):
        return {}
    if stack.startswith("draft"):
        return {"/storage_transformers/0": {"strategy": strategy}}
    header = 8 if "header" in stack else 0
    return {"/codecs/0": {"strategy": strategy, "header": header}}


def _is_mixed_by_chunks(found: Any, old: Any, new: Any) -> bool:
    boxes = [np.s_[i : i + 2, j : j + 2] for i in (0, 2) for j in (0, 2)]
    return all(np.array_equal(found[box], old[box]) or np.array_equal(found[box], new[box]) for box in boxes)


# The journal itself


EMPTIED, STORED = 3, 4  # number of the change that fails: writing the largest part, or the next change
STATES = pytest.mark.parametrize(("left", "chunk"), [(EMPTIED, OLD), (STORED, NEW)], ids=["old", "new"])


def interrupted(stack: str, left: int = STORED) -> MemoryStore:
    """Return a store in which the replacement of a chunk was interrupted after one part was emptied."""
    below = MemoryStore()
    create(below, stack)
    store = Interrupted(below, OSError(5, "the disk is gone"), after=False)
    array = zarrlite.open_array(store, mode="r+")
    store.left = left
    with contextlib.suppress(OSError):
        write_all(array)
    return below


@STATES
def test_a_read_only_reader_takes_the_chunk_from_the_journal_and_changes_nothing(left: int, chunk: Any) -> None:
    below = interrupted("checksum apart", left)
    before = {key: below.get(key) for key in below.list()}
    assert below.size("c/0/0.c") == 0
    np.testing.assert_array_equal(found_in(below), chunk)
    assert {key: below.get(key) for key in below.list()} == before
    assert f"c/0/{JOURNAL}.0" in before


def test_arrays_and_groups_do_not_list_journals_and_copies_have_them() -> None:
    below = interrupted("checksum apart")
    array = zarrlite.open_array(below, mode="r")
    assert array.nchunks_initialized == 1
    assert [*array._chunks.store.list()] == ["c/0/0", "zarr.json"]
    copy = MemoryStore()
    zarrlite.copy(array, copy)
    assert {key: copy.get(key) for key in copy.list()} == {key: below.get(key) for key in below.list()}
    np.testing.assert_array_equal(found_in(copy), NEW)


@STATES
def test_fsck_reports_an_interrupted_change_and_completes_it(left: int, chunk: Any) -> None:
    below = interrupted("checksum apart", left)
    (problem,) = check(below)
    assert (problem.key, problem.kind) == (f"c/0/{JOURNAL}.0", "journal")
    assert problem.message == "chunk c/0/0 is being changed, or a change was interrupted"
    assert repair(below, [problem]) == [problem]
    assert [*check(below)] == []
    assert [*below.list()] == ["c/0/0", "c/0/0.c", "zarr.json"]
    np.testing.assert_array_equal(found_in(below), chunk)


def test_parts_that_fit_together_are_the_chunk_whatever_a_journal_says() -> None:
    below, other = interrupted("checksum apart"), MemoryStore()
    create(other, "checksum apart", OLD + 5)
    for key in ("c/0/0", "c/0/0.c"):  # meanwhile, another program has written the chunk
        below.set(key, other.get(key) or b"")
    np.testing.assert_array_equal(found_in(below), OLD + 5)
    problems = [*check(below)]
    assert [problem.kind for problem in problems] == ["journal"]
    assert repair(below, problems) == problems
    assert [*below.list()] == ["c/0/0", "c/0/0.c", "zarr.json"]
    np.testing.assert_array_equal(found_in(below), OLD + 5)


def test_a_change_of_parts_that_fit_together_ignores_the_journal_beside_them() -> None:
    below, other = interrupted("shard, append", left=3), MemoryStore()
    assert any(JOURNAL in key for key in below.list())
    create(other, "shard, append", OLD + 5)
    for key in ("c/0/0", "c/0/0.index"):
        below.set(key, other.get(key) or b"")
    zarrlite.open_array(below, mode="r+", options=options_of("shard, in-place"))[0, 0] = 99
    expected = OLD + 5
    expected[0, 0] = 99
    np.testing.assert_array_equal(found_in(below), expected)


@pytest.mark.parametrize("damage", ["cut", "flipped", "another", "gone"])
def test_a_journal_that_does_not_belong_to_the_parts_is_not_used(damage: str) -> None:
    below, key = interrupted("checksum apart"), f"c/0/{JOURNAL}.0"
    journal = bytes(below.get(key) or b"")
    if damage == "gone":
        below.erase(key)
    elif damage == "another":  # a part has a size that this change cannot produce
        below.set("c/0/0", b"123")
    else:
        below.set(key, journal[:-1] if damage == "cut" else journal[:40] + b"\xff" + journal[41:])
    with pytest.raises(DataError, match=r"chunk c/0/0.*the part 'c/0/0.c' has 0 bytes, not 4"):
        found_in(below)


def test_without_a_journal_an_interrupted_change_is_an_error() -> None:
    below = interrupted("checksum apart", left=5)  # only the last step, erasing the journal, fails
    assert f"c/0/{JOURNAL}.0" in below.list()
    store = Interrupted(below, OSError(5, "the disk is gone"), after=False)
    array = zarrlite.open_array(store, mode="r+", options={"/storage_transformers/0": {"journal": False}})
    store.left = 3
    with pytest.raises(OSError, match="the disk is gone"):
        array[...] = OLD
    with pytest.raises(DataError, match="has 0 bytes, not 4"):
        found_in(below)
    assert "journal" not in bytes(below.get("zarr.json") or b"").decode()


def test_keys_of_journals_are_next_to_those_of_their_chunks() -> None:
    for level, chunk, key in (
        (0, "c/0/1", "c/0/__zarrlite.journal.1"),
        (0, "c.0.1", "__zarrlite.journal.c.0.1"),
        (1, "c/0", "c/__zarrlite.journal-1.0"),
    ):
        assert key_of(chunk, level) == key
        assert chunk_of(key, level) == chunk
        assert chunk_of(key, 1 - level) is None
    assert chunk_of("c/0/1", 0) is None


def test_a_journal_reads_as_it_was_written_and_no_other_bytes_do() -> None:
    journal = Journal([4, None], [5, 2], [(0, 3, b"xy"), (1, 0, b"ab")], [(0, 0, b"12")], (2, 7, b"mark"))
    stored = b"".join(journal.encode())
    assert Journal.parse(stored) == journal
    for i in range(len(stored)):
        assert Journal.parse(stored[:i]) is None
        assert Journal.parse(stored[:i] + bytes([stored[i] ^ 1]) + stored[i + 1 :]) is None


@pytest.mark.parametrize("changed", [*itertools.product([False, True], repeat=3)], ids=str)
def test_any_parts_of_a_chunk_can_change_while_the_others_stay_the_same(changed: tuple[bool, ...]) -> None:
    below = MemoryStore()
    array = zarrlite.create_array(
        below,
        data=np.arange(8, dtype="u1"),
        codecs=[Bytes()],
        storage_transformers=[ConcatParts([Part(""), Part(".c", 2), Part(".d", 2)])],
    )
    new = np.repeat(changed, [4, 2, 2]) * 50 + np.arange(8)
    array[...] = new
    np.testing.assert_array_equal(array, new)
    assert [*below.list()] == ["c/0", "c/0.c", "c/0.d", "zarr.json"]


class Counted(MemoryStore):
    """A store that counts the bytes that are written."""

    written = 0

    def set(self, key: str, value: Any) -> None:
        self.written += len(value)
        super().set(key, value)


@pytest.mark.parametrize("start", [0, 9, 255, 256, 5_000, 99_999], ids=str)
def test_a_large_part_is_written_once(start: int) -> None:
    store = Counted()
    old = np.arange(100_000, dtype="u1")
    array = zarrlite.create_array(
        store, data=old, codecs=[Bytes()], storage_transformers=[ConcatParts([Part(""), Part(".c", 4)])]
    )
    new = old.copy()
    new[[start % (len(old) - 4), -1]] += 1  # both parts change; the large one at one of several offsets
    store.written = 0
    array[...] = new
    np.testing.assert_array_equal(array, new)
    assert len(old) <= store.written < len(old) + 500


class Logged(MemoryStore):
    """A store that records which keys are set, and which journals are written."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []
        self.journals: list[Journal | None] = []

    def set(self, key: str, value: Any) -> None:
        self.keys.append(key)
        if JOURNAL in key:
            self.journals.append(Journal.parse(bytes(value)))
        super().set(key, value)


def logged(stack: str, change: Any, data: Any = OLD) -> Logged:
    """Change a chunk of a new array, and return its store, which has logged the change."""
    store = Logged()
    array = zarrlite.open_array(create(store, stack, data).store, mode="r+", options=options_of(stack))
    store.keys.clear()
    store.journals.clear()
    change(array)
    return store


def test_bytes_appended_before_an_index_of_its_own_need_no_journal() -> None:
    store = logged("shard, append", write_some)
    assert store.keys == ["c/0/0", "c/0/0.index"]
    np.testing.assert_array_equal(zarrlite.open_array(store, mode="r")[0], [99, *OLD[0, 1:]])


def test_the_journal_of_a_change_in_place_has_the_bytes_that_change() -> None:
    store = logged("shard with a header, in-place", lambda array: array.set_basic_selection(0, OLD[0, ::-1]))
    (journal,) = store.journals
    assert journal is not None
    number, start, data = journal.patches[0]
    assert (number, start) == (1, 0)
    assert 0 < len(bytes(data)) < (store.size("c/0/0") or 0) / 2 + 1


def test_the_journal_of_a_new_chunk_has_only_that_it_was_absent() -> None:
    (journal,) = logged("checksum apart", write_all, None).journals
    assert journal is not None
    assert (journal.before, journal.patches) == ([None, None], [])


def test_versions_of_parts_that_end_with_a_checksum_are_distinguished() -> None:
    # If a part ends with the checksum of its data, the checksum of the whole part is a constant, which cannot
    # distinguish two versions of the part. The journal therefore contains some of the part's bytes.
    old, new = (value.astype("u8") for value in (OLD, NEW))
    old[:2, :2] = new[2:, 2:] = 0  # the index changes, but not the size of the other part
    below = MemoryStore()
    zarrlite.create_array(
        below,
        data=old,
        fill_value=0,
        chunks=(4, 4),
        codecs=[ShardingIndexed((2, 2), [Bytes(), Crc32c()])],
        storage_transformers=[ConcatParts([Part(""), Part(".index", INDEX)])],
    )
    store = Interrupted(below, OSError(5, "the disk is gone"), after=False)
    array = zarrlite.open_array(store, mode="r+")
    size = below.size("c/0/0")
    for left, chunk in ((EMPTIED, old), (STORED, new)):
        store.left = None
        array[...] = old
        store.left = left
        with contextlib.suppress(OSError):
            array[...] = new
        assert below.size("c/0/0") == size
        assert below.size("c/0/0.index") == 0
        np.testing.assert_array_equal(found_in(below), chunk)

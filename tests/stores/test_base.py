"""The Store ABC: what a store that only reads has, and the helpers. The slow defaults are in test_against_dict.py."""

from __future__ import annotations

import pytest

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.errors import KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores import Store, check_key, check_prefix, overwrite
from zarrlite.stores.base import flat
from zarrlite.tools.testing.stores import HOSTILE_KEYS, HOSTILE_PREFIXES


class OneValue(Store):
    """A store of which only `get` is written."""

    def __repr__(self) -> str:
        return "OneValue()"

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return byte_range.of(b"0123") if key == "k" else None


def test_a_store_with_get_alone_reads() -> None:
    store = OneValue()
    assert store.get_partial_values([("k", ByteRange(1, 3)), ("none", ALL)]) == [b"12", None]
    assert (store.size("k"), store.size("none")) == (4, None)
    with store.lock("k"):
        pass


def test_a_store_with_get_alone_says_what_it_cannot() -> None:
    store = OneValue()
    for write in (
        lambda: store.set("k", b""),
        lambda: store.erase("k"),
        lambda: store.update("k", lambda old: old),
        lambda: store.update("k", lambda old: None),
        lambda: store.set_partial_values([("k", 0, b"")]),
    ):
        with pytest.raises(ReadOnlyError, match=r"^OneValue\(\) cannot be written$"):
            write()
    for listing in (
        store.list,
        lambda: store.list_prefix("a/"),
        lambda: store.list_dir(""),
        lambda: store.erase_prefix(""),
    ):
        with pytest.raises(StoreError, match=r"^OneValue\(\) cannot be listed$"):
            listing()


@pytest.mark.parametrize("key", ["a", "a/b", "...", ".a", "a.", "a/...", "..a/b", "é", "a b", "a:b", "\n"])
def test_keys(key: str) -> None:
    assert check_key(key) == key
    assert check_prefix(f"{key}/") == f"{key}/"


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_keys_that_are_refused(key: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        check_key(key)
    assert str(caught.value) == (
        f"{key!r} is not a key: segments between single '/', none empty, '.' or '..', no NUL, no '\\'"
    )


@pytest.mark.parametrize("prefix", HOSTILE_PREFIXES)
def test_prefixes_that_are_refused(prefix: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        check_prefix(prefix)
    assert str(caught.value) == f"{prefix!r} is not a prefix: empty, or a key followed by '/'"


@pytest.mark.parametrize(
    ("old", "pieces", "new"),
    [
        (None, [], b""),
        (None, [(2, b"x")], b"\0\0x"),
        (b"", [(0, b"")], b""),
        (b"0123", [(1, b"ab"), (2, b"c")], b"0ac3"),
        (b"0123", [(4, b"4"), (7, b"")], b"01234\0\0"),
        (memoryview(b"0123"), [(2, memoryview(b"abcd").cast("H"))], b"01abcd"),
    ],
)
def test_overwrite(old: Buffer | None, pieces: list[tuple[int, Buffer]], new: bytes) -> None:
    assert overwrite(old, pieces) == new


def test_overwrite_does_not_count_from_the_end() -> None:
    with pytest.raises(StoreError, match=r"^a partial value cannot start at -1$"):
        overwrite(b"0123", [(-1, b"x")])


@pytest.mark.parametrize(
    "buffer",
    [b"0123", bytearray(b"0123"), memoryview(b"0123").cast("H"), memoryview(b"0123").cast("B", (2, 2)),
     memoryview(b"0011223344")[:8:2], memoryview(b"0123").cast("c")],
)  # fmt: skip
def test_flat(buffer: Buffer) -> None:
    view = flat(buffer)
    assert (bytes(view), view.format, view.ndim) == (b"0123", "B", 1)

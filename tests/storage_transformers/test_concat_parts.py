"""The `concat-parts` storage transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformer_stacks import STORES

import zarrlite
from zarrlite import ByteRange
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd
from zarrlite.errors import ArgumentError, DataError, MetadataError, TruncatedError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.nodes.creation import array_metadata
from zarrlite.storage_transformers import ConcatParts, Part
from zarrlite.testing import StorageTransformerLaws


class RecordingStore(zarrlite.MemoryStore):
    """Records every request for values and sizes."""

    def __init__(self, values: Any = None) -> None:
        super().__init__(values)
        self.reads: list[Any] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        self.reads.append((key, *byte_range))
        return super().get(key, byte_range)

    def size(self, key: str) -> int | None:
        self.reads.append((key, "size"))
        return super().size(key)


def parse(parts: Any, **more: Any) -> ConcatParts:
    value = {"name": "concat-parts", "configuration": {"parts": parts, **more}}
    return registry.storage_transformers.parse(value, "/storage_transformers/0", Context())


def wrap(store: Any, *parts: Any, shape: Any = (20,), **kwargs: Any) -> Any:
    return ConcatParts(parts).wrap(store, array_metadata(shape, "u1", chunks=(1,) * len(shape), **kwargs).in_store)


# the parts of the value "0123456789", from which the tests below request ranges
HEADER = (Part(".h", 3), Part(""), Part(".i", 2))


@pytest.mark.parametrize(
    ("parts", "stored", "byte_range", "requests"),
    [
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, ALL, [(".h", 0, None), ("", 0, None), (".i", 0, None)]),
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, (0, 3), [(".h", 0, None)]),
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, (1, 2), [(".h", 1, 2)]),
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, (-2, None), [(".i", 0, None)]),
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, (-2, -1), [(".i", 0, 1)]),
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, (4, 6), [("", 1, 3)]),
        (HEADER, {".h": "012", "": "34567", ".i": "89"}, (3, 8), [("", 0, 5)]),
        ((Part(""), Part(".crc", 4)), {"": "012345", ".crc": "6789"}, (-4, None), [(".crc", 0, None)]),
        ((Part(".a", 5), Part(".b", 5)), {".a": "01234", ".b": "56789"}, (2, 7), [(".a", 2, 5), (".b", 0, 2)]),
        ((Part(""),), {"": "0123456789"}, (2, 4), [("", 2, 4)]),
    ],
)
def test_a_range_is_served_from_the_parts_that_hold_it(
    parts: Any, stored: dict[str, str], byte_range: Any, requests: Any
) -> None:
    below = RecordingStore({f"c/1{suffix}": text.encode() for suffix, text in stored.items()})
    store = wrap(below, *parts)
    r = ByteRange(*byte_range)
    assert bytes(store.get("c/1", r)) == b"0123456789"[r.start : r.stop]
    assert sorted(below.reads) == sorted((f"c/1{suffix}", *rest) for suffix, *rest in requests)


@settings(max_examples=300)
@given(
    st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=4), st.data(), st.integers(-16, 16),
    st.none() | st.integers(-16, 16),
)  # fmt: skip
def test_ranges_are_slices_of_the_joined_parts(sizes: list[Any], data: Any, start: int, stop: Any) -> None:
    parts = [Part(f".{i}" if i else "", size) for i, size in enumerate(sizes)]
    values = [bytes(data.draw(st.binary(min_size=s or 0, max_size=5 if s is None else s))) for s in sizes]
    joined = b"".join(values)
    for store_class in STORES:
        below = store_class({f"c/1{part.key_suffix}": value for part, value in zip(parts, values, strict=True)})
        store = wrap(below, *parts)
        r = ByteRange(start, stop)
        assert bytes(store.get("c/1")) == joined
        assert bytes(store.get("c/1", r)) == joined[start:stop]
        assert store.size("c/1") == len(joined)
        assert store.get("c/2", r) is None
        several = store.get_partial_values([("c/1", r), ("c/1", ALL), ("c/2", r), ("c/1", r)])
        assert [v if v is None else bytes(v) for v in several] == [joined[start:stop], joined, None, joined[start:stop]]


@settings(max_examples=200)
@given(st.lists(st.integers(0, 4), max_size=3), st.lists(st.integers(0, 4), max_size=3), st.binary(max_size=30))
def test_values_are_split_when_written_and_joined_when_read(before: list[int], after: list[int], value: bytes) -> None:
    sizes = [*before, None, *after]
    parts = [Part(f".{i}x", size) for i, size in enumerate(sizes)]
    below = zarrlite.MemoryStore()
    store = wrap(below, *parts)
    if len(value) < sum(before) + sum(after):
        with pytest.raises(ArgumentError):
            store.set("c/1", value)
        assert list(below.list()) == []
        return
    store.set("c/1", value)
    assert bytes(store.get("c/1")) == value
    assert b"".join(bytes(below.get(f"c/1{part.key_suffix}") or b"") for part in parts) == value
    assert all(below.size(f"c/1{part.key_suffix}") == part.size for part in parts if part.size is not None)
    assert list(store.list()) == ["c/1"]
    store.erase("c/1")
    assert list(below.list()) == []


@pytest.mark.parametrize(
    ("parts", "value", "message"),
    [
        ((Part(".a"), Part(".b")), b"1", "cannot be written: only one part may omit size, but '.a' and '.b' do"),
        ((Part(".a", 2), Part(".b", 3)), b"1234", "a value must have 5 bytes, the total size of its parts, not 4"),
        ((Part(".a", 2), Part(".b", 3)), b"123456", "a value must have 5 bytes, the total size of its parts, not 6"),
        ((Part(""), Part(".b", 3)), b"12", "a value must have at least 3 bytes, the total size of its parts, not 2"),
    ],
)
def test_a_value_that_does_not_fit_the_parts_is_refused_and_changes_nothing(
    parts: Any, value: bytes, message: str
) -> None:
    below = zarrlite.MemoryStore({f"c/1{part.key_suffix}": bytes(part.size or 7) for part in parts})
    before = {key: below.get(key) for key in below.list()}
    store = wrap(below, *parts)
    with pytest.raises(ArgumentError) as caught:
        store.set("c/1", value)
    assert str(caught.value) == message
    assert {key: below.get(key) for key in below.list()} == before


@pytest.mark.parametrize("gone", [".h", "", ".i"])
@pytest.mark.parametrize("byte_range", [ALL, (0, 3), (-2, None), (4, 6), (1, -1), (0, 100)])
def test_reading_a_missing_part_of_a_chunk_is_an_error(gone: str, byte_range: Any) -> None:
    whole = {"c/1.h": b"012", "c/1": b"34567", "c/1.i": b"89"}
    below = zarrlite.MemoryStore({key: value for key, value in whole.items() if key != f"c/1{gone}"})
    store = wrap(below, *HEADER)
    r = ByteRange(*byte_range)
    if byte_range in {".h": [(-2, None), (4, 6)], "": [(0, 3), (-2, None)], ".i": [(0, 3), (4, 6)]}[gone]:
        assert bytes(store.get("c/1", r)) == b"0123456789"[r.start : r.stop]
        return
    with pytest.raises(DataError) as caught:
        store.get("c/1", r)
    assert str(caught.value) == f"the part 'c/1{gone}' is missing, but other parts exist"
    with pytest.raises(DataError):
        store.size("c/1")


@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize("byte_range", [ALL, (-2, None), (1, -1)])
def test_a_part_of_the_wrong_size_is_an_error(length: int, byte_range: Any) -> None:
    below = zarrlite.MemoryStore({"c/1.h": b"012", "c/1": b"34567", "c/1.i": bytes(length)})
    with pytest.raises(TruncatedError) as caught:
        wrap(below, *HEADER).get("c/1", ByteRange(*byte_range))
    assert str(caught.value) == f"the part 'c/1.i' has {length} bytes, not 2"


def test_listings_have_chunks_and_other_keys_but_no_parts() -> None:
    below = zarrlite.MemoryStore()
    parts = (Part(".h", 1), Part("_d/main"), Part(".i", 1))
    store = wrap(below, *parts)
    for key in ("c/1", "c/10", "notes", "c/x.h", "c/3.j"):
        store.set(key, b"abc")
    below.set("c/7", b"not a part, since no part has this key")
    stored = ["c/1.h", "c/1.i", "c/10.h", "c/10.i", "c/10_d/main", "c/1_d/main", "c/3.j", "c/7", "c/x.h", "notes"]
    assert sorted(below.list()) == stored
    assert sorted(store.list()) == ["c/1", "c/10", "c/3.j", "c/x.h", "notes"]
    assert store.list_dir("c/") == (["c/1", "c/10", "c/3.j", "c/x.h"], [])
    assert list(store.list_prefix("c/1_d/")) == []
    store.erase_prefix("c/")
    assert sorted(below.list()) == ["c/7", "notes"]


@given(
    st.lists(st.text("c.0a_/-", max_size=3), min_size=1, max_size=4, unique=True),
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 120)), min_size=1, max_size=4, unique=True),
    st.sampled_from(["default", {"name": "default", "configuration": {"separator": "."}}, "v2",
                     {"name": "suffix", "configuration": {"suffix": "1.a"}}]),
)  # fmt: skip
def test_parts_of_different_chunks_have_different_keys(suffixes: list[str], chunks: list[Any], encoding: Any) -> None:
    try:
        transformer = parse([{"key_suffix": suffix} for suffix in suffixes])
    except MetadataError:
        return
    keys = registry.chunk_key_encodings.coerce(encoding)
    stored_keys = [keys.encode(chunk) + part.key_suffix for chunk in chunks for part in transformer.parts]
    assert len(set(stored_keys)) == len(stored_keys)
    assert "zarr.json" not in stored_keys


@pytest.mark.parametrize(
    ("parts", "pointer", "kind"),
    [
        ([], "", "value"),
        ({}, "", "type"),
        ([1], "/0", "type"),
        ([{}], "/0/key_suffix", "missing"),
        ([{"key_suffix": 1}], "/0/key_suffix", "type"),
        ([{"key_suffix": ""}, {"key_suffix": ""}], "/1/key_suffix", "conflict"),
        ([{"key_suffix": "", "size": -1}], "/0/size", "value"),
        ([{"key_suffix": "", "size": 1.0}], "/0/size", "type"),
        ([{"key_suffix": "", "size": True}], "/0/size", "type"),
        ([{"key_suffix": "", "more": 1}], "/0/more", "unknown-member"),
        *(([{"key_suffix": text}], "/0/key_suffix", "value") for text in
          ("0", "9x", "/a", "a/", "a//b", "a\\b", "a\0", "\n", ".", "..", "x/..", "x/zarr.json", "x/__y",
           "__zarrlite.x")),
    ],
    ids=repr,
)  # fmt: skip
def test_invalid_configurations_are_refused_with_a_pointer(parts: Any, pointer: str, kind: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(parts)
    assert (caught.value.pointer, caught.value.kind) == (f"/storage_transformers/0/configuration/parts{pointer}", kind)


def test_unknown_members_of_the_configuration_are_refused() -> None:
    with pytest.raises(MetadataError, match="/storage_transformers/0/configuration/x: is not a known member"):
        parse([{"key_suffix": ""}], x=1)


def test_the_checksum_in_the_first_example_is_a_separate_object() -> None:
    store = zarrlite.MemoryStore()
    data = np.arange(16, dtype="u1").reshape(4, 4)
    array = zarrlite.create_array(
        store,
        data=data,
        chunks=(2, 2),
        codecs=[Bytes(), Zstd(), Crc32c()],
        storage_transformers=[{"name": "concat-parts", "configuration": {"parts": [
            {"key_suffix": ""}, {"key_suffix": ".crc32c", "size": 4}]}}],
    )  # fmt: skip
    assert [key for key in store.list() if key.startswith("c/0/0")] == ["c/0/0", "c/0/0.crc32c"]
    compressed = bytes(store.get("c/0/0") or b"")
    assert Zstd().decode(compressed, 100) == bytes([0, 1, 4, 5])
    assert Crc32c().encode(compressed)[-4:] == store.get("c/0/0.crc32c")
    assert array.nchunks_initialized == 4
    again = zarrlite.open_array(store, mode="r+")
    assert again[...].tolist() == data.tolist()
    again[0, 0] = 9
    again.resize((2, 4))
    assert again[...].tolist() == [[9, 1, 2, 3], [4, 5, 6, 7]]
    assert sorted(k for k in store.list()) == ["c/0/0", "c/0/0.crc32c", "c/0/1", "c/0/1.crc32c", "zarr.json"]


def test_reading_an_inner_chunk_reads_the_index_part_and_one_range() -> None:
    index = 16 * 4 + 4
    below = RecordingStore()
    array = zarrlite.create_array(
        below,
        data=np.arange(8, dtype="u1"),
        chunks=8,
        codecs=[ShardingIndexed((2,), [Bytes()])],
        storage_transformers=[ConcatParts((Part(""), Part(".index", index)))],
    )
    below.reads.clear()
    assert array[2:4].tolist() == [2, 3]
    assert below.reads == [("c/0.index", 0, None), ("c/0", 2, 4)]


class TestConcatParts(StorageTransformerLaws):
    transformer = ConcatParts((Part(".head", 2), Part(""), Part(".tail", 1)))


class TestConcatPartsWithoutAMainKey(StorageTransformerLaws):
    transformer = ConcatParts((Part("_a/b"), Part(".tail", 2)))


class TestASinglePart(StorageTransformerLaws):
    transformer = ConcatParts((Part(""),))

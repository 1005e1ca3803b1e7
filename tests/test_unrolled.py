"""Large chunks of which a part is read: they are decoded no further than that, if their checksum is right."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite.buffers.ranges import ByteRange
from zarrlite.codecs.zstd import Zstd
from zarrlite.errors import DataError, TruncatedError
from zarrlite.pipeline.decoding import LARGE
from zarrlite.stores import MemoryStore

SHAPE = (512, 512)
DATA = np.random.default_rng(7).integers(0, 50, SHAPE).astype("<u2")
FRAME = Zstd().encode(DATA.tobytes())
ZSTD = [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}]


def make(compressors: list[Any]) -> tuple[MemoryStore, Any]:
    """An array of one large chunk."""
    store = MemoryStore()
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *compressors]
    return store, zarrlite.create_array(store, data=DATA, chunks=SHAPE, codecs=codecs)


def put(store: MemoryStore, frame: bytes) -> None:
    """Store a chunk, whose checksum is right whatever it holds."""
    store.set("c/0/0", frame + google_crc32c.value(frame).to_bytes(4, "little"))


@given(st.lists(st.tuples(st.integers(-(2**20), 2**20), st.none() | st.integers(-(2**20), 2**20)), min_size=1))
def test_what_is_unrolled_is_what_is_decoded(ranges: list[tuple[int, int | None]]) -> None:
    source = Zstd().unroll(FRAME, DATA.nbytes)
    assert source is not None
    whole = Zstd().decode(FRAME, DATA.nbytes)
    for start, stop in ranges:
        assert source.read([ByteRange(start, stop)]) == [whole[start:stop]]
    assert source.read([ByteRange(*r) for r in ranges]) == [whole[start:stop] for start, stop in ranges]
    assert source.known_size() == source.size() == DATA.nbytes


@pytest.mark.parametrize(
    "index",
    [
        (0, 0),
        (511, 511),
        (200, slice(None)),
        (slice(None), 7),
        (slice(3, 400, 10), slice(5, None, 7)),
        (slice(0, 0), 1),
    ],
    ids=str,
)
def test_parts_of_a_large_chunk(index: Any) -> None:
    _, array = make([*ZSTD, {"name": "crc32c"}])
    assert np.array_equal(array[index], DATA[index])
    rows, columns = [500, 3, 3], [511, 0, 7]
    assert np.array_equal(array.oindex[rows, columns], DATA[np.ix_(rows, columns)])
    assert np.array_equal(array.vindex[rows, columns], DATA[rows, columns])


def test_a_chunk_is_decoded_no_further_than_it_is_read() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    assert DATA.nbytes >= LARGE
    put(store, FRAME[: len(FRAME) // 2])  # the checksum is that of the half
    assert array[0, 0] == DATA[0, 0]
    with pytest.raises(DataError, match="ends too early") as caught:
        array[511, 511]
    assert (caught.value.key, caught.value.codec) == ("c/0/0", "zstd")
    with pytest.raises(DataError, match="c/0/0"):
        array[...]


def test_without_a_checksum_behind_it_all_of_a_frame_is_decoded() -> None:
    store, array = make(ZSTD)
    store.set("c/0/0", FRAME[: len(FRAME) // 2])
    with pytest.raises(DataError, match="c/0/0"):
        array[0, 0]


def test_a_frame_of_another_size_is_refused_at_once() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    for frame in (Zstd().encode(bytes(10)), Zstd().encode(DATA.tobytes() + b"x"), b"no frame at all"):
        put(store, frame)
        with pytest.raises(DataError, match="c/0/0"):
            array[0, 0]


def test_what_follows_a_frame_is_seen_at_its_end() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    put(store, FRAME + FRAME)
    with pytest.raises(TruncatedError, match="more than fits"):
        array[511, 511]
    put(store, FRAME + b"garbage")
    with pytest.raises(DataError, match="c/0/0"):
        array[511, 511]


def test_a_frame_without_a_content_size_is_decoded_whole() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    put(store, zstandard.ZstdCompressor(write_content_size=False).compress(DATA.tobytes()))
    assert array[300, 2] == DATA[300, 2]

"""Partial reads of large compressed chunks: once its checksum is verified, a chunk is decoded only as far as needed."""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite.codecs.zstd import Zstd
from zarrlite.errors import DataError, TruncatedError
from zarrlite.stores import MemoryStore
from zarrlite.tuning import PREFIX_BYTES

SHAPE = (512, 512)
DATA = np.random.default_rng(7).integers(0, 50, SHAPE).astype("<u2")
FRAME = Zstd().encode(DATA.tobytes())
ZSTD = [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}]


def make(compressors: list[Any]) -> tuple[MemoryStore, Any]:
    """Create an array of one large chunk."""
    store = MemoryStore()
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *compressors]
    return store, zarrlite.create_array(store, data=DATA, chunks=SHAPE, codecs=codecs)


def put(store: MemoryStore, frame: bytes) -> None:
    """Store a chunk with a correct checksum, even if its frame is damaged."""
    store.set("c/0/0", frame + google_crc32c.value(frame).to_bytes(4, "little"))


@given(st.integers(1, DATA.nbytes) | st.just(DATA.nbytes), st.integers(1, 3))
def test_a_short_slot_receives_the_first_bytes_of_its_value(length: int, count: int) -> None:
    memory = bytearray(count * length)
    assert Zstd().decode_into([FRAME] * count, memoryview(memory), DATA.nbytes)
    assert memory == DATA.tobytes()[:length] * count


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
def test_parts_of_a_large_chunk_are_read_as_numpy_does(index: Any) -> None:
    _, array = make([*ZSTD, {"name": "crc32c"}])
    assert np.array_equal(array[index], DATA[index])
    rows, columns = [500, 3, 3], [511, 0, 7]
    assert np.array_equal(array.oindex[rows, columns], DATA[np.ix_(rows, columns)])
    assert np.array_equal(array.vindex[rows, columns], DATA[rows, columns])


def test_a_verified_chunk_is_decoded_no_further_than_needed() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    assert DATA.nbytes >= PREFIX_BYTES
    put(store, FRAME[: len(FRAME) // 2])  # `put` appends a correct checksum of this half
    assert array[0, 0] == DATA[0, 0]
    with pytest.raises(DataError, match="the zstd frame ends too early") as caught:
        array[511, 511]
    assert (caught.value.key, caught.value.codec) == ("c/0/0", "zstd")
    with pytest.raises(DataError, match="c/0/0"):
        array[...]


def test_a_chunk_without_a_checksum_is_decoded_completely() -> None:
    store, array = make(ZSTD)
    store.set("c/0/0", FRAME[: len(FRAME) // 2])
    with pytest.raises(DataError, match="c/0/0"):
        array[0, 0]


def test_a_frame_of_the_wrong_content_size_is_refused() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    for frame in (Zstd().encode(bytes(10)), Zstd().encode(DATA.tobytes() + b"x"), b"no frame at all"):
        put(store, frame)
        with pytest.raises(DataError, match="c/0/0"):
            array[0, 0]


def test_bytes_after_the_frame_are_refused_if_its_end_is_read() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    put(store, FRAME + FRAME)
    with pytest.raises(TruncatedError, match="decompresses to more than the 524288 bytes that are allowed"):
        array[511, 511]
    put(store, FRAME + b"garbage")
    with pytest.raises(DataError, match="c/0/0"):
        array[511, 511]


def test_a_frame_without_a_content_size_is_decoded_completely() -> None:
    store, array = make([*ZSTD, {"name": "crc32c"}])
    put(store, zstandard.ZstdCompressor(write_content_size=False).compress(DATA.tobytes()))
    assert array[300, 2] == DATA[300, 2]

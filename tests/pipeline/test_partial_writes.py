"""Partial writes decode and encode no more than necessary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.pipeline.arrays import make, shards
from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs import Bytes, BytesBytesCodec, Crc32c, Transpose
from zarrlite.errors import ChecksumError
from zarrlite.extensions import registry


def test_a_partial_write_keeps_the_bytes_of_other_inner_chunks() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2), (Bytes(), Crc32c()))])
    shard = bytearray(array.store.get("c/0/0"))
    garbage = b"garbage!"
    shard[8:16] = garbage  # damages inner chunk (0, 1): its checksum is now wrong
    array.store.set("c/0/0", shard)
    array[2:, :2] = 0  # the whole inner chunk (1, 0)
    array[0, 0] = 99  # a part of the inner chunk (0, 0)
    stored = bytes(array.store.get("c/0/0"))
    assert stored[8:16] == garbage
    assert array[0, 0] == 99
    assert array[3, 3] == 16
    assert not array[2:, :2].any()
    with pytest.raises(ChecksumError, match=r"inner chunk \(0, 1\)"):
        array[0, 2]
    array[0:2, 2:4] = 5  # a damaged inner chunk that is overwritten completely is not read
    assert array[...].tolist() == [[99, 2, 5, 5], [5, 6, 5, 5], [0, 0, 11, 12], [0, 0, 15, 16]]


@dataclass(frozen=True)
class Tally(BytesBytesCodec):
    """A codec that returns its input and counts its calls."""

    name = "test.tally"
    decoded: ClassVar[list[int]] = []
    encoded: ClassVar[list[int]] = []

    def encode(self, data: Buffer) -> Buffer:
        self.encoded.append(len(data))
        return data

    def decode(self, data: Buffer, limit: int) -> Buffer:
        self.decoded.append(len(data))
        return data


@pytest.fixture
def tally() -> Tally:
    registry.register(Tally)
    Tally.decoded.clear()
    Tally.encoded.clear()
    return Tally()


@pytest.mark.parametrize(
    ("index", "decoded", "encoded"),
    [
        (np.s_[0, 0], 1, 1),
        (np.s_[:2, :2], 0, 1),
        (np.s_[:2, :3], 1, 2),
        (np.s_[1:3, 1:3], 4, 4),
        (np.s_[:], 0, 4),
    ],
)
def test_a_write_decodes_only_inner_chunks_that_it_overwrites_in_part(
    tally: Tally, index: Any, decoded: int, encoded: int
) -> None:
    array = make((4, 4), (4, 4), [Transpose((1, 0)), shards((2, 2), (Bytes(), tally))])
    expected = array[...]
    tally.decoded.clear()
    tally.encoded.clear()
    array[index] = 77
    assert (len(tally.decoded), len(tally.encoded)) == (decoded, encoded)
    expected[index] = 77
    np.testing.assert_array_equal(array[...], expected)


def test_a_chunk_that_is_overwritten_completely_is_not_read(tally: Tally) -> None:
    array = make((5, 4), (4, 4), [Bytes(), tally])
    array[...] = 3
    tally.decoded.clear()
    array.store.requests.clear()
    array[:4, ::-1] = np.arange(16).reshape(4, 4)
    assert (tally.decoded, array.store.requests) == ([], [])
    array[0, 0] = 1
    assert tally.decoded == [16]
    array[4] = 4  # reads the edge chunk, which has more elements if another writer has enlarged the array
    assert tally.decoded == [16, 16]

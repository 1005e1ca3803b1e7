"""Codecs that implement only `encode` and `decode`, and their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrlite
from tests.pipeline.arrays import parts
from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs import ArrayArrayCodec, ArrayBytesCodec, ArraySpec, Bytes, Crc32c, Gzip, Transpose
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, ChecksumError, DataError
from zarrlite.extensions import registry
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import everything


@dataclass(frozen=True)
class Negated(ArrayArrayCodec):
    """A codec that inverts all bits."""

    name = "test.negated"

    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return ~array

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return ~array


@dataclass(frozen=True)
class Text(ArrayBytesCodec):
    """A codec that stores numbers as decimal text."""

    name = "test.text"

    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return " ".join(map(str, array.ravel().tolist())).encode()

    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        numbers = np.array(bytes(data).decode().split(), spec.dtype)
        return numbers.reshape(spec.shape if numbers.size == spec.size else -1)


@pytest.fixture
def minimal() -> None:
    registry.register(Negated)
    registry.register(Text)


@settings(max_examples=60)
@given(st.data())
def test_codecs_that_only_encode_and_decode_support_partial_access(minimal: None, data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=2)))
    chunks = tuple(data.draw(st.integers(1, 3)) for _ in shape)
    turned = Transpose(tuple(range(len(shape)))[::-1])
    chain = data.draw(st.sampled_from([[Negated(), Bytes()], [Text()], [Negated(), turned, Text(), Gzip()]]))
    copy = zarrlite.create_array(shape=shape, dtype="i4", chunks=chunks, codecs=chain)
    array = np.zeros(shape, "i4")
    index = data.draw(parts(shape))
    array[index] = 5
    copy[index] = 5
    np.testing.assert_array_equal(copy[...], array)
    np.testing.assert_array_equal(copy[index], array[index])
    copy[index] = 0
    assert copy.nchunks_initialized == 0


@pytest.mark.usefixtures("minimal")
def test_exceptions_of_decoding_become_data_errors() -> None:
    bound = Pipeline([Text()], ArraySpec((2, 2), from_dtype("i4"), 0))
    for data, message in (
        (b"1 2 3 x", "codec test.text: cannot be decoded: invalid literal for int() with base 10: 'x'"),
        (b"1 2 3", "codec test.text: decodes to shape (3,), but the chunk has shape (2, 2)"),
    ):
        with pytest.raises(DataError) as caught:
            bound.take(data, everything((2, 2)))
        assert str(caught.value) == message


@pytest.mark.usefixtures("minimal")
def test_exceptions_of_encoding_become_argument_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> bytes:
        raise RuntimeError("no ink")

    monkeypatch.setattr(Text, "encode", fail)
    array = zarrlite.create_array(shape=(2,), dtype="i4", chunks=(2,), codecs=[Text()])
    with pytest.raises(ArgumentError) as caught:
        array[...] = 1
    assert str(caught.value) == "chunk c/0 cannot be encoded: no ink"


@dataclass(frozen=True)
class Failing(ArrayBytesCodec):
    """A codec that cannot decode."""

    name = "test.failing"
    error: ClassVar[Exception]

    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return b""

    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ChecksumError("differs"), ChecksumError, "codec test.failing: differs"),
        (ArgumentError("needs an option"), ArgumentError, "needs an option"),
    ],
)
def test_errors_of_zarrlite_keep_their_type(error: Exception, kind: type, message: str) -> None:
    Failing.error = error
    with pytest.raises(kind) as caught:
        Pipeline([Failing()], ArraySpec((1,), from_dtype("u1"), 0)).take(b"", everything((1,)))
    assert str(caught.value) == message


class Understated(Text):
    """A codec that understates its encoded size."""

    def encoded_size(self, spec: ArraySpec) -> int:
        return 1


def test_a_chunk_that_exceeds_the_decompression_limit_is_not_written() -> None:
    bound = Pipeline([Understated(), Crc32c()], ArraySpec((2,), from_dtype("u1"), 0))
    with pytest.raises(ArgumentError) as caught:
        bound.encode(np.array([1, 2], "u1"))
    assert str(caught.value) == (
        "this chunk compresses too well (3 to 7 bytes): the limit on decompression would prevent it from being read "
        "back; use smaller chunks"
    )

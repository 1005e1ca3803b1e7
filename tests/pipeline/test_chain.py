"""Codec chains: their order, sizes and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.codecs import ArraySpec, Bytes, Crc32c, Gzip, Packbits, ShardingIndexed, Transpose, VlenUtf8
from zarrlite.data_types import from_dtype
from zarrlite.errors import MetadataError
from zarrlite.extensions.extension import Ignored
from zarrlite.pipeline.chain import check_chain
from zarrlite.pipeline.decoding import Limit
from zarrlite.pipeline.pipeline import Pipeline

ORDER = "the order is array -> array codecs, exactly one array -> bytes codec, bytes -> bytes codecs"
NO_SERIALIZER = (
    'has no array -> bytes codec; add one, such as {"name": "bytes", "configuration": {"endian": "little"}}, '
    "before the bytes -> bytes codecs"
)


@pytest.mark.parametrize(
    ("chain", "pointer", "kind", "message"),
    [
        ([], "", "missing", NO_SERIALIZER),
        ([Gzip()], "", "missing", NO_SERIALIZER),
        ([Transpose((0,))], "", "missing", NO_SERIALIZER),
        ([Transpose((0,)), Ignored({"name": "x"}), Gzip()], "", "missing", NO_SERIALIZER),
        ([Bytes(), Bytes()], "/1", "conflict", f"bytes is not allowed in this position: {ORDER}"),
        ([Bytes(), Transpose((0,))], "/1", "conflict", f"transpose is not allowed in this position: {ORDER}"),
        ([Gzip(), Bytes()], "/1", "conflict", f"bytes is not allowed in this position: {ORDER}"),
        ([Bytes(), Gzip(), Transpose((0,))], "/2", "conflict", f"transpose is not allowed in this position: {ORDER}"),
    ],
)
def test_a_chain_in_the_wrong_order_is_refused(chain: list[Any], pointer: str, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        check_chain(chain)
    assert (caught.value.message, caught.value.pointer, caught.value.kind) == (message, pointer, kind)
    with pytest.raises(MetadataError):
        Pipeline(chain, ArraySpec((2,), from_dtype("u1"), 0))


def test_a_codec_of_no_known_kind_is_refused() -> None:
    class Odd(zarrlite.codecs.Codec):
        name = "odd"

    with pytest.raises(MetadataError, match=r"^zarr.json#/0: odd is not allowed in this position: "):
        check_chain([Odd(), Bytes()])


def test_ignored_codecs_are_not_applied() -> None:
    chain = [Ignored({"name": "a"}), Bytes(), Ignored({"name": "b"}), Gzip(), Ignored({"name": "c"})]
    without = Pipeline([Bytes(), Gzip()], ArraySpec((2,), from_dtype("u1"), 0))
    array = np.array([1, 2], "u1")
    assert Pipeline(chain, without.spec).encode(array) == without.encode(array)


@pytest.mark.parametrize(
    ("chain", "size"),
    [
        ([Bytes()], 48),
        ([Packbits(last_bit=2), Crc32c()], 5 + 4),
        ([Transpose((1, 0)), Bytes(), Crc32c(), Crc32c()], 56),
        ([Bytes(), Gzip()], None),
        ([Bytes(), Gzip(), Crc32c()], None),
        ([ShardingIndexed((3, 4), (Bytes(),))], None),
    ],
)
def test_the_encoded_size_is_known_if_that_of_every_codec_is(chain: list[Any], size: int | None) -> None:
    assert Pipeline(chain, ArraySpec((3, 4), from_dtype("i4"), 0)).encoded_size == size


def test_limits_grow_along_the_chain() -> None:
    bound = Pipeline([Bytes(), Crc32c(), Gzip(), Crc32c()], ArraySpec((100,), from_dtype("u1"), 0))
    assert [limit.fixed for _, limit in bound.compressors] == [100, 104, 104 + 26 + 2**16]
    assert bound.limit == Limit(104 + 26 + 2**16 + 4)
    text = Pipeline([VlenUtf8(), Gzip()], ArraySpec((100,), from_dtype("string"), ""))
    assert text.compressors[0][1] == Limit(2**24 + 6400, 256)

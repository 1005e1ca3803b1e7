"""Helpers that encode chunks with a codec chain, and decode them with every method of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.source import InMemory
from zarrlite.codecs import ArraySpec, Bytes
from zarrlite.data_types import from_dtype
from zarrlite.errors import ZarrliteError
from zarrlite.extensions import registry
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, read_from_sources
from zarrlite.selections.selection import everything
from zarrlite.stores.base import IN_MEMORY

LITTLE = Bytes("little")
ABSENT = 2**64 - 1


def pipeline(chain: list[Any], shape: tuple[int, ...], dtype: Any, fill: Any = None) -> Pipeline:
    data_type = from_dtype(dtype)
    fill = data_type.default_fill_value if fill is None else fill
    return Pipeline([registry.codecs.coerce(codec) for codec in chain], ArraySpec(shape, data_type, fill))


def encode(bound: Pipeline, array: Any) -> bytes:
    return bytes(bound.encode_always(array))


def take(bound: Pipeline, data: Any) -> Any:
    return bound.take(data, everything(bound.spec.shape))


def read(bound: Pipeline, data: Any) -> Any:
    target = np.empty(bound.spec.shape, bound.spec.dtype)
    missing = read_from_sources(bound.read, [InMemory(data)], [(everything(bound.spec.shape), target)], IN_MEMORY)
    assert missing == []
    return target


def decode(bound: Pipeline, data: Any) -> Any:
    """Decode a whole chunk with every method of the pipeline, and check that the results are equal."""
    array = np.asarray(bound.decode(data), bound.spec.dtype)
    for decoded in (take(bound, data), read(bound, data)):
        assert decoded.shape == array.shape
        assert decoded.tolist() == array.tolist() or decoded.tobytes() == array.tobytes()
    return array


def refusal(bound: Pipeline, data: bytes) -> tuple[type, str]:
    """Return the class and the message of the error that every decoding method raises for a damaged chunk."""
    with pytest.raises(ZarrliteError) as caught:
        take(bound, data)
    with pytest.raises(type(caught.value)):
        bound.decode(data)
    with pytest.raises((type(caught.value), FailedPart)) as read_error:
        read(bound, data)
    error = read_error.value.error if isinstance(read_error.value, FailedPart) else read_error.value
    assert type(error) is type(caught.value)
    return type(caught.value), str(caught.value)


class GetOnlyStore(zarrlite.Store):
    """A store that implements only `get`, and records its requests."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values
        self.asked: list[Any] = []

    def get(self, key: str, byte_range: Any = zarrlite.ByteRange()) -> Any:
        self.asked.append((key, *byte_range))
        return byte_range.of(self.values[key]) if key in self.values else None

"""The `reshape` codec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.codecs.decoding import LITTLE, decode, encode, pipeline
from zarrlite.codecs import Reshape, ShardingIndexed, Transpose
from zarrlite.errors import MetadataError
from zarrlite.testing import ArrayArrayLaws


class TestReshape(ArrayArrayLaws):
    codec = Reshape(((), -1))
    arrays = tuple(array for array in ArrayArrayLaws.arrays)


class TestReshapeToNothing(ArrayArrayLaws):
    codec = Reshape(())
    arrays = (np.array([[5]], "u1"), np.array(7))


def reshape(*shape: Any) -> Any:
    return {"name": "reshape", "configuration": {"shape": list(shape)}}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (([0, 1], [2], 3), (5000, 64, 3)),  # the example in the specification
        (([0, 1], 64, [3]), (5000, 64, 3)),
        ((-1,), (960000,)),
        ((5000, -1, 3), (5000, 64, 3)),
        (([0, 1, 2, 3],), (960000,)),
        ((100, 50, 1, [2], 3), (100, 50, 1, 64, 3)),
        ((100, 50, [], [2], 3), (100, 50, 1, 64, 3)),
    ],
)
def test_lengths_are_computed_as_specified(shape: Any, expected: Any) -> None:
    bound = pipeline([reshape(*shape), LITTLE], (100, 50, 64, 3), "uint8")
    assert bound.serializer.spec.shape == expected


@pytest.mark.parametrize(
    ("shape", "pointer"),
    [
        ((-1, -1), "/configuration/shape"),
        ((0, -1), "/configuration/shape/0"),
        ((-2,), "/configuration/shape/0"),
        ((True, 24), "/configuration/shape/0"),
        ((4.0, 6), "/configuration/shape/0"),
        (([0, -1], 6), "/configuration/shape/0"),
        (([1], [0]), "/configuration/shape"),
        (([1, 0],), "/configuration/shape"),
        (([0], [0, 1]), "/configuration/shape"),
        (([0, 2],), "/0/configuration/shape/0"),
        ((5, -1), "/0/configuration/shape"),
        ((4, 5), "/0/configuration/shape"),
        ((6, [0]), "/0/configuration/shape/1"),  # 6 x 4 elements, but no dimension before dimension 0 matches the 6
        (([1], 4), "/0/configuration/shape/0"),
        ((4, 6, [1]), "/0/configuration/shape"),
        ((), "/0/configuration/shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shape: Any, pointer: str) -> None:
    with pytest.raises(MetadataError) as caught:
        pipeline([reshape(*shape), LITTLE], (4, 6), "uint8")
    assert caught.value.pointer == pointer


def test_the_order_of_elements_is_kept() -> None:
    array = np.arange(24, dtype="i4").reshape(2, 3, 4)
    for before in ([], [Transpose((2, 0, 1))]):
        bound = pipeline([*before, reshape(-1, 2), LITTLE], array.shape, "i4")
        elements = array.transpose(before[0].order) if before else array
        assert encode(bound, array) == elements.tobytes()
        assert decode(bound, encode(bound, array)).tolist() == array.tolist()


def test_a_reshaped_chunk_can_be_a_shard_and_be_inside_one() -> None:
    data = np.arange(96).reshape(8, 12)
    inner = ShardingIndexed((6,), (Reshape((2, 3)), LITTLE), (LITTLE,))
    array = zarrlite.create_array(
        {}, shape=(8, 12), dtype="i8", chunks=(4, 6), filters=[Reshape((-1,))], serializer=inner, compressors=None
    )
    array[...] = data
    array[3:5, 4:9] = -1
    data[3:5, 4:9] = -1
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(array[2:6, 5], data[2:6, 5])

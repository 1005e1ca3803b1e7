"""The laws that every chunk key encoding obeys, as a base class for pytest.

    class TestMyKeys(KeyEncodingLaws):
        encoding = MyKeys(separator="-")

Rules
- Decoding is the exact inverse of encoding: a key decodes to coordinates only if they encode to the same key.
- Every key can be stored, and no key is the key of a metadata document.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.extensions import registry
from zarrlite.selections.selection import Shape
from zarrlite.stores.base import check_key
from zarrlite.tools.testing.codecs import check_json

NUMBERS = (0, 1, 9, 10, 101, 2**40, 2**63 - 1)
INSERTED = ("0", "1", "c", "+", "-", "_", " ", "\n", "/", ".", "٣", "²", "e", "zarr.json")


def coordinates(ndims: Sequence[int] = range(4)) -> Iterator[Shape]:
    """Yield chunk coordinates with these numbers of dimensions."""
    for ndim in ndims:
        yield from itertools.product(NUMBERS, repeat=ndim)


def mutations(key: str) -> Iterator[str]:
    """Yield keys that differ from this one at a single position, where text was removed, inserted or replaced."""
    for i in range(len(key) + 1):
        yield key[:i] + key[i + 1 :]
        for text in INSERTED:
            yield key[:i] + text + key[i:]
            yield key[:i] + text + key[i + 1 :]


class KeyEncodingLaws:
    """The laws of chunk key encodings. Subclass this class, name the subclass `Test...`, and set `encoding`.

    Set `ndims` if the encoding does not support every number of dimensions.
    """

    encoding: ChunkKeyEncoding
    ndims: Sequence[int] = range(4)

    def test_json_reads_as_an_equal_encoding(self) -> None:
        check_json(registry.chunk_key_encodings, self.encoding)

    def test_decoding_undoes_encoding(self) -> None:
        for coords in coordinates(self.ndims):
            assert self.encoding.decode(self.encoding.encode(coords), len(coords)) == coords

    def test_a_bound_encoding_returns_the_same_keys(self) -> None:
        for coords in coordinates(self.ndims):
            assert self.encoding.bound(len(coords))(coords) == self.encoding.encode(coords)

    def test_every_key_can_be_stored(self) -> None:
        for coords in coordinates(self.ndims):
            key = check_key(self.encoding.encode(coords))
            assert key.rpartition("/")[2] != "zarr.json"
            assert not any(ord(character) < 32 for character in key)

    def test_no_two_chunks_share_a_key(self) -> None:
        for ndim, group in itertools.groupby(coordinates(self.ndims), len):
            keys = [self.encoding.encode(coords) for coords in group]
            assert len(set(keys)) == len(keys), ndim

    def test_a_key_decodes_only_to_coordinates_that_encode_to_it(self) -> None:
        for coords in ((), (0,), (10,), (1, 0), (12, 3, 0)):
            if len(coords) not in self.ndims:
                continue
            for key in ("", "zarr.json", *mutations(self.encoding.encode(coords))):
                for ndim in range(4):
                    found = self.encoding.decode(key, ndim)
                    if found is not None:
                        assert (len(found), self.encoding.encode(found)) == (ndim, key)

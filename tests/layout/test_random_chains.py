"""Random codec chains on random stacks of storage transformers: ranges tile the objects, and damage is found."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from layout.arrays import DATA
from transformer_stacks import ENCODINGS, stacks

import zarrlite
from zarrlite import Array, DataError
from zarrlite.codecs import Bytes, Crc32c, Gzip, Offset, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.layout import check
from zarrlite.tools.layout.objects import Stack
from zarrlite.tools.layout.tree import tiles

fixed = st.sampled_from([Pad("start", 3, b"abc"), Pad("end", 5), Offset(2), Pad("start", 0), Crc32c()])
packed = st.one_of(fixed, st.sampled_from([Zstd(), Gzip()]))
orders = st.sampled_from([(), (Transpose((1, 0)),)])
plain = st.builds(lambda order, tail: [*order, Bytes(), *tail], orders, st.lists(packed, max_size=3))


def sharded(inner: Any, shape: tuple[int, int]) -> Any:
    def chain(order: Any, codecs: Any, index: Any, place: str, tail: Any) -> Any:
        return [*order, ShardingIndexed(shape, codecs, [Bytes(), *index], place), *tail]

    places = st.sampled_from(["start", "end"])
    return st.builds(chain, orders, inner, st.lists(fixed, max_size=2), places, st.lists(packed, max_size=2))


chains = st.one_of(plain, sharded(plain, (2, 2)), sharded(sharded(plain, (1, 1)), (2, 2)))


@settings(max_examples=80)
@given(chains, stacks, st.sampled_from(ENCODINGS), st.data())
def test_random_chains_are_tiled_and_damage_is_found(codecs: Any, stack: Any, encoding: Any, data: Any) -> None:
    pad = [Pad("end", 12)]  # makes values long enough to be split into all parts
    array = zarrlite.create_array(
        {},
        data=DATA[:8, :8],
        chunks=(4, 4),
        codecs=[*codecs, *pad],
        chunk_key_encoding=encoding,
        storage_transformers=stack,
    )
    assert list(check(array.store)) == []
    assert all_tiled(array)
    key = data.draw(st.sampled_from(sorted(set(array.store.list()) - {"zarr.json"})))
    value = bytearray(array.store.get(key) or b"")
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(value)))
        value[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    array.store.set(key, bytes(value))
    assert all_tiled(array)
    assert fails(array) <= bool(list(check(array.store)))


def all_tiled(array: Array) -> bool:
    layouts = {key: Stack(array).layout(key) for key in array.store.list()}
    return all(r is not None and tiles(r) and r.stop == array.store.size(key) for key, r in layouts.items())


def fails(array: Array) -> bool:
    try:
        array[...]
    except DataError:
        return True
    return False

"""Parts of fixed size before the main part of a shard form its header, which contains zeros in a new shard."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import codecs
from zarrlite.codecs import ShardingIndexed
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

DATA = np.arange(1, 17, dtype="u1").reshape(4, 4)
HEADER = ConcatParts([Part(".header", 8), Part(""), Part(".index", 36)])  # the index: 2 entries and a checksum
TWO = ConcatParts([Part(".a", 3), Part(".b", 5), Part("")])


def make(transformer: Any, *chain: Any, **keywords: Any) -> tuple[zarrlite.Array, zarrlite.MemoryStore]:
    """Create an array of shards that each have two inner chunks."""
    store = zarrlite.MemoryStore()
    chain = chain or (ShardingIndexed((1, 4)),)
    transformers = transformer if isinstance(transformer, list) else [transformer]
    keywords = {"chunks": (2, 4), "codecs": chain, "storage_transformers": transformers, **keywords}
    return zarrlite.create_array(store, data=DATA, **keywords), store


def get(store: zarrlite.MemoryStore, key: str) -> bytes:
    return bytes(store.get(key) or b"")


def test_the_header_part_of_a_new_shard_holds_zeros() -> None:
    array, store = make(HEADER)
    assert get(store, "c/0/0.header") == bytes(8)
    assert get(store, "c/0/0") == DATA[:2].tobytes()
    np.testing.assert_array_equal(array[...], DATA)


def test_several_leading_parts_are_one_header() -> None:
    array, store = make(TWO)
    assert (get(store, "c/0/0.a"), get(store, "c/0/0.b")) == (bytes(3), bytes(5))
    assert get(store, "c/0/0").startswith(DATA[:2].tobytes())
    np.testing.assert_array_equal(array[...], DATA)


@pytest.mark.parametrize("strategy", ["rewrite", "in-place", "append"])
def test_a_header_in_the_store_is_kept(strategy: str) -> None:
    _, store = make(HEADER)
    store.set("c/0/0.header", b"8 bytes.")
    array = zarrlite.open_array(store, options={"/codecs/0": {"strategy": strategy}})
    array[0, 0] = 99
    array[1] = 7
    assert get(store, "c/0/0.header") == b"8 bytes."
    array[...] = DATA
    assert get(store, "c/0/0.header") == b"8 bytes."
    np.testing.assert_array_equal(zarrlite.open_array(store)[...], DATA)


def test_header_0_stores_data_in_the_leading_parts() -> None:
    array, store = make(HEADER, ShardingIndexed((1, 4), header=0))
    assert get(store, "c/0/0.header") == DATA[:2].tobytes()
    assert get(store, "c/0/0") == b""
    np.testing.assert_array_equal(array[...], DATA)
    reopened = zarrlite.open_array(store)  # a shard with data in its header part can be read without this option
    np.testing.assert_array_equal(reopened[...], DATA)
    reopened[0] = 1
    assert get(store, "c/0/0.header") == bytes(8)  # writing the shard moves the data out of the header
    assert reopened[:2].tolist() == [[1] * 4, DATA[1].tolist()]


def test_another_header_can_be_chosen() -> None:
    _, store = make(HEADER, ShardingIndexed((1, 4), header=10))
    assert get(store, "c/0/0") == bytes(2) + DATA[:2].tobytes()


@pytest.mark.parametrize(
    ("transformer", "chain"),
    [
        (ConcatParts([Part(""), Part(".index", 36)]), []),
        (ConcatParts([Part(".main"), Part(".tail", 8)]), []),
        (ConcatParts([Part(".header", 8), Part("")]), [ShardingIndexed((1, 4)), codecs.Pad("start", 4)]),
        (ConcatParts([Part(".header", 8), Part("")]), [ShardingIndexed((1, 4)), "gzip"]),
        (ConcatParts([Part(".header", 8), Part("")]), [ShardingIndexed((1, 4), index_location="start")]),
        (ConcatParts([Part(".header", 8), Part("")]), [codecs.Bytes(None), "crc32c"]),
    ],
    ids=["no leading part", "main part first", "after padding", "compressed", "index at the start", "no shard"],
)
def test_no_space_is_reserved_unless_the_shard_starts_with_the_parts(transformer: Any, chain: list[Any]) -> None:
    array, store = make(transformer, *chain)
    plain = zarrlite.create_array({}, data=DATA, chunks=(2, 4), codecs=chain or [ShardingIndexed((1, 4))])
    parts = [get(store, f"c/0/0{part.key_suffix}") for part in transformer.parts]
    assert b"".join(parts) == bytes(plain.store.get("c/0/0") or b"")
    np.testing.assert_array_equal(array[...], DATA)


def test_a_checksum_after_the_shard_does_not_move_its_first_byte() -> None:
    array, store = make(ConcatParts([Part(".header", 8), Part("")]), ShardingIndexed((1, 4)), "crc32c")
    assert get(store, "c/0/0.header") == bytes(8)
    np.testing.assert_array_equal(array[...], DATA)


def test_shards_of_the_draft_have_a_header_as_well() -> None:
    draft = [Sharding((2, 1)), ConcatParts([Part(".header", 8), Part(""), Part(".index", 32)])]
    array, store = make(draft, codecs.Bytes(None), chunks=(1, 4))
    assert get(store, "c/0/0.header") == bytes(8)
    array.store.set("c/0/0.header", b"8 bytes.")
    array[0, 0] = 50
    assert get(store, "c/0/0.header") == b"8 bytes."
    assert array[:2].tolist() == [[50, *DATA[0, 1:].tolist()], DATA[1].tolist()]
    without = [Sharding((2, 1), header=0), draft[1]]
    assert get(make(without, codecs.Bytes(None), chunks=(1, 4))[1], "c/0/0.header") == DATA[:2].tobytes()


def test_the_unchanged_example_of_the_proposal_is_opened_and_written() -> None:
    path = Path(__file__).parents[2] / "spec_fixtures/proposals/concat-parts/examples.json"
    cases = {case["id"]: case for case in json.loads(path.read_text("utf-8"))["cases"]}
    document = cases["proposals/concat-parts/examples/header"]["document"]
    store = zarrlite.MemoryStore({"zarr.json": json.dumps(document).encode()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the example lacks a fill value
        array = zarrlite.open_array(store, strict=False)
    array[:500, :500] = 7
    array[600, 600] = 3
    sizes = {re.sub("^c/0/0", "", key): store.size(key) for key in store.list() if key != "zarr.json"}
    assert sizes == {"": 500_000, ".header": 64, ".index": 1604}
    assert get(store, "c/0/0.header") == bytes(64)
    assert (int(array[:1000, :1000].sum()), array[600, 600]) == (7 * 250_000 + 3, 3)


def test_the_header_option_is_not_written_to_the_document() -> None:
    array, store = make(HEADER)
    assert "header" not in json.dumps(json.loads(get(store, "zarr.json"))["codecs"])
    assert array.metadata.codecs[0].header is None  # type: ignore[union-attr]

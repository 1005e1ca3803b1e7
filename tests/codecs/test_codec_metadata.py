"""Codec metadata: canonical forms, refused configurations, and codecs that contradict their array."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from zarrlite import codecs
from zarrlite.codecs import (
    Blosc,
    Bytes,
    Codec,
    Crc32c,
    Gzip,
    Packbits,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json
from zarrlite.metadata.documents import ArrayMetadata


def document(**members: Any) -> dict[str, Json]:
    valid: dict[str, Json] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
        "chunk_key_encoding": "default",
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    return {**valid, **members}


WRITTEN: list[tuple[Json, Codec, Json]] = [
    ("bytes", Bytes(None), {"name": "bytes"}),
    (
        {"name": "bytes", "configuration": {"endian": "big"}},
        Bytes("big"),
        {"name": "bytes", "configuration": {"endian": "big"}},
    ),
    ("crc32c", Crc32c(), {"name": "crc32c"}),
    ("gzip", Gzip(5), {"name": "gzip", "configuration": {"level": 5}}),
    (
        {"name": "gzip", "configuration": {"level": 9}},
        Gzip(9),
        {"name": "gzip", "configuration": {"level": 9}},
    ),
    ("zstd", Zstd(3), {"name": "zstd", "configuration": {"level": 3, "checksum": False}}),
    (
        {"name": "zstd", "configuration": {"level": -131072, "checksum": True}},
        Zstd(-131072, True),
        {"name": "zstd", "configuration": {"level": -131072, "checksum": True}},
    ),
    ("packbits", Packbits(), {"name": "packbits"}),
    (
        {
            "name": "packbits",
            "configuration": {"padding_encoding": "first_byte", "first_bit": None, "last_bit": 3},
        },
        Packbits("first_byte", None, 3),
        {"name": "packbits", "configuration": {"padding_encoding": "first_byte", "last_bit": 3}},
    ),
    ("vlen-utf8", VlenUtf8(), {"name": "vlen-utf8"}),
    ("vlen-bytes", VlenBytes(), {"name": "vlen-bytes"}),
    (
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        Transpose((1, 0)),
        {"name": "transpose", "configuration": {"order": [1, 0]}},
    ),
    (
        {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4}},
        Blosc("lz4", 1, "shuffle", 4),
        {
            "name": "blosc",
            "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
        },
    ),
    (
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 0, "shuffle": "noshuffle", "blocksize": 8}},
        Blosc("zstd", 0, "noshuffle", None, 8),
        {
            "name": "blosc",
            "configuration": {"cname": "zstd", "clevel": 0, "shuffle": "noshuffle", "blocksize": 8},
        },
    ),
    (
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2], "codecs": ["bytes", "gzip"], "index_codecs": ["bytes"]},
        },
        ShardingIndexed((2,), (Bytes(None), Gzip()), (Bytes(None),)),
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2],
                "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}],
                "index_codecs": [{"name": "bytes"}],
                "index_location": "end",
            },
        },
    ),
]


@pytest.mark.parametrize(("value", "codec", "written"), WRITTEN)
def test_a_codec_is_read_and_written_in_canonical_form(value: Json, codec: Codec, written: Json) -> None:
    parsed = registry.codecs.parse(value, "/codecs/0", Context())
    assert parsed == codec
    assert parsed.to_json() == written
    assert registry.codecs.parse(written, "/codecs/0", Context()) == codec
    assert hash(parsed) == hash(codec)


SHARDED = {"chunk_shape": [2, 3], "codecs": ["bytes"], "index_codecs": ["bytes"]}
PERMUTATION = "must be a permutation of 0 to 1, not "

CONFIGURATIONS: list[tuple[str, Json, str, str, str]] = [
    ("bytes", {"endian": "middle"}, "/endian", "value", 'must be "little" or "big", not "middle"'),
    ("bytes", {"endian": None}, "/endian", "type", "must be a string, not null"),
    ("bytes", {"endianness": "big"}, "/endianness", "unknown-member", "is not a known member (known: endian)"),
    ("crc32c", {"x": 1}, "/x", "unknown-member", "is not a known member (known: none)"),
    ("gzip", {"level": 10}, "/level", "value", "must be an integer from 0 to 9, not 10"),
    ("gzip", {"level": -1}, "/level", "value", "must be an integer from 0 to 9, not -1"),
    ("gzip", {"level": True}, "/level", "type", "must be an integer, not true"),
    ("gzip", {"level": 5.0}, "/level", "type", "must be an integer, not 5.0"),
    ("gzip", {"level": "5"}, "/level", "type", 'must be an integer, not "5"'),
    ("zstd", {"level": 23}, "/level", "value", "must be an integer from -131072 to 22, not 23"),
    ("zstd", {"level": -131073}, "/level", "value", "must be an integer from -131072 to 22, not -131073"),
    ("zstd", {"level": 1, "checksum": 0}, "/checksum", "type", "must be true or false, not 0"),
    ("transpose", {}, "/order", "missing", "is required and missing"),
    ("transpose", {"order": "C"}, "/order", "type", 'must be an array, not "C"'),
    ("transpose", {"order": [0, 0]}, "/order", "value", PERMUTATION + "[0, 0]"),
    ("transpose", {"order": [1, 2]}, "/order", "value", PERMUTATION + "[1, 2]"),
    ("transpose", {"order": [0, -1]}, "/order/1", "value", f"must be an integer from 0 to {2**63 - 1}, not -1"),
    ("transpose", {"order": [0, True]}, "/order/1", "type", "must be an integer, not true"),
    (
        "packbits",
        {"padding_encoding": "start_byte"},
        "/padding_encoding",
        "value",
        'must be "first_byte" or "last_byte" or "none", not "start_byte"',
    ),
    ("packbits", {"first_bit": -1}, "/first_bit", "value", "must be an integer from 0 to 63, not -1"),
    ("packbits", {"last_bit": 64}, "/last_bit", "value", "must be an integer from 0 to 63, not 64"),
    (
        "packbits",
        {"first_bit": 3, "last_bit": 2},
        "/last_bit",
        "conflict",
        "must not be less than first_bit, which is 3",
    ),
    (
        "packbits",
        {"start_bit": 3},
        "/start_bit",
        "unknown-member",
        "is not a known member (known: first_bit, last_bit, padding_encoding)",
    ),
    ("vlen-utf8", {"x": 1}, "/x", "unknown-member", "is not a known member (known: none)"),
    ("blosc", {}, "/shuffle", "missing", "is required and missing"),
    (
        "blosc",
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"},
        "/typesize",
        "missing",
        "is required with shuffle 'shuffle'",
    ),
    (
        "blosc",
        {"cname": "lz5", "clevel": 5, "shuffle": "noshuffle"},
        "/cname",
        "value",
        'must be "lz4" or "lz4hc" or "blosclz" or "zstd" or "snappy" or "zlib", not "lz5"',
    ),
    (
        "blosc",
        {"cname": "lz4", "clevel": 10, "shuffle": "noshuffle"},
        "/clevel",
        "value",
        "must be an integer from 0 to 9, not 10",
    ),
    (
        "blosc",
        {"cname": "lz4", "clevel": 5, "shuffle": 1},
        "/shuffle",
        "type",
        "must be a string, not 1",
    ),
    (
        "blosc",
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 0},
        "/typesize",
        "value",
        f"must be an integer from 1 to {2**63 - 1}, not 0",
    ),
    (
        "sharding_indexed",
        {**SHARDED, "chunk_shape": [0, 3]},
        "/chunk_shape/0",
        "value",
        f"must be an integer from 1 to {2**63 - 1}, not 0",
    ),
    (
        "sharding_indexed",
        {**SHARDED, "index_location": "middle"},
        "/index_location",
        "value",
        'must be "start" or "end", not "middle"',
    ),
    ("sharding_indexed", {**SHARDED, "codecs": {}}, "/codecs", "type", "must be an array, not {}"),
    (
        "sharding_indexed",
        {**SHARDED, "codecs": ["bytes", {"name": "gzip", "configuration": {"level": 11}}]},
        "/codecs/1/configuration/level",
        "value",
        "must be an integer from 0 to 9, not 11",
    ),
    (
        "sharding_indexed",
        {**SHARDED, "codecs": []},
        "/codecs",
        "missing",
        (
            'has no array -> bytes codec; add one, such as {"name": "bytes", "configuration": {"endian": "little"}}, '
            "before the bytes -> bytes codecs"
        ),
    ),
    (
        "sharding_indexed",
        {**SHARDED, "codecs": ["gzip", "bytes"]},
        "/codecs/1",
        "conflict",
        (
            "bytes is not allowed in this position: the order is array -> array codecs, "
            "exactly one array -> bytes codec, bytes -> bytes codecs"
        ),
    ),
]


@pytest.mark.parametrize(("name", "configuration", "where", "kind", "message"), CONFIGURATIONS)
def test_an_invalid_configuration_is_refused_with_its_pointer(
    name: str, configuration: Json, where: str, kind: str, message: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse({"name": name, "configuration": configuration}, "/codecs/0", Context())
    pointer = "/codecs/0/configuration" + where
    assert (caught.value.pointer, caught.value.kind) == (pointer, kind)
    assert str(caught.value) == f"zarr.json#{pointer}: {message}"


def test_all_faults_of_a_sharding_configuration_are_reported() -> None:
    value = {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [0], "codecs": ["gzip"], "index_codecs": 1, "index_location": None},
    }
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse(value, "/codecs/0", Context())
    assert [fault.pointer.removeprefix("/codecs/0/configuration") for fault in caught.value.problems] == [
        "/chunk_shape/0",
        "/codecs",
        "/index_codecs",
        "/index_location",
    ]
    assert str(caught.value).endswith("not 0 (and 3 more)")


def codec_json(name: str, **configuration: Json) -> Json:
    return {"name": name, "configuration": configuration}


BIG = codec_json("bytes", endian="big")
# members that are valid on their own, but contradict an int16 array of shape (4, 6)
MISFITS: list[tuple[dict[str, Json], str, str, str]] = [
    (
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}},
        "/chunk_grid/configuration/chunk_shape",
        "conflict",
        "must have 2 items, one for each dimension, not 1",
    ),
    (
        {"codecs": ["bytes"]},
        "/codecs/0/configuration/endian",
        "missing",
        'is required for int16: "little" or "big"',
    ),
    (
        {"codecs": ["bytes"], "data_type": "string", "fill_value": ""},
        "/codecs/0",
        "conflict",
        "the bytes codec cannot store string, whose elements vary in length; use vlen-utf8",
    ),
    (
        {"codecs": ["vlen-utf8"]},
        "/codecs/0",
        "conflict",
        "vlen-utf8 stores strings, not int16; use bytes",
    ),
    (
        {"codecs": ["vlen-utf8"], "data_type": "bytes", "fill_value": ""},
        "/codecs/0",
        "conflict",
        "vlen-utf8 stores strings, not bytes; use vlen-bytes",
    ),
    (
        {"codecs": ["packbits"], "data_type": "r16", "fill_value": [0, 0]},
        "/codecs/0",
        "conflict",
        "packbits stores booleans and numbers, not r16",
    ),
    (
        {"codecs": [codec_json("packbits", last_bit=16)]},
        "/codecs/0/configuration/last_bit",
        "conflict",
        "must be below 16, the number of bits of int16, not 16",
    ),
    (
        {"codecs": [codec_json("packbits", first_bit=1)], "data_type": "bool", "fill_value": False},
        "/codecs/0/configuration/first_bit",
        "conflict",
        "must be below 1, the number of bits of bool, not 1",
    ),
    (
        {"codecs": [codec_json("transpose", order=[0, 2, 1]), BIG]},
        "/codecs/0/configuration/order",
        "conflict",
        "must be a permutation of the 2 dimensions, not [0, 2, 1]",
    ),
    (
        {"codecs": [codec_json("sharding_indexed", **{**SHARDED, "codecs": [BIG], "index_codecs": ["bytes"]})]},
        "/codecs/0/configuration/index_codecs/0/configuration/endian",
        "missing",
        'is required for uint64: "little" or "big"',
    ),
    (
        {"codecs": [codec_json("sharding_indexed", **{**SHARDED, "index_codecs": [BIG]})]},
        "/codecs/0/configuration/codecs/0/configuration/endian",
        "missing",
        'is required for int16: "little" or "big"',
    ),
    (
        {
            "codecs": [
                codec_json("sharding_indexed", chunk_shape=[2, 4], codecs=[BIG], index_codecs=[BIG]),
            ]
        },
        "/codecs/0/configuration/chunk_shape/1",
        "conflict",
        "must divide 6, the length of the shard, evenly; 4 does not",
    ),
    (
        {"codecs": [codec_json("sharding_indexed", chunk_shape=[2], codecs=[BIG], index_codecs=[BIG])]},
        "/codecs/0/configuration/chunk_shape",
        "conflict",
        "must have 2 dimensions, like the shard, not 1",
    ),
    (
        {
            "codecs": [
                codec_json("sharding_indexed", chunk_shape=[2, 3], codecs=[BIG], index_codecs=[BIG, "gzip"]),
            ]
        },
        "/codecs/0/configuration/index_codecs",
        "conflict",
        "must produce an index of fixed size, without compression",
    ),
    (
        {
            "codecs": [
                codec_json("transpose", order=[1, 0]),
                codec_json(
                    "sharding_indexed",
                    chunk_shape=[3, 2],
                    codecs=[codec_json("sharding_indexed", chunk_shape=[2, 2], codecs=[BIG], index_codecs=[BIG])],
                    index_codecs=[BIG],
                ),
            ]
        },
        "/codecs/1/configuration/codecs/0/configuration/chunk_shape/0",
        "conflict",
        "must divide 3, the length of the shard, evenly; 2 does not",
    ),
]


@pytest.mark.parametrize(("members", "pointer", "kind", "message"), MISFITS)
def test_a_codec_that_does_not_fit_its_array_is_refused(
    members: dict[str, Json], pointer: str, kind: str, message: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        ArrayMetadata.from_json(document(**members))
    assert (caught.value.pointer, caught.value.kind) == (pointer, kind)
    assert str(caught.value) == f"zarr.json#{pointer}: {message}"


def test_structured_data_may_omit_the_byte_order() -> None:
    data_type = {"name": "structured", "configuration": {"fields": [["x", "int16"]]}}
    metadata = ArrayMetadata.from_json(document(data_type=data_type, fill_value="AAA=", codecs=["bytes"]))
    assert metadata.byte_order == "little"


@pytest.mark.parametrize(
    ("chain", "order"),
    [
        ([BIG], "big"),
        (["packbits"], "little"),
        ([codec_json("sharding_indexed", chunk_shape=[2, 3], codecs=[BIG], index_codecs=[BIG])], "big"),
    ],
)
def test_the_byte_order_is_taken_from_the_innermost_elements(chain: list[Json], order: str) -> None:
    assert ArrayMetadata.from_json(document(codecs=chain)).byte_order == order


VALUES = ("BloscCname", "BloscShuffle", "Endian", "ShardingCodecIndexLocation")  # enumerations, not codecs


@pytest.mark.parametrize("name", [n for n in codecs.__all__ if n not in ("ArraySpec", *VALUES)])
def test_every_codec_class_is_exported(name: str) -> None:
    assert issubclass(getattr(codecs, name), Codec)


def test_an_unknown_codec_class_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'zarrlite.codecs' has no attribute 'Lzma'$"):
        codecs.Lzma


def test_the_registry_finds_every_codec_by_its_name() -> None:
    for name in registry.codecs.names():
        cls = registry.codecs.find(name)
        assert cls is not None
        if cls.__module__.startswith("zarrlite."):
            assert importlib.import_module(cls.__module__)
            assert name in (cls.name, *cls.aliases)

"""Parsing and writing zarr.json: members that are kept, messages about faults, and bounds on memory."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
import warnings
from typing import Any

import pytest

import zarrlite
from zarrlite.errors import MetadataError, MetadataWarning, UnknownExtensionError
from zarrlite.metadata import documents
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata, parse_node, serialize

Json = Any
ABSENT = object()
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
CRC = {"name": "crc32c"}
GROUP: dict[str, Json] = {"zarr_format": 3, "node_type": "group"}
ARRAY: dict[str, Json] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [BYTES],
}


def array(**changes: Any) -> dict[str, Json]:
    return copy.deepcopy({k: v for k, v in {**ARRAY, **changes}.items() if v is not ABSENT})


def group(**changes: Any) -> dict[str, Json]:
    return {**GROUP, **changes}


def grid(*chunk_shape: int) -> dict[str, Json]:
    return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}


def sharding(*chunk_shape: int, codecs: Json = (BYTES,), index_codecs: Json = (BYTES, CRC)) -> dict[str, Json]:
    members = {"chunk_shape": list(chunk_shape), "codecs": list(codecs), "index_codecs": list(index_codecs)}
    return {"name": "sharding_indexed", "configuration": {**members, "index_location": "end"}}


def consolidated(**documents: Json) -> dict[str, Json]:
    return group(consolidated_metadata={"kind": "inline", "must_understand": False, "metadata": documents})


def text(document: Json) -> bytes:
    return json.dumps(document).encode()


def round_trip(document: dict[str, Json]) -> dict[str, Json]:
    written = json.loads(serialize(parse_node(text(document))))
    assert isinstance(written, dict)
    return written


# members that are kept

IGNORED = {"name": "example.unknown", "configuration": {"a": [1, {"b": None}]}, "must_understand": False}

KEPT = {
    "only mandatory members": array(),
    "all members": array(attributes={"a": 1}, storage_transformers=[], dimension_names=[None, "x"]),
    "empty attributes": array(attributes={}),
    "unknown members that may be ignored": array(x={"must_understand": False, "y": [1]}, z={"must_understand": False}),
    "an ignored codec before all others": array(codecs=[IGNORED, BYTES]),
    "an ignored codec between others": array(codecs=[BYTES, GZIP, IGNORED, CRC]),
    "ignored codecs at both ends": array(codecs=[IGNORED, BYTES, IGNORED]),
    "ignored inner codecs": array(codecs=[sharding(1, 3, codecs=[IGNORED, BYTES, IGNORED])]),
    "ignored index codecs": array(codecs=[sharding(1, 3, index_codecs=[BYTES, IGNORED, CRC])]),
    "ignored storage transformers": array(storage_transformers=[IGNORED, {**IGNORED, "name": "other"}]),
    "must_understand of a known codec": array(codecs=[BYTES, {**GZIP, "must_understand": False}]),
    "must_understand of a known serializer": array(codecs=[{**BYTES, "must_understand": False}]),
    "must_understand of a known inner codec": array(
        codecs=[sharding(1, 3, codecs=[{**BYTES, "must_understand": False}])]
    ),
    "a NaN with a payload": array(data_type="float32", fill_value="0x7fc00001"),
    "a group": group(),
    "a group with attributes": group(attributes={"a": {"b": [1.5, None]}}),
    "a group with unknown members": group(x={"must_understand": False, "y": 1}),
    "consolidated documents with any content": consolidated(a={"anything": [1]}, b=array(x=1)),
}


@pytest.mark.parametrize("document", KEPT.values(), ids=KEPT.keys())
def test_a_document_is_written_back_as_it_was_read(document: dict[str, Json]) -> None:
    assert round_trip(document) == document


@pytest.mark.parametrize("member", ["attributes", "storage_transformers", "dimension_names", "consolidated_metadata"])
def test_an_absent_optional_member_stays_absent(member: str) -> None:
    assert member not in round_trip(array())
    assert member not in round_trip(group())


CANONICAL: dict[str, tuple[Json, Json]] = {
    "a bare gzip gets its level": ([BYTES, "gzip"], [BYTES, GZIP]),
    "a bare gzip object gets its level": ([BYTES, {"name": "gzip"}], [BYTES, GZIP]),
    "a bare zstd gets level and checksum": (
        [BYTES, "zstd"],
        [BYTES, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
    ),
    "a short-hand codec becomes an object": ([BYTES, "crc32c"], [BYTES, CRC]),
    "an empty configuration is left out": ([BYTES, {"name": "crc32c", "configuration": {}}], [BYTES, CRC]),
    "must_understand true is left out": ([{**BYTES, "must_understand": True}], [BYTES]),
}


@pytest.mark.parametrize(("codecs", "written"), CANONICAL.values(), ids=CANONICAL.keys())
def test_known_extensions_are_written_in_canonical_spelling(codecs: Json, written: Json) -> None:
    assert round_trip(array(codecs=codecs))["codecs"] == written


def test_parsing_does_not_change_the_document() -> None:
    document = array(attributes={"a": []}, x={"must_understand": False}, codecs=[BYTES, "gzip", IGNORED])
    before = copy.deepcopy(document)
    parse_node(document).to_json()
    assert document == before


def test_a_change_of_attributes_keeps_all_other_members() -> None:
    document = array(x={"must_understand": False, "y": 1}, codecs=[BYTES, IGNORED], dimension_names=["a", None])
    store = zarrlite.MemoryStore({"zarr.json": text(document)})
    zarrlite.open_array(store, mode="r+").attrs["new"] = [1, 2]
    assert json.loads(bytes(store.get("zarr.json") or b"")) == {**document, "attributes": {"new": [1, 2]}}


def test_a_resize_keeps_all_other_members() -> None:
    document = array(x={"must_understand": False, "y": 1}, codecs=[BYTES, IGNORED], attributes={"a": 1})
    store = zarrlite.MemoryStore({"zarr.json": text(document)})
    zarrlite.open_array(store, mode="r+").resize((8, 6))
    assert json.loads(bytes(store.get("zarr.json") or b"")) == {**document, "shape": [8, 6]}


def test_metadata_is_compared_by_its_document() -> None:
    assert parse_node(array(codecs=[BYTES, "gzip"])) == parse_node(array(codecs=[BYTES, GZIP]))
    assert parse_node(array()) != parse_node(array(fill_value=1))
    assert parse_node(group()) == GroupMetadata()
    assert parse_node(array()) != parse_node(group())


@pytest.mark.parametrize("document", KEPT.values(), ids=KEPT.keys())
def test_metadata_can_be_pickled(document: dict[str, Json]) -> None:
    metadata = parse_node(document)
    assert pickle.loads(pickle.dumps(metadata)).to_json() == metadata.to_json()


# several faults at once


def faults(document: Json, **options: Any) -> list[str]:
    content = document if isinstance(document, bytes) else text(document)
    return [f"{fault.pointer} {fault.kind}" for fault in zarrlite.validate(content, **options)]


SEVERAL: dict[str, tuple[dict[str, Json], list[str]]] = {
    "no fault": (array(), []),
    "an empty object": ({}, ["/node_type missing", "/zarr_format missing"]),
    "an array without members": (
        {"node_type": "array"},
        [
            "/zarr_format missing",
            "/shape missing",
            "/data_type missing",
            "/chunk_grid missing",
            "/chunk_key_encoding missing",
            "/codecs missing",
            "/fill_value missing",
        ],
    ),
    "one fault in every member": (
        array(
            zarr_format=2,
            shape=[-1, 6],
            data_type="int12",
            chunk_grid=grid(0, 3),
            chunk_key_encoding="v1",
            codecs=["example.unknown"],
            attributes=[],
            storage_transformers=["example.unknown"],
            dimension_names=[1, "x"],
            extra=1,
        ),
        [
            "/zarr_format value",
            "/shape/0 value",
            "/data_type unknown-extension",
            "/chunk_grid/configuration/chunk_shape/0 value",
            "/chunk_key_encoding unknown-extension",
            "/codecs/0 unknown-extension",
            "/storage_transformers/0 unknown-extension",
            "/attributes type",
            "/dimension_names/0 type",
            "/extra unknown-member",
        ],
    ),
    "several codecs": (
        array(codecs=["a.b", BYTES, {"name": "gzip", "configuration": {"level": 10}}, 5]),
        ["/codecs/0 unknown-extension", "/codecs/2/configuration/level value", "/codecs/3 type"],
    ),
    "both chains of a shard": (
        array(codecs=[sharding(0, 3, codecs=["a.b"], index_codecs=["c.d", 1])]),
        [
            "/codecs/0/configuration/chunk_shape/0 value",
            "/codecs/0/configuration/codecs/0 unknown-extension",
            "/codecs/0/configuration/index_codecs/0 unknown-extension",
            "/codecs/0/configuration/index_codecs/1 type",
        ],
    ),
    "several unknown members": (array(a=1, b=2), ["/a unknown-member", "/b unknown-member"]),
    "several fields of a struct": (
        array(
            data_type={
                "name": "struct",
                "configuration": {"fields": [{"name": ""}, {"name": "a", "data_type": "string"}]},
            }
        ),
        ["/data_type/configuration/fields/0/name value", "/data_type/configuration/fields/1/data_type value"],
    ),
    "a group": (
        group(zarr_format="3", attributes=1, consolidated_metadata=1, x=1),
        ["/zarr_format type", "/attributes type", "/consolidated_metadata type", "/x unknown-member"],
    ),
}


@pytest.mark.parametrize(("document", "expected"), SEVERAL.values(), ids=SEVERAL.keys())
def test_one_pass_finds_all_faults(document: dict[str, Json], expected: list[str]) -> None:
    assert faults(document) == expected


def test_the_first_fault_is_raised_and_carries_the_others() -> None:
    with pytest.raises(MetadataError) as error:
        parse_node(text(array(shape=1, codecs=2, x=3)))
    assert str(error.value) == "zarr.json#/shape: must be an array, not 1 (and 2 more)"
    assert [str(problem) for problem in error.value.problems[1:]] == [
        "zarr.json#/codecs: must be an array, not 2",
        'zarr.json#/x: is not a known member; unknown members must be objects with "must_understand": false',
    ]


def test_validate_takes_a_document_as_bytes_or_as_an_object() -> None:
    assert zarrlite.validate(text(array())) == zarrlite.validate(array()) == []
    assert faults(b"{") == [" json"]


def test_validate_reports_faults_of_consolidated_documents() -> None:
    bad = array(shape=[-1, 6], codecs=[])
    below = {"a": group(), "a/b~c": bad, "d": {}, "e": consolidated(f=group(x=1))}
    prefix = "/consolidated_metadata/metadata"
    assert faults(consolidated(**below)) == [
        f"{prefix}/a~1b~0c/shape/0 value",
        f"{prefix}/a~1b~0c/codecs missing",
        f"{prefix}/d/node_type missing",
        f"{prefix}/d/zarr_format missing",
        f"{prefix}/e{prefix}/f/x unknown-member",
    ]


def test_each_name_of_consolidated_paths_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr(documents, "name_fault", lambda name: checked.append(name))
    paths = ["/".join(f"g{i}" for i in range(n)) for n in range(1, 51)]
    parse_node(consolidated(**dict.fromkeys(paths, group())))
    assert checked == [f"g{i}" for i in range(50)]


def test_a_reserved_name_is_reported_for_every_path_with_it() -> None:
    below = dict.fromkeys(["a", "__b", "__b/a", "a/__b"], group())
    prefix = "/consolidated_metadata/metadata"
    assert faults(consolidated(**below)) == [f"{prefix}/{name} value" for name in ("__b", "__b~1a", "a~1__b")]


def test_validate_applies_the_lenient_mode_to_consolidated_documents() -> None:
    document = consolidated(a=array(fill_value=ABSENT))
    assert faults(document) == ["/consolidated_metadata/metadata/a/fill_value missing"]
    with pytest.warns(MetadataWarning):
        assert faults(document, strict=False) == []


# messages

MESSAGES: dict[str, dict[str, Json]] = {
    "/zarr_format: must be 3, not 2": array(zarr_format=2),
    "/zarr_format: must be the integer 3, not 3.0": array(zarr_format=3.0),
    '/node_type: must be "array" or "group", not "table"': array(node_type="table"),
    "/node_type: is required and missing": array(node_type=ABSENT),
    "/shape: is required and missing": array(shape=ABSENT),
    "/shape/1: must be an integer, not true": array(shape=[4, True]),
    "/shape/0: must be an integer from 0 to 9223372036854775807, not -1": array(shape=[-1, 6]),
    "/shape: must have at most 64 dimensions, not 65": array(shape=[1] * 65),
    "/data_type: must be an extension object or a name, not null": array(data_type=None),
    "/data_type/name: is required and missing": array(data_type={}),
    "/data_type/name: must not be empty": array(data_type={"name": ""}),
    "/data_type/must_understand: must not be false for a data type": array(
        data_type={"name": "int16", "must_understand": False}
    ),
    "/data_type/configuration/bits: is not a known member (known: none)": array(
        data_type={"name": "int16", "configuration": {"bits": 16}}
    ),
    '/data_type: must have a multiple of 8 bits, not "r12"': array(data_type="r12", fill_value=[0]),
    "/chunk_grid/configuration/chunk_shape: must have 2 items, one for each dimension, not 1": array(
        chunk_grid=grid(2)
    ),
    "/chunk_grid/configuration/chunk_shape/0: must be an integer from 1 to 9223372036854775807, not 0": array(
        chunk_grid=grid(0, 3)
    ),
    '/chunk_key_encoding: "v1" is not a known chunk key encoding (known: default, fanout, suffix, template, v2)': array(
        chunk_key_encoding="v1"
    ),
    '/chunk_key_encoding/configuration/separator: must be "/" or ".", not "-"': array(
        chunk_key_encoding={"name": "default", "configuration": {"separator": "-"}}
    ),
    "/fill_value: is required and missing (add 0)": array(fill_value=ABSENT),
    "/fill_value: is required and missing (add [0.0, 0.0])": array(fill_value=ABSENT, data_type="complex64"),
    "/fill_value: must be an integer from -32768 to 32767, not 40000": array(fill_value=40000),
    "/fill_value: must be true or false, not 2": array(data_type="bool", fill_value=2),
    '/fill_value: must be a number, "NaN", "Infinity", "-Infinity" or "0x" with 8 hex digits, not "nan"': array(
        data_type="float32", fill_value="nan"
    ),
    "/fill_value/1: must be an integer from 0 to 255, not 256": array(data_type="r16", fill_value=[0, 256]),
    "/fill_value: must have 2 bytes, not 3": array(data_type="r16", fill_value=[0, 1, 2]),
    (
        "/codecs: has no array -> bytes codec; add one, such as "
        '{"name": "bytes", "configuration": {"endian": "little"}}, '
        "before the bytes -> bytes codecs"
    ): array(codecs=[GZIP]),
    (
        "/codecs/1: transpose is not allowed in this position: the order is array -> array codecs, "
        "exactly one array -> bytes codec, bytes -> bytes codecs"
    ): array(codecs=[BYTES, {"name": "transpose", "configuration": {"order": [1, 0]}}]),
    '/codecs/0/configuration/endian: is required for int16: "little" or "big"': array(codecs=["bytes"]),
    '/codecs/0/configuration/endian: must be "little" or "big", not "<"': array(
        codecs=[{"name": "bytes", "configuration": {"endian": "<"}}]
    ),
    "/codecs/0/configuration/order: must be a permutation of 0 to 1, not [0, 0]": array(
        codecs=[{"name": "transpose", "configuration": {"order": [0, 0]}}, BYTES]
    ),
    "/codecs/0/configuration/order: must be a permutation of the 2 dimensions, not [0]": array(
        codecs=[{"name": "transpose", "configuration": {"order": [0]}}, BYTES]
    ),
    "/codecs/1/configuration/level: must be an integer from 0 to 9, not 10": array(
        codecs=[BYTES, {"name": "gzip", "configuration": {"level": 10}}]
    ),
    "/codecs/0/configuration/chunk_shape/1: must divide 3, the length of the shard, evenly; 2 does not": array(
        codecs=[sharding(1, 2)]
    ),
    "/codecs/0/configuration/chunk_shape: must have 2 dimensions, like the shard, not 1": array(codecs=[sharding(1)]),
    "/codecs/0/configuration/index_codecs: must produce an index of fixed size, without compression": array(
        codecs=[sharding(1, 3, index_codecs=[BYTES, GZIP])]
    ),
    "/codecs/0: the bytes codec cannot store string, whose elements vary in length; use vlen-utf8": array(
        data_type="string", fill_value=""
    ),
    "/attributes: must be an object, not []": array(attributes=[]),
    "/dimension_names: must have 2 items, one for each dimension, not 1": array(dimension_names=["x"]),
    "/dimension_names/1: must be a string or null, not 1": array(dimension_names=["x", 1]),
    '/a~1b: is not a known member; unknown members must be objects with "must_understand": false': array(**{"a/b": 1}),
    '/consolidated_metadata/kind: must be "inline", not "x"': group(
        consolidated_metadata={"kind": "x", "must_understand": False, "metadata": {}}
    ),
    "/consolidated_metadata/must_understand: must be false": group(
        consolidated_metadata={"kind": "inline", "must_understand": True, "metadata": {}}
    ),
    "/consolidated_metadata/metadata/..: must be the path of a node below this group: "
    "node names must not consist of periods only": consolidated(**{"..": group()}),
}


@pytest.mark.parametrize(("message", "document"), MESSAGES.items(), ids=[message[:60] for message in MESSAGES])
def test_messages_name_the_fault_its_place_and_the_remedy(message: str, document: dict[str, Json]) -> None:
    with pytest.raises(MetadataError) as error:
        parse_node(text(document))
    assert str(error.value) == "zarr.json#" + message


def test_an_unknown_extension_has_its_own_error_class() -> None:
    with pytest.raises(UnknownExtensionError) as error:
        parse_node(text(array(codecs=[BYTES, "example.unknown"])))
    assert error.value.message.startswith('"example.unknown" is not a known codec (known: ')


def test_errors_name_the_document_by_its_key() -> None:
    store = zarrlite.MemoryStore({"zarr.json": text(group()), "a/b/zarr.json": text(array(shape=1))})
    with pytest.raises(MetadataError, match=r"^a/b/zarr\.json#/shape: must be an array, not 1$") as error:
        zarrlite.open_group(store, mode="r")["a/b"]
    assert error.value.document == "a/b/zarr.json"


def test_a_contradiction_between_members_names_the_document() -> None:
    store = zarrlite.MemoryStore({"a/zarr.json": text(array(codecs=[sharding(1, 2)]))})
    with pytest.raises(MetadataError, match=r"^a/zarr\.json#/codecs/0/configuration/chunk_shape/1: "):
        zarrlite.open_array(store, mode="r", path="a")


@pytest.mark.parametrize(
    "document",
    [array(shape=1), array(codecs=["example.unknown"]), array(shape=1, codecs=2), b"{", b'{"a": 1, "a": 2}'],
    ids=["one fault", "unknown extension", "two faults", "not JSON", "duplicate name"],
)
def test_errors_can_be_pickled(document: Json) -> None:
    with pytest.raises(MetadataError) as caught:
        parse_node(document if isinstance(document, bytes) else text(document), document="x/zarr.json")
    error = caught.value
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error)
    assert str(copied) == str(error)
    assert (copied.pointer, copied.kind, copied.document) == (error.pointer, error.kind, "x/zarr.json")
    assert [str(problem) for problem in copied.problems] == [str(problem) for problem in error.problems]


def test_metadata_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="must be an array"):
        parse_node(text(array(shape=1)))


# lenient mode


def lenient(document: dict[str, Json]) -> tuple[dict[str, Json], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metadata = parse_node(text(document), strict=False)
    assert all(isinstance(warning.message, MetadataWarning) for warning in caught)
    return metadata.to_json(), [str(warning.message) for warning in caught]


def test_the_lenient_mode_repairs_a_missing_fill_value() -> None:
    assert lenient(array(fill_value=ABSENT)) == (
        array(),
        ["zarr.json#/fill_value: is missing; the zero of the data type is used"],
    )


def test_the_lenient_mode_repairs_a_missing_serializer() -> None:
    warning = "zarr.json#/codecs: has no array -> bytes codec; bytes (little endian) is inserted"
    assert lenient(array(codecs=[])) == (array(), [warning])
    assert lenient(array(codecs=[GZIP])) == (array(codecs=[BYTES, GZIP]), [warning])


def test_the_lenient_mode_reports_each_repair() -> None:
    document, messages = lenient(array(fill_value=ABSENT, codecs=[sharding(1, 3, codecs=[])]))
    assert document == array(codecs=[sharding(1, 3)])
    assert [message.split(": ")[0] for message in messages] == [
        "zarr.json#/codecs/0/configuration/codecs",
        "zarr.json#/fill_value",
    ]


def test_the_lenient_mode_does_not_warn_about_valid_documents() -> None:
    assert lenient(array()) == (array(), [])


@pytest.mark.parametrize("document", [array(shape=ABSENT), array(x=1), array(codecs=[GZIP, BYTES]), array(codecs=None)])
def test_the_lenient_mode_repairs_nothing_else(document: dict[str, Json]) -> None:
    with pytest.raises(MetadataError):
        parse_node(text(document), strict=False)


def test_an_array_opens_in_lenient_mode() -> None:
    store = zarrlite.MemoryStore({"zarr.json": text(array(fill_value=ABSENT))})
    with pytest.raises(MetadataError):
        zarrlite.open_array(store, mode="r")
    with pytest.warns(MetadataWarning, match="fill_value") as caught:
        opened = zarrlite.open_array(store, mode="r", strict=False)
    assert {warning.message.pointer for warning in caught} == {"/fill_value"}
    assert opened[0, 0] == 0


# large numbers

HUGE: dict[str, dict[str, Json]] = {
    "lengths of 2^62": array(shape=[2**62, 2**62]),
    "64 lengths of 2^62": array(shape=[2**62] * 64, chunk_grid=grid(*[2**62] * 64)),
    "chunks of 2^40 by 2^40": array(chunk_grid=grid(2**40, 2**40)),
    "shards of 2^40 inner chunks": array(shape=[2**40, 1], chunk_grid=grid(2**40, 1), codecs=[sharding(1, 1)]),
    "shards of 2^80 inner chunks": array(chunk_grid=grid(2**40, 2**40), codecs=[sharding(1, 1)]),
    "nested shards": array(chunk_grid=grid(2**40, 2**40), codecs=[sharding(2**20, 2**20, codecs=[sharding(1, 1)])]),
    "packed bits": array(chunk_grid=grid(2**40, 2**40), codecs=["packbits"]),
    "transposed chunks": array(
        chunk_grid=grid(2**40, 2**40), codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}, BYTES]
    ),
    "strings": array(chunk_grid=grid(2**40, 2**40), data_type="string", fill_value="", codecs=["vlen-utf8", "zstd"]),
    "raw bits of 128 MiB with a short fill value": array(data_type="r1073741824", fill_value=[0]),
    "raw bits of 128 MiB with a fill value of another type": array(data_type="r1073741824", fill_value=0),
    "raw bits of 128 MiB without a fill value": array(data_type="r1073741824", fill_value=ABSENT),
    "raw bytes of 2 GiB": array(data_type={"name": "raw_bytes", "configuration": {"length_bytes": 2**31 - 1}}),
    "text of 2 GiB": array(
        data_type={"name": "fixed_length_utf32", "configuration": {"length_bytes": 2**31 - 4}}, fill_value=""
    ),
    "bytes of 2 GiB": array(
        data_type={"name": "null_terminated_bytes", "configuration": {"length_bytes": 2**31 - 1}}, fill_value=""
    ),
    "a struct with text of 2 GiB": array(
        data_type={
            "name": "struct",
            "configuration": {
                "fields": [
                    {"name": "a", "data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 2**30}}}
                ]
            },
        },
        fill_value={"a": ""},
    ),
    "a large typesize": array(
        codecs=[
            BYTES,
            {
                "name": "blosc",
                "configuration": {
                    "cname": "lz4",
                    "clevel": 1,
                    "shuffle": "shuffle",
                    "typesize": 2**62,
                    "blocksize": 2**30,
                },
            },
        ]
    ),
}


@pytest.mark.parametrize("document", HUGE.values(), ids=HUGE.keys())
def test_no_number_in_a_document_determines_the_size_of_an_allocation(document: dict[str, Json]) -> None:
    content = text(document)
    zarrlite.extensions.registry.codecs.classes()  # imported now, so that imports are not measured
    zarrlite.extensions.registry.data_types.classes()
    tracemalloc.start()
    try:
        problems = zarrlite.validate(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20
    assert len(problems) <= 2


def test_an_array_of_huge_chunks_opens_and_returns_its_fill_value() -> None:
    document = array(shape=[2**62, 2**62], chunk_grid=grid(2**40, 2**40), codecs=[sharding(1, 1)], fill_value=7)
    opened = zarrlite.open_array(zarrlite.MemoryStore({"zarr.json": text(document)}), mode="r")
    assert opened[2**61, 2**61 : 2**61 + 3].tolist() == [7, 7, 7]
    assert opened.size == 2**124


def test_reading_all_of_a_huge_array_is_refused_before_memory_is_allocated() -> None:
    opened = zarrlite.open_array(zarrlite.MemoryStore({"zarr.json": text(array(shape=[2**62, 6]))}), mode="r")
    with pytest.raises(zarrlite.SelectionError, match="bytes of memory"):
        opened[...]


def test_parsed_metadata_has_the_members_of_the_specification() -> None:
    metadata = parse_node(text(array(attributes={"a": 1}, dimension_names=["y", "x"])))
    assert isinstance(metadata, ArrayMetadata)
    assert metadata.shape == (4, 6)
    assert metadata.data_type.name == "int16"
    assert metadata.chunk_grid.chunk_shape((0, 0)) == (2, 3)
    assert metadata.chunk_key_encoding.encode((1, 2)) == "c/1/2"
    assert metadata.attributes == {"a": 1}
    assert metadata.dimension_names == ("y", "x")
    assert metadata.node_type == "array"


def test_metadata_is_immutable() -> None:
    array = zarrlite.create_array(shape=(2,), dtype="u1", attributes={"a": 1}).metadata
    group = GroupMetadata({"a": 1})
    for metadata in (array, group):
        with pytest.raises(AttributeError, match="metadata is immutable: 'attributes' cannot be set"):
            metadata.attributes = {}
        with pytest.raises(AttributeError, match="metadata is immutable: 'other' cannot be set"):
            metadata.other = 1  # type: ignore[union-attr]
        with pytest.raises(AttributeError, match="metadata is immutable: 'extra' cannot be removed"):
            del metadata.extra
        assert metadata.with_attributes({"a": 1}) == metadata != metadata.with_attributes({})
    assert array != group
    assert array.replace(fill_value=7).fill_value == 7
    assert repr(group) == "GroupMetadata(attributes={'a': 1}, consolidated=None, extra={})"
    assert repr(array).startswith("ArrayMetadata(shape=(2,), data_type=")
    assert "_pipelines" not in repr(array)
    with pytest.raises(TypeError, match="array metadata has no member shpae"):
        array.replace(shpae=(3,))


def test_documents_are_validated_as_text_bytes_or_json() -> None:
    content = json.dumps(array())
    for document in (content, content.encode(), bytearray(content.encode()), memoryview(content.encode()), array()):
        assert zarrlite.validate(document) == []
    (fault,) = zarrlite.validate(content.replace("regular", "\ud800"))
    assert fault.kind == "json"
    message = "a document must be text, bytes or a mapping, not 5; read the file first"
    with pytest.raises(zarrlite.ArgumentError, match=f"^{message}$"):
        zarrlite.validate(5)

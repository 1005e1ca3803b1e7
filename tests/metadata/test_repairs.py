"""Lenient mode: repairs of documents, their warnings, and runtime options for repaired documents."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

import zarrlite
from zarrlite.errors import ArgumentError, MetadataError, MetadataWarning
from zarrlite.metadata.documents import parse_node

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [0]}}
PAD = {"name": "pad", "configuration": {"location": "start", "nbytes": 4}}


def array(**members: Any) -> dict[str, Any]:
    """Return a document; members that are `...` are absent."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [LITTLE],
        **members,
    }
    return {name: value for name, value in document.items() if value is not ...}


def repaired(document: dict[str, Any], **keywords: Any) -> tuple[Any, list[str]]:
    """Parse a document leniently. Returns the metadata and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metadata = parse_node(json.dumps(document).encode(), strict=False, **keywords)
    assert all(isinstance(warning.message, MetadataWarning) for warning in caught)
    return metadata, [str(warning.message) for warning in caught]


MESSAGES: dict[str, dict[str, Any]] = {
    "/codecs: is missing; the default is used: bytes (little endian)": array(codecs=...),
    "/codecs: has no array -> bytes codec; bytes (little endian) is inserted": array(codecs=[]),
    "/fill_value: is missing; the zero of the data type is used": array(fill_value=...),
    "/fill_value: is null; the zero of the data type is used": array(fill_value=None),
    "/codecs/0/configuration/endian: is missing; little endian is assumed": array(codecs=["bytes"]),
    "/chunk_grid/configuration/chunk_shape/0: is 0, but the axis has no elements; 1 is used": array(
        shape=[0], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0]}}
    ),
    "/chunk_grid/configuration/chunk_shape/0: is true, but the axis has no elements; 1 is used": array(
        shape=[0], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [True]}}
    ),
    '/codecs/0/configuration/order: is "F", the old name of a permutation; [1, 0] is used': array(
        shape=[4, 4],
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        codecs=[{"name": "transpose", "configuration": {"order": "F"}}, LITTLE],
    ),
    '/codecs/0/configuration/order: is "C", the old name of a permutation; [0] is used': array(
        codecs=[{"name": "transpose", "configuration": {"order": "C"}}, LITTLE]
    ),
    "/codecs/0/configuration/index_codecs: is missing; the default is used: bytes (little endian) and crc32c": array(
        codecs=[{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": [LITTLE]}}]
    ),
}


@pytest.mark.parametrize(("message", "document"), MESSAGES.items(), ids=[text[:50] for text in MESSAGES])
def test_each_repair_has_a_warning_and_a_strict_result(message: str, document: dict[str, Any]) -> None:
    metadata, found = repaired(document)
    assert found == [f"zarr.json#{message}"]
    assert zarrlite.validate(metadata.to_json()) == []
    assert len(zarrlite.validate(document)) == 1
    assert zarrlite.validate(metadata.to_json(), strict=False) == []


@pytest.mark.parametrize(
    ("codecs", "names"),
    [
        (["gzip"], ["bytes", "gzip"]),
        ([TRANSPOSE], ["transpose", "bytes"]),
        ([TRANSPOSE, "gzip"], ["transpose", "bytes", "gzip"]),
        ([{"name": "x", "must_understand": False}, "gzip"], ["bytes", "x", "gzip"]),
    ],
    ids=str,
)
def test_a_serializer_is_inserted_after_the_filters(codecs: list[Any], names: list[str]) -> None:
    metadata, found = repaired(array(codecs=codecs))
    assert [codec.name for codec in metadata.codecs] == names
    assert len(found) == 1


def test_a_fault_that_cannot_be_repaired_is_raised_without_warnings() -> None:
    with pytest.raises(MetadataError) as caught:  # if there were a warning, MetadataWarning would be raised instead
        parse_node(array(fill_value=None, shape=[-1]), strict=False)
    assert caught.value.pointer == "/shape/0"
    assert len(caught.value.problems) == 1


def test_the_document_of_the_caller_is_not_changed() -> None:
    document = array(codecs=["bytes"], fill_value=None)
    before = json.dumps(document)
    repaired(document)
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    ("codecs", "pointer"),
    [([PAD], "/codecs/0"), ([GZIP, PAD], "/codecs/1"), ([{"name": "bytes"}, PAD], "/codecs/1")],
    ids=str,
)
def test_options_address_the_codecs_of_the_stored_document(codecs: list[Any], pointer: str) -> None:
    metadata, _ = repaired(array(codecs=codecs), options={pointer: {"keep_padding": True}})
    assert [codec.keep_padding for codec in metadata.codecs if codec.name == "pad"] == [True]


def test_options_without_an_extension_stay_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ArgumentError, match="has no extension at '/codecs/2'"):
            parse_node(array(codecs=[GZIP]), strict=False, options={"/codecs/1": {}})


def test_faults_at_many_levels_are_all_repaired() -> None:
    inner: Any = [{"name": "bytes"}]
    for _ in range(20):
        configuration = {"chunk_shape": [2], "codecs": inner, "index_codecs": ["bytes"]}
        inner = [{"name": "sharding_indexed", "configuration": configuration}]
    metadata, found = repaired(array(codecs=inner, fill_value=None))
    assert len(found) == 22
    assert zarrlite.validate(metadata.to_json()) == []

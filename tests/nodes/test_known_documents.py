"""Parsed documents are cached, and readers get the same results with and without the cache."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite import MemoryStore
from zarrlite.nodes import node

ARRAY = json.loads(
    bytes(zarrlite.create_array(MemoryStore(), shape=4, dtype="u1", attributes={}).store.get("zarr.json") or b"")
)
GROUP = {"zarr_format": 3, "node_type": "group"}


def group(nested: Any, own: Any = None, copies: bool = False) -> str:
    """Return the document of a group whose own attributes, if any, come after those of an object nested in it."""
    inside: Any = {"must_understand": False, "of": {"attributes": nested}}
    name = "extra"
    if copies:
        name = "consolidated_metadata"
        inside = {"kind": "inline", "must_understand": False, "metadata": {"x": {**GROUP, "attributes": nested}}}
    return json.dumps({**GROUP, name: inside, **({} if own is None else {"attributes": own})})


def with_ignored_codec(nested: Any, own: Any) -> str:
    """Return the document of an array; its last codec may be ignored, and has attributes in its configuration."""
    codec = {"name": "x", "must_understand": False, "configuration": {"attributes": nested}}
    return json.dumps({**ARRAY, "codecs": [*ARRAY["codecs"], codec], "attributes": own})


def escaped(attributes: Any) -> str:
    """Return the document of an array; the name of its member `attributes` contains an escape sequence."""
    return json.dumps({**ARRAY, "attributes": attributes}).replace('"attributes"', r'"\u0061ttributes"')


def opened(text: str) -> Any:
    """Return everything that a reader gets from a document."""
    root = zarrlite.open(MemoryStore({"zarr.json": text.encode()}), mode="r")
    members = (
        [(name, dict(member.attrs)) for name, member in root.members()] if isinstance(root, zarrlite.Group) else []
    )
    return root.metadata.to_json(), members


attributes = st.sampled_from([{}, {"of": "x"}, {"attributes": {}}, {"a": '"attributes": {}'}])
documents = st.one_of(
    st.builds(group, attributes, st.none() | attributes, st.booleans()),
    st.builds(escaped, attributes),
    st.builds(with_ignored_codec, attributes, attributes),
    st.builds(lambda own: json.dumps({**ARRAY, "attributes": own}), attributes),
    st.builds(lambda own: json.dumps({"attributes": own, **GROUP}), attributes),
    st.builds(lambda text: json.dumps({**GROUP, "attributes": {"a": text}}), st.text(max_size=3)),
)


@given(st.lists(documents, min_size=1, max_size=6))
def test_a_document_is_read_the_same_with_and_without_the_cache(texts: list[str]) -> None:
    expected = []
    for text in texts:
        node._known_documents.clear()
        expected.append(opened(text))
    node._known_documents.clear()
    for text, result in itertools.chain(zip(texts, expected, strict=True), zip(texts, expected, strict=True)):
        assert opened(text) == result


@pytest.mark.parametrize("make", [group, partial(group, copies=True), with_ignored_codec])
def test_nested_members_named_attributes_are_not_those_of_the_node(make: Callable[[Any, Any], str]) -> None:
    opened(make({}, {}))
    document, _ = opened(make({"of": "x"}, {}))
    assert document["attributes"] == {}


def test_attributes_whose_name_has_escapes_are_read_again() -> None:
    for _ in range(2):
        assert opened(escaped({"a": 1}))[0]["attributes"] == {"a": 1}


def test_members_of_a_cached_document_are_not_shared() -> None:
    text = json.dumps({**GROUP, "attributes": {}, **json.loads(group({"list": []}, copies=True))})
    first = zarrlite.open_group(MemoryStore({"zarr.json": text.encode()}), mode="r")
    first["x"].attrs["list"].append(1)  # type: ignore[union-attr]
    assert opened(text)[1] == [("x", {"list": []})]

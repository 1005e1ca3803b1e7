"""Strict JSON, typed getters, and JSON pointers of faults."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from zarrlite.errors import ArgumentError, MetadataError, MetadataWarning
from zarrlite.extensions.config import (
    MAX_DOCUMENT_DEPTH,
    MAX_LENGTH,
    Config,
    Context,
    Faults,
    decode_base64,
    dump_json,
    escape,
    load_json,
    show,
)


def config(**members: Any) -> Config:
    return Config(members, "/at", Context(document="doc"))


Get = Callable[[Config], Any]

VALUES: list[tuple[str, dict[str, Any], Get, Any]] = [
    ("raw", {"k": None}, lambda c: c.raw("k"), None),
    ("raw default", {}, lambda c: c.raw("k", 5), 5),
    ("integer", {"k": 5}, lambda c: c.integer("k"), 5),
    ("integer of zero", {"k": 0}, lambda c: c.integer("k"), 0),
    ("largest integer", {"k": MAX_LENGTH}, lambda c: c.integer("k"), 2**63 - 1),
    ("integer at both bounds", {"k": -3}, lambda c: c.integer("k", -3, -3), -3),
    ("integer default", {}, lambda c: c.integer("k", default=7), 7),
    ("integer default out of bounds", {}, lambda c: c.integer("k", 1, 2, default=None), None),
    ("boolean", {"k": False}, lambda c: c.boolean("k"), False),
    ("boolean default", {}, lambda c: c.boolean("k", default=True), True),
    ("string", {"k": ""}, lambda c: c.string("k"), ""),
    ("string with choices", {"k": "b"}, lambda c: c.string("k", ("a", "b")), "b"),
    ("string default", {}, lambda c: c.string("k", ("a",), default=None), None),
    ("list", {"k": [1, "a"]}, lambda c: c.list("k"), [1, "a"]),
    ("list default", {}, lambda c: c.list("k", default=None), None),
    ("integers", {"k": [0, 3]}, lambda c: c.integers("k"), (0, 3)),
    ("empty array of integers", {"k": []}, lambda c: c.integers("k"), ()),
    ("object", {"k": {"a": 1}}, lambda c: c.object("k").data, {"a": 1}),
    ("object default", {}, lambda c: c.object("k", default={}).data, {}),
    ("base64", {"k": "AAEC"}, lambda c: c.base64("k"), b"\0\1\2"),
    ("base64 of an empty string", {"k": ""}, lambda c: c.base64("k"), b""),
    ("base64 default", {}, lambda c: c.base64("k", default=None), None),
]


@pytest.mark.parametrize(("members", "get", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_getters_return_the_member_or_the_default(members: dict[str, Any], get: Get, value: Any) -> None:
    result = get(config(**members))
    assert result == value
    assert type(result) is type(value)


REFUSED: list[tuple[dict[str, Any], Get, str, str]] = [
    ({}, lambda c: c.raw("k"), "missing", "/at/k: is required and missing"),
    ({}, lambda c: c.integer("k"), "missing", "/at/k: is required and missing"),
    ({}, lambda c: c.integers("k"), "missing", "/at/k: is required and missing"),
    ({}, lambda c: c.base64("k"), "missing", "/at/k: is required and missing"),
    ({"k": True}, lambda c: c.integer("k"), "type", "/at/k: must be an integer, not true"),
    ({"k": 4.0}, lambda c: c.integer("k"), "type", "/at/k: must be an integer, not 4.0"),
    ({"k": "4"}, lambda c: c.integer("k"), "type", '/at/k: must be an integer, not "4"'),
    ({"k": None}, lambda c: c.integer("k", default=None), "type", "/at/k: must be an integer, not null"),
    ({"k": -1}, lambda c: c.integer("k", 0, 9), "value", "/at/k: must be an integer from 0 to 9, not -1"),
    ({"k": 10}, lambda c: c.integer("k", 0, 9), "value", "/at/k: must be an integer from 0 to 9, not 10"),
    ({"k": 0}, lambda c: c.boolean("k"), "type", "/at/k: must be true or false, not 0"),
    ({"k": "true"}, lambda c: c.boolean("k"), "type", '/at/k: must be true or false, not "true"'),
    ({"k": 1}, lambda c: c.string("k"), "type", "/at/k: must be a string, not 1"),
    ({"k": "c"}, lambda c: c.string("k", ("a", "b")), "value", '/at/k: must be "a" or "b", not "c"'),
    ({"k": {}}, lambda c: c.list("k"), "type", "/at/k: must be an array, not {}"),
    ({"k": None}, lambda c: c.list("k", default=None), "type", "/at/k: must be an array, not null"),
    ({"k": [0, True]}, lambda c: c.integers("k"), "type", "/at/k/1: must be an integer, not true"),
    ({"k": [0, 5]}, lambda c: c.integers("k", 1, 9), "value", "/at/k/0: must be an integer from 1 to 9, not 0"),
    ({"k": []}, lambda c: c.object("k"), "type", "/at/k: must be an object, not []"),
    ({"k": {"a": 1}}, lambda c: c.object("k").string("a"), "type", "/at/k/a: must be a string, not 1"),
    ({"k": 1}, lambda c: c.base64("k"), "type", "/at/k: must be a string, not 1"),
    ({"k": "A"}, lambda c: c.base64("k"), "value", '/at/k: must be base64 (RFC 4648 section 4), not "A"'),
    ({"a/b~": 1}, lambda c: c.string("a/b~"), "type", "/at/a~1b~0: must be a string, not 1"),
    ({"": 1}, lambda c: c.string(""), "type", "/at/: must be a string, not 1"),
]


@pytest.mark.parametrize(("members", "get", "kind", "message"), REFUSED, ids=[row[3][:60] for row in REFUSED])
def test_invalid_members_are_refused_with_a_pointer(members: dict[str, Any], get: Get, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as error:
        get(config(**members))
    assert str(error.value) == f"doc#{message}"
    assert error.value.kind == kind
    assert str(error.value).startswith(f"doc#{error.value.pointer}: ")


@pytest.mark.parametrize("value", [10**4400, -(10**4400), 10**4000], ids=["4401 digits", "negative", "4001 digits"])
def test_an_integer_with_thousands_of_digits_is_refused_with_a_short_message(value: int) -> None:
    with pytest.raises(MetadataError) as error:
        config(k=value).integer("k")
    assert error.value.pointer == "/at/k"
    assert len(str(error.value)) < 200


def test_finish_refuses_the_first_member_that_was_not_requested() -> None:
    c = config(a=1, z=2, b=3)
    c.integer("a")
    c.string("x", default="")
    with pytest.raises(MetadataError, match="is not a known member") as error:
        c.finish()
    assert str(error.value) == "doc#/at/z: is not a known member (known: a, x)"
    assert error.value.kind == "unknown-member"


def test_finish_reports_that_no_members_are_known() -> None:
    with pytest.raises(MetadataError) as error:
        config(a=1).finish()
    assert str(error.value) == "doc#/at/a: is not a known member (known: none)"


def test_finish_accepts_members_that_were_all_requested() -> None:
    c = config(a=1)
    c.raw("a")
    c.finish()
    assert "a" in c
    assert "b" not in c


def test_a_fault_of_the_object_has_the_pointer_of_the_object() -> None:
    assert str(config().error("is wrong")) == "doc#/at: is wrong"


# JSON

REFUSED_TEXTS: list[tuple[bytes, str, str]] = [
    (b"", "json", "zarr.json#: is not JSON: Expecting value at line 1, column 1"),
    (b"{", "json", "zarr.json#: is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
    (b'{"a": 1}\n]', "json", "zarr.json#: is not JSON: Extra data at line 2, column 1"),
    (b"\xef\xbb\xbf{}", "json", "zarr.json#: must not begin with a byte order mark"),
    (b'{"a": "\xff"}', "json", "zarr.json#: is not UTF-8: invalid start byte at byte 7"),
    (b'{"a": NaN}', "json", 'zarr.json#/a: NaN is not JSON; write it as text: "NaN"'),
    (
        b'{"a": -Infinity}',
        "json",
        'zarr.json#/a: -Infinity is not JSON; write it as text: "-Infinity"',
    ),
    (b'{"a": 1e999}', "json", "zarr.json#: the number 1e999 exceeds the range of a double"),
    (b'{"a": -1e999}', "json", "zarr.json#: the number -1e999 exceeds the range of a double"),
    (b"[]", "type", "zarr.json#: must be an object, not []"),
    (b"null", "type", "zarr.json#: must be an object, not null"),
    (b'{"a": 1, "a": 1}', "json", 'zarr.json#/a: member names must be unique, but "a" occurs twice'),
    (b'[{"a": 1, "a": 1}]', "type", 'zarr.json#: must be an object, not [{"a": 1}]'),
    (
        b'{"x": [{"y/": {"~": 1, "~": 2}}]}',
        "json",
        'zarr.json#/x/0/y~1/~0: member names must be unique, but "~" occurs twice',
    ),
    (b'{"a": ' + b"[" * 128 + b"]" * 128 + b"}", "limit", "zarr.json#: must be nested at most 128 levels deep"),
    (b'{"a": ' * 100_000, "limit", "zarr.json#: must be nested at most 128 levels deep"),
]


@pytest.mark.parametrize(("text", "kind", "message"), REFUSED_TEXTS, ids=[row[2][:70] for row in REFUSED_TEXTS])
def test_invalid_json_is_refused_with_the_reason(text: bytes, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as error:
        load_json(text)
    assert (str(error.value), error.value.kind) == (message, kind)


def test_an_integer_with_too_many_digits_exceeds_a_limit() -> None:
    with pytest.raises(MetadataError) as error:
        load_json(b'{"a": ' + b"1" * 5000 + b"}")
    assert error.value.kind == "limit"


def test_a_document_with_too_many_bytes_is_refused() -> None:
    with pytest.raises(MetadataError) as error:
        load_json(bytes(64 * 2**20 + 1))
    assert error.value.message == "must have at most 67108864 bytes, not 67108865"
    assert error.value.kind == "limit"


def test_messages_name_the_document() -> None:
    with pytest.raises(MetadataError, match=r"^a/zarr\.json#: is not JSON"):
        load_json(b"x", "a/zarr.json")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(kind: Callable[[bytes], Any]) -> None:
    assert load_json(kind(b' {"a": [1, 1.5, "\\u00e4", true, null]} \n')) == {"a": [1, 1.5, "ä", True, None]}


def test_a_document_of_the_maximum_depth_is_read() -> None:
    depth = MAX_DOCUMENT_DEPTH - 1
    assert load_json(b'{"a": ' + b"[" * depth + b"]" * depth + b"}")["a"]


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    assert load_json(b'{"a": "' + b"[" * 1000 + b'"}') == {"a": "[" * 1000}


def test_many_sibling_arrays_do_not_count_as_depth() -> None:
    assert len(load_json(b'{"a": [' + b"[]," * 1000 + b"[]]}")["a"]) == 1001


def test_equal_names_in_different_objects_are_accepted() -> None:
    assert load_json(b'{"a": {"a": {"a": 1}}, "b": {"a": 1}}') == {"a": {"a": {"a": 1}}, "b": {"a": 1}}


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": float("nan")}, {"a": float("inf")}, {"a": b"x"}])
def test_values_that_are_not_json_are_not_written(value: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=r"^a value cannot be written as JSON: "):
        dump_json(value)


def test_a_document_that_contains_itself_is_not_written() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(ArgumentError):
        dump_json(loop)


def test_a_written_document_is_read_back() -> None:
    document = {"a": [1, 2.5, "ä\ud800/~", None, True, {"": {}}], "b": 10**30}
    assert load_json(dump_json(document)) == document


# pointers, messages, base64, faults, options


@pytest.mark.parametrize(
    ("key", "token"),
    [("", ""), ("a", "a"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("~1", "~01"), ("/~", "~1~0"), ("0", "0")],
)
def test_reference_tokens_are_escaped(key: str, token: str) -> None:
    assert escape(key) == token
    assert token.replace("~1", "/").replace("~0", "~") == key


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("a", '"a"'),
        ([1, True], "[1, true]"),
        ("x" * 58, '"' + "x" * 58 + '"'),
        ("x" * 59, '"' + "x" * 56 + "..."),
        ({1}, "a value of type set"),
        pytest.param(10**5000, "a value of type int", id="5001 digits"),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_values_are_shown_as_json_of_at_most_60_characters(value: Any, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(("text", "data"), [("", b""), ("AA==", b"\0"), ("AAE=", b"\0\1"), ("+/+/", b"\xfb\xff\xbf")])
def test_base64_is_decoded(text: str, data: bytes) -> None:
    assert decode_base64(text) == data


@pytest.mark.parametrize(
    "text", ["A", "AA", "AA=", "AB==", "AAF=", "-_-_", "AA ==", "AA==\n", " AA==", "AA===", "ÄÄ==", "AA==AA=="]
)
def test_base64_is_strict(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 4648 section 4"):
        decode_base64(text)


def test_collected_faults_are_raised_together() -> None:
    faults = Faults()
    for key in ("a", "b"):
        with faults.collecting():
            config().raw(key)
    with faults.collecting():
        pass
    with pytest.raises(MetadataError) as error:
        faults.raise_any()
    assert [fault.pointer for fault in error.value.problems] == ["/at/a", "/at/b"]
    assert str(error.value) == "doc#/at/a: is required and missing (and 1 more)"
    assert str(error.value.under("/up", "other")) == "other#/up/at/a: is required and missing (and 1 more)"
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_raise_any_returns_if_there_are_no_faults() -> None:
    Faults().raise_any()


def test_unused_options_are_refused() -> None:
    context = Context(options={"/codecs/0": {"a": 1}, "/codecs/9": {}})
    assert context.runtime_options("/codecs/0") == {"a": 1}
    assert context.runtime_options("/codecs/0") == {}
    with pytest.raises(ArgumentError) as error:
        context.refuse_unused_options()
    assert str(error.value) == "options: zarr.json has no extension at '/codecs/9'"


def test_a_warning_has_a_pointer() -> None:
    warning = MetadataWarning("is odd", "/a/b")
    assert warning.pointer == "/a/b"
    assert str(warning) == "zarr.json#/a/b: is odd"


def test_a_tolerated_fault_names_its_document() -> None:
    context = Context(document="x/zarr.json")
    context.tolerate("is old", "/a", "value")
    assert [(str(fault), fault.kind) for fault in context.tolerated] == [("x/zarr.json#/a: is old", "value")]

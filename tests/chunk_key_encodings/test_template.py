"""The `template` chunk key encoding: the examples in its proposal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite.chunk_key_encodings import SuffixKeys, TemplateKeys
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.storage_transformers import ConcatParts
from zarrlite.testing import KeyEncodingLaws


def parse(**configuration: Any) -> TemplateKeys:
    encoding = {"name": "template", "configuration": configuration}
    return registry.chunk_key_encodings.parse(encoding, "/chunk_key_encoding", Context())


@pytest.mark.parametrize(
    ("template", "separator", "coords", "key"),
    [
        # examples.tsv in the proposal
        ("c/{*}", "/", (11, 22, 33), "c/11/22/33"),
        ("{*}", ".", (11, 22, 33), "11.22.33"),
        ("prefix/{*}", "/", (11, 22, 33), "prefix/11/22/33"),
        ("{*}.suffix", "_", (11, 22, 33), "11_22_33.suffix"),
        ("{2}/{0}/{1}", ".", (11, 22, 33), "33/11/22"),
        ("{-1}/{*}", "/", (11, 22, 33), "33/11/22"),
        ("{*:04}", "/", (11, 22, 33), "0011/0022/0033"),
        ("{*:02}", "/", (111, 2, 33), "111/02/33"),
        # the examples in the text of the proposal
        ("images/{-1}/{*:04}.jpeg", "_", (1, 2, 3), "images/3/0001_0002.jpeg"),
        ("{2}-{0}_{1}", None, (1, 2, 3), "3-1_2"),
        # further examples
        ("{0}", None, (5,), "5"),
        ("{00}", None, (5,), "5"),
        ("{0:00}", None, (5,), "5"),
        ("1{0}2_3{1}4", None, (5, 6), "152_364"),
        ("%d{0}%", None, (5,), "%d5%"),
        ("{*:03}%", "%s", (5, 6), "005%s006%"),
        ("x.{0}.y", None, (5,), "x.5.y"),
    ],
)
def test_keys_are_encoded_and_decoded(template: str, separator: str | None, coords: Any, key: str) -> None:
    encoding = parse(template=template, **({} if separator is None else {"separator": separator}))
    assert encoding.encode(coords) == key
    assert encoding.decode(key, len(coords)) == coords
    assert encoding.decode(key, len(coords) + 4) is None
    assert encoding.decode(key + "x", len(coords)) is None


class TestRest(KeyEncodingLaws):
    encoding = TemplateKeys("c/{*}", "/")
    ndims = (1, 2, 3)


class TestPadded(KeyEncodingLaws):
    encoding = TemplateKeys("z{-1:03}/{*:02}.png", "_")
    ndims = (2, 3)


class TestNamed(KeyEncodingLaws):
    encoding = TemplateKeys("0{1}1-2{0:01}3", None)
    ndims = (2,)


class TestSuffixed(KeyEncodingLaws):
    encoding = SuffixKeys("0", TemplateKeys("{*}", "."))
    ndims = (1, 2, 3)


@pytest.mark.parametrize(
    "key",
    ["z3/01_02.png", "z003/1_02.png", "z003/001_02.png", "z0003/01_02.png", "z003/01_02_03.png", "z٣00/1_2.png"],
)
def test_a_coordinate_of_another_width_is_not_a_key(key: str) -> None:
    encoding = TemplateKeys("z{-1:03}/{*:02}.png", "_")
    assert encoding.decode("z003/01_02.png", 3) == (1, 2, 3)
    assert encoding.decode(key, 3) is None


TEXTS = st.text("0a.-_", max_size=3)


@given(
    st.lists(st.tuples(TEXTS, st.integers(0, 3)), min_size=2, max_size=2),
    TEXTS,
    st.tuples(st.integers(0, 2000), st.integers(0, 2000)),
    st.tuples(st.integers(0, 2000), st.integers(0, 2000)),
)
def test_every_accepted_template_is_one_to_one(pieces: Any, end: str, one: Any, other: Any) -> None:
    template = "".join(f"{text}{{{dim}:0{width}}}" for dim, (text, width) in enumerate(pieces)) + end
    try:
        encoding = parse(template=template)
    except MetadataError:
        return
    assert encoding.decode(encoding.encode(one), 2) == one
    assert (encoding.encode(one) == encoding.encode(other)) == (one == other)


SLASHES = "must not start or end with '/' and must not contain '//'"
CHARACTERS = "must not contain backslashes or control characters"
SUBSTRINGS = "must not contain '..' or 'zarr.json'"
BRACES = "must not have braces except in expressions such as {0}, {-1}, {*} and {0:04}"
BETWEEN = "must have text other than digits between two expressions; otherwise two chunks could share a key"

UNSAFE = [
    ("", "must contain an expression such as {0} or {*}", "value"),
    ("c/0", "must contain an expression such as {0} or {*}", "value"),
    ("{}", "must contain an expression such as {0} or {*}", "value"),
    ("/{0}", SLASHES, "value"),
    ("{0}/", SLASHES, "value"),
    ("{0}//{1}", SLASHES, "value"),
    ("{0}\\", CHARACTERS, "value"),
    ("\0{0}", CHARACTERS, "value"),
    ("{0}\x85", CHARACTERS, "value"),
    ("{0}..", SUBSTRINGS, "value"),
    ("../{0}", SUBSTRINGS, "value"),
    ("./{0}", "must not have '.' or '..' as a segment", "value"),
    ("{0}/zarr.json", SUBSTRINGS, "value"),
    ("xzarr.jsonx{0}", SUBSTRINGS, "value"),
    ("__{0}", "must not start with '__', a reserved prefix", "value"),
    ("{0}/__x", "must not have a segment that is 'zarr.json' or starts with '__'", "value"),
    ("\ud800{0}", "must not contain lone surrogates", "value"),
    ("{{0}}", BRACES, "value"),
    ("{0}{}", BRACES, "value"),
    ("{0}{a}", BRACES, "value"),
    ("{0}{1:4}", BRACES, "value"),
    ("{0}{+1}", BRACES, "value"),
    ("{0}{٣}", BRACES, "value"),
    ("{0}{0!r}", BRACES, "value"),
    ("{0}{1.real}", BRACES, "value"),
    ("{0}{1}", BETWEEN, "value"),
    ("{0}7{1}", BETWEEN, "value"),
    ("{0:03}{1:03}", BETWEEN, "value"),
    ("{*}_{*}", "must not have {*} twice", "value"),
    ("{-0}", "must not have {-0}: negative indices begin with {-1}, the last dimension", "value"),
    ("{-00}", "must not have {-0}: negative indices begin with {-1}, the last dimension", "value"),
    ("{0:0256}", "must not have widths above 255", "limit"),
    ("{0:0" + "9" * 30 + "}", "must not have numbers of more than 19 digits", "limit"),
    ("{" + "9" * 30 + "}", "must not have numbers of more than 19 digits", "limit"),
]


@pytest.mark.parametrize("spelling", ["template", "format"])
@pytest.mark.parametrize(("template", "rule", "kind"), UNSAFE, ids=[repr(template) for template, _, _ in UNSAFE])
def test_a_template_that_could_move_or_share_a_key_is_refused(
    spelling: str, template: str, rule: str, kind: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(**{spelling: template, "separator": "/"})
    assert (caught.value.pointer, caught.value.kind) == (f"/chunk_key_encoding/configuration/{spelling}", kind)
    assert caught.value.message.endswith(rule)


@pytest.mark.parametrize(
    ("separator", "rule"),
    [
        ("", "must have a character that is not a digit; otherwise two chunks could share a key"),
        ("0", "must have a character that is not a digit; otherwise two chunks could share a key"),
        ("..", SUBSTRINGS),
        ("/../", SUBSTRINGS),
        ("/zarr.json/", SUBSTRINGS),
        ("//", SLASHES),
        ("/./", "must not have '.' or '..' as a segment"),
        ("/__", "must not have a segment that is 'zarr.json' or starts with '__'"),
        ("\\", CHARACTERS),
        ("\n", CHARACTERS),
    ],
)
def test_a_separator_that_could_move_or_share_a_key_is_refused(separator: str, rule: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(template="{*}", separator=separator)
    assert (caught.value.pointer, caught.value.kind) == ("/chunk_key_encoding/configuration/separator", "value")
    assert caught.value.message.endswith(rule)


def test_a_separator_that_is_not_used_may_be_any_text() -> None:
    assert parse(template="{0}", separator="//").encode((3,)) == "3"


@pytest.mark.parametrize(
    ("configuration", "pointer", "kind"),
    [
        ({}, "/template", "missing"),
        ({"separator": "/"}, "/template", "missing"),
        ({"template": 1}, "/template", "type"),
        ({"template": "{*}"}, "/separator", "missing"),
        ({"template": "{*}", "separator": 1}, "/separator", "type"),
        ({"template": "{0}", "separator": None}, "/separator", "type"),
        ({"template": "{0}", "extra": 1}, "/extra", "unknown-member"),
        ({"template": "{0}", "format": "{1}"}, "/format", "conflict"),
        ({"template": "{0}" + "x" * 1022}, "/template", "limit"),
        ({"template": "{*}", "separator": "x" * 1025}, "/separator", "limit"),
    ],
)
def test_invalid_configurations_are_refused_with_a_pointer(
    configuration: dict[str, Any], pointer: str, kind: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(**configuration)
    assert (caught.value.pointer, caught.value.kind) == ("/chunk_key_encoding/configuration" + pointer, kind)


def test_both_spellings_are_read_and_one_is_written() -> None:
    written = {"name": "template", "configuration": {"template": "{0}_{1}"}}
    assert parse(template="{0}_{1}").to_json() == written
    assert parse(format="{0}_{1}").to_json() == written
    assert parse(format="{0}_{1}", template="{0}_{1}").to_json() == written


@pytest.mark.parametrize(
    ("template", "ndim", "message"),
    [
        ("{0}", 2, "must have an expression for each of 2 dimensions, but has none for dimension 1"),
        ("{0}_{1}", 1, "must not have {1} for an array of 1 dimensions"),
        ("{-3}/{*}", 2, "must not have {-3} for an array of 2 dimensions"),
        ("{0}_{-1}", 1, "must have one expression for each dimension, not several for dimension 0"),
        ("{1}_{1}", 2, "must have one expression for each dimension, not several for dimension 1"),
        ("{0}_{*}", 1, "must not have {*} for an array of 1 dimensions: no dimension is left for it"),
        ("{*}", 0, "must not have {*} for an array of 0 dimensions: no dimension is left for it"),
    ],
)
def test_a_template_that_does_not_fit_the_dimensions_is_refused(template: str, ndim: int, message: str) -> None:
    encoding = TemplateKeys(template, "/")
    for pointer, keys in (("", encoding), ("/configuration/base_encoding", SuffixKeys(".x", encoding))):
        with pytest.raises(MetadataError) as caught:
            zarrlite.create_array({}, shape=(4,) * ndim, dtype="u1", chunk_key_encoding=keys)
        place = f"/chunk_key_encoding{pointer}/configuration/template"
        assert (caught.value.pointer, caught.value.kind, caught.value.message) == (place, "conflict", message)
    assert encoding.decode("0", ndim) is None


def test_arrays_are_stored_under_keys_of_a_template(tmp_path: Any) -> None:
    data = np.arange(24, dtype="uint8").reshape(4, 6)
    keys = TemplateKeys("z{1:02}/{0}.bin")
    zarrlite.create_array(tmp_path / "a", data=data, chunks=(2, 3), chunk_key_encoding=keys, compressors=None)
    assert (tmp_path / "a/z01/0.bin").read_bytes() == data[:2, 3:].tobytes()
    array = zarrlite.open(tmp_path / "a", mode="r+")
    assert np.array_equal(array[...], data)
    array.resize((2, 6))
    assert sorted(array.store.list()) == ["z00/0.bin", "z01/0.bin", "zarr.json"]
    shards = zarrlite.create_array({}, data=data, chunks=(2, 3), shards=(4, 6), chunk_key_encoding=keys)
    assert sorted(shards.store.list()) == ["z00/0.bin", "zarr.json"]
    assert np.array_equal(shards[1:, 2], data[1:, 2])


def test_parts_of_chunks_are_stored_beside_keys_of_a_template() -> None:
    parts = ConcatParts([(".a", 2), (".b", None)])
    keys = TemplateKeys("{*}.bin", "_")
    array = zarrlite.create_array(
        {}, data=np.arange(8), chunks=(4,), chunk_key_encoding=keys, storage_transformers=[parts]
    )
    assert sorted(array.store.list()) == ["0.bin.a", "0.bin.b", "1.bin.a", "1.bin.b", "zarr.json"]
    assert array[5] == 5
    assert array.nchunks_initialized == 2

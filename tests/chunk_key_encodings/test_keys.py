"""The chunk key encodings `default` and `v2` encode coordinates as specified, and refuse keys that they never write."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zarrlite.chunk_key_encodings import ChunkKeyEncoding, DefaultKeys, V2Keys
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json

ENCODINGS: list[ChunkKeyEncoding] = [DefaultKeys(), DefaultKeys("."), V2Keys(), V2Keys("/")]
COORDS = st.lists(st.integers(0, 20) | st.integers(0, 2**63 - 1), max_size=4).map(tuple)
# the characters that occur in keys, and others that int() accepts or that look like digits
TEXT = st.text(st.sampled_from("c0123456789/.+-_ \n٣²①eé\0"), max_size=8)

# default encoding, Description: 'is the string "c/1/23/45"'; 'the identifier is the string "c.1.23.45"'
# v2 encoding, Description: 'is the string "1.23.45"'; 'the identifier is the string "1/23/45"'
EXAMPLES = [
    (DefaultKeys(), (), "c"),
    (DefaultKeys(), (0,), "c/0"),
    (DefaultKeys(), (1, 23, 45), "c/1/23/45"),
    (DefaultKeys("."), (), "c"),
    (DefaultKeys("."), (1, 23, 45), "c.1.23.45"),
    (V2Keys(), (), "0"),
    (V2Keys(), (0,), "0"),
    (V2Keys(), (1, 23, 45), "1.23.45"),
    (V2Keys("/"), (), "0"),
    (V2Keys("/"), (1, 23, 45), "1/23/45"),
]


@pytest.mark.parametrize(("encoding", "coords", "key"), EXAMPLES)
def test_keys_match_the_examples_of_the_specification(encoding: ChunkKeyEncoding, coords: tuple, key: str) -> None:
    assert encoding.encode(coords) == key
    assert encoding.decode(key, len(coords)) == coords


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
@given(coords=COORDS)
def test_decoding_inverts_encoding(encoding: ChunkKeyEncoding, coords: tuple[int, ...]) -> None:
    assert encoding.decode(encoding.encode(coords), len(coords)) == coords


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
@settings(max_examples=300)
@given(key=TEXT, ndim=st.integers(0, 3))
def test_a_key_decodes_only_to_coordinates_that_encode_to_it(encoding: ChunkKeyEncoding, key: str, ndim: int) -> None:
    coords = encoding.decode(key, ndim)
    assert coords is None or (len(coords) == ndim and encoding.encode(coords) == key)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
@given(coords=COORDS, other=st.integers(0, 5))
def test_a_key_with_the_wrong_number_of_dimensions_is_refused(
    encoding: ChunkKeyEncoding, coords: tuple[int, ...], other: int
) -> None:
    if {other, len(coords)} == {0, 1} and coords in ((), (0,)) and isinstance(encoding, V2Keys):
        return  # in v2, "0" is a key in arrays without dimensions and in arrays with one dimension
    if other != len(coords):
        assert encoding.decode(encoding.encode(coords), other) is None


# invalid keys of chunks with two coordinates; each key has a single fault
REFUSED = [
    ("c/01/0", "a leading zero"),
    ("c/00/0", "an additional zero"),
    ("c/+1/0", "a plus sign"),
    ("c/-1/0", "a minus sign"),
    ("c/1_0/0", "an underscore, which int() accepts"),
    ("c/ 1/0", "a leading space"),
    ("c/1 /0", "a trailing space"),
    ("c/1\n/0", "a line feed"),
    ("c/1/0\n", "a line feed at the end"),
    ("c/٣/0", "an Arabic digit, which int() accepts"),
    ("c/²/0", "a superscript"),
    ("c/0x1/0", "hexadecimal"),
    ("c/1e1/0", "an exponent"),
    ("c/1.0/0", "a fraction"),
    ("c/1", "too few coordinates"),
    ("c/1/0/0", "too many coordinates"),
    ("c/1/", "an empty last coordinate"),
    ("c//0", "an empty coordinate"),
    ("c/1/0/", "a trailing separator"),
    ("/c/1/0", "a leading separator"),
    ("1/0", "no prefix"),
    ("C/1/0", "a capital C"),
    ("d/1/0", "another letter"),
    ("c.1.0", "the other separator"),
    ("c/1.0", "both separators"),
    ("c", "no coordinates"),
    ("", "an empty text"),
    ("zarr.json", "the metadata document"),
    (f"c/{10**30}/0", "a coordinate beyond 2^63"),
    (f"c/{'1' * 5000}/0", "more digits than int() accepts"),
]


@pytest.mark.parametrize(("key", "fault"), REFUSED, ids=[fault for _, fault in REFUSED])
def test_text_that_is_almost_a_key_is_refused_by_every_encoding(key: str, fault: str) -> None:
    assert DefaultKeys().decode(key, 2) is None
    swapped = key.translate(str.maketrans("/.", "./"))
    assert DefaultKeys(".").decode(swapped, 2) is None
    if fault != "no prefix":
        assert V2Keys("/").decode(key.removeprefix("c/"), 2) is None
        assert V2Keys(".").decode(swapped.removeprefix("c."), 2) is None


@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        (DefaultKeys(), "c/0"),
        (DefaultKeys(), "0"),
        (DefaultKeys(), ""),
        (V2Keys(), ""),
        (V2Keys(), "1"),
        (V2Keys(), "c"),
    ],
)
def test_an_array_without_dimensions_has_only_one_key(encoding: ChunkKeyEncoding, key: str) -> None:
    assert encoding.decode(key, 0) is None


@pytest.mark.parametrize(
    ("value", "encoding", "written"),
    [
        ("default", DefaultKeys("/"), {"name": "default", "configuration": {"separator": "/"}}),
        ({"name": "default"}, DefaultKeys("/"), {"name": "default", "configuration": {"separator": "/"}}),
        (
            {"name": "default", "configuration": {"separator": "."}},
            DefaultKeys("."),
            {"name": "default", "configuration": {"separator": "."}},
        ),
        ("v2", V2Keys("."), {"name": "v2", "configuration": {"separator": "."}}),
        (
            {"name": "v2", "configuration": {"separator": "/"}},
            V2Keys("/"),
            {"name": "v2", "configuration": {"separator": "/"}},
        ),
    ],
)
def test_the_separator_has_a_default_and_is_always_written(
    value: Json, encoding: ChunkKeyEncoding, written: Json
) -> None:
    parsed = registry.chunk_key_encodings.parse(value, "/chunk_key_encoding", Context())
    assert parsed == encoding
    assert parsed.to_json() == written


@pytest.mark.parametrize("name", ["default", "v2"])
@pytest.mark.parametrize(
    ("configuration", "where", "kind", "message"),
    [
        ({"separator": "-"}, "/separator", "value", 'must be "/" or ".", not "-"'),
        ({"separator": ""}, "/separator", "value", 'must be "/" or ".", not ""'),
        ({"separator": None}, "/separator", "type", "must be a string, not null"),
        ({"seperator": "/"}, "/seperator", "unknown-member", "is not a known member (known: separator)"),
    ],
)
def test_invalid_configurations_are_refused(
    name: str, configuration: Json, where: str, kind: str, message: str
) -> None:
    value = {"name": name, "configuration": configuration}
    with pytest.raises(MetadataError) as caught:
        registry.chunk_key_encodings.parse(value, "/chunk_key_encoding", Context())
    pointer = "/chunk_key_encoding/configuration" + where
    assert (caught.value.pointer, caught.value.kind) == (pointer, kind)
    assert str(caught.value) == f"zarr.json#{pointer}: {message}"

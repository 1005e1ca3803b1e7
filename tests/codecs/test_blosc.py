"""The `blosc` codec: round trips, and damaged headers."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import pytest

import zarrlite
from tests.codecs.decoding import LITTLE, pipeline, refusal
from zarrlite.codecs import Blosc, Bytes, CastValue, Conditional, ShardingIndexed
from zarrlite.errors import DataError, DependencyError, TruncatedError

BLOSC = Blosc("lz4", 5, "shuffle", 4)
PLAIN = bytes(range(200)) * 4


@pytest.fixture
def blosc() -> Any:
    return importlib.import_module("numcodecs.blosc")


@pytest.mark.parametrize("shuffle", Blosc.shuffles)
@pytest.mark.parametrize("cname", Blosc.compressors)
def test_blosc_round_trips_with_every_compressor_of_the_library(blosc: Any, cname: str, shuffle: str) -> None:
    codec = Blosc(cname, 5, shuffle, 4)
    if cname not in blosc.list_compressors():
        for use in (lambda: codec.encode(PLAIN), lambda: codec.decode(bytes([2, 1, 2 << 5, *range(13)]), 9)):
            with pytest.raises(DependencyError, match=f"was built without {cname}$"):
                use()
        return
    encoded = codec.encode(PLAIN)
    assert bytes(codec.decode(encoded, len(PLAIN))) == PLAIN
    assert len(encoded) <= codec.max_encoded_size(len(PLAIN))
    assert bytes(codec.decode(memoryview(encoded), len(PLAIN))) == PLAIN


@pytest.mark.parametrize(
    ("codec", "size", "stride", "flag"),
    [
        (Blosc("lz4", 5, "shuffle", 4), 800, 4, 1),
        (Blosc("lz4", 5, "bitshuffle", 2), 800, 2, 4),
        (Blosc("lz4", 5, "noshuffle", 4), 800, 1, 0),
        (Blosc("lz4", 5), 800, 1, 0),
        (Blosc("lz4", 5, "shuffle", 3), 800, 1, 0),  # 800 is not a multiple of 3: nothing is shuffled
    ],
)
def test_blosc_shuffles_items_of_typesize_bytes(blosc: Any, codec: Blosc, size: int, stride: int, flag: int) -> None:
    encoded = bytes(codec.encode(PLAIN[:size]))
    assert encoded[3] == stride
    assert encoded[2] & flag == flag
    assert bytes(codec.decode(encoded, size)) == PLAIN[:size]


def test_blosc_round_trips_an_empty_value(blosc: Any) -> None:
    assert bytes(BLOSC.decode(BLOSC.encode(b""), 0)) == b""


def damaged_header(**fields: int) -> bytes:
    header = bytearray(BLOSC.encode(PLAIN))
    for name, value in fields.items():
        at = {"version": 0, "nbytes": 4, "blocksize": 8, "cbytes": 12}[name]
        header[at : at + (1 if name == "version" else 4)] = value.to_bytes(1 if name == "version" else 4, "little")
    return bytes(header)


BLOSC_DAMAGE = [
    (lambda: b"", TruncatedError, "codec blosc: has 0 bytes, but a blosc header alone has 16"),
    (lambda: bytes(15), TruncatedError, "codec blosc: has 15 bytes, but a blosc header alone has 16"),
    (lambda: damaged_header()[:-1], TruncatedError, "codec blosc: has {short} bytes, but its header says {size}"),
    (lambda: damaged_header() + b"\0", TruncatedError, "codec blosc: has {long} bytes, but its header says {size}"),
    (
        lambda: damaged_header(nbytes=801),
        TruncatedError,
        "codec blosc: claims to decompress to 801 bytes, but at most 800 are allowed",
    ),
    (
        lambda: damaged_header(nbytes=2**32 - 1),
        TruncatedError,
        f"codec blosc: claims to decompress to {2**32 - 1} bytes, but at most 800 are allowed",
    ),
    (
        lambda: damaged_header(nbytes=799),
        DataError,
        "codec blosc: cannot be decoded: error during blosc decompression: -1",
    ),
    (
        lambda: damaged_header(blocksize=2**31 - 1),
        DataError,
        "codec blosc: cannot be decoded: error during blosc decompression: -1",
    ),
    (
        lambda: damaged_header(version=99),
        DataError,
        "codec blosc: cannot be decoded: error during blosc decompression: -1",
    ),
]


@pytest.mark.parametrize(("damaged", "kind", "message"), BLOSC_DAMAGE)
def test_a_damaged_blosc_header_is_refused(blosc: Any, damaged: Any, kind: type, message: str) -> None:
    size = len(BLOSC.encode(PLAIN))
    expected = message.format(size=size, short=size - 1, long=size + 1)
    assert refusal(pipeline([LITTLE, BLOSC], (800,), "u1"), damaged()) == (kind, expected)


def test_a_decoded_size_that_differs_from_the_header_is_refused(blosc: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blosc, "decompress", lambda data: b"abc")
    found = refusal(pipeline([LITTLE, BLOSC], (800,), "u1"), damaged_header())
    assert found == (DataError, "codec blosc: decompresses to 3 bytes, but its header says 800")


def test_without_numcodecs_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numcodecs", None)
    array = zarrlite.create_array(
        shape=(4,), dtype="u1", chunks=(4,), compressors=Blosc()
    )  # creating metadata does not need the library
    for use in (lambda: array.__setitem__(..., 1), lambda: Blosc().decode(bytes(16), 1)):
        with pytest.raises(DependencyError) as caught:
            use()
        assert str(caught.value) == "the blosc codec needs numcodecs: pip install 'zarrlite[numcodecs]'"
        assert isinstance(caught.value, ImportError)


def written(codecs: list[Any], dtype: Any = "int32", **keywords: Any) -> Any:
    """Create an array, check that its metadata round-trips, and return the blosc configuration in its document."""
    array = zarrlite.create_array({}, shape=(6,), dtype=dtype, codecs=codecs, **keywords)
    array[:3] = array.metadata.fill_value
    assert zarrlite.open(array.store, mode="r").metadata.to_json() == array.metadata.to_json()
    chain: Any = array.metadata.to_json()["codecs"]
    while "codecs" in chain[-1].get("configuration", {}):
        chain = chain[-1]["configuration"]["codecs"]
    (configuration,) = (codec["configuration"] for codec in chain if codec["name"] == "blosc")
    return configuration


SHUFFLED = {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}


@pytest.mark.parametrize("codec", ["blosc", {"name": "blosc"}, Blosc()], ids=["name", "object", "class"])
def test_blosc_shuffles_the_elements_of_a_new_array_by_default(codec: Any) -> None:
    assert written([Bytes(), codec]) == SHUFFLED
    assert written([Bytes(), codec], "uint8") == {**SHUFFLED, "shuffle": "bitshuffle", "typesize": 1}
    assert written([ShardingIndexed((3,), (Bytes(), codec))]) == SHUFFLED
    assert written([Bytes(), Conditional((codec,))]) == SHUFFLED
    assert written([CastValue("int16"), Bytes(), codec]) == {**SHUFFLED, "typesize": 2}


def test_settings_of_blosc_that_are_passed_are_kept() -> None:
    partial = {"name": "blosc", "configuration": {"cname": "lz4", "shuffle": "bitshuffle"}}
    assert written([Bytes(), partial]) == {**SHUFFLED, "cname": "lz4", "shuffle": "bitshuffle"}
    plain = written([Bytes(), Blosc(shuffle="noshuffle")])
    assert plain == {"cname": "zstd", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}
    assert written([Bytes(), Blosc(shuffle="shuffle", typesize=2)]) == {**SHUFFLED, "typesize": 2}


def test_a_document_must_have_every_required_member_of_blosc() -> None:
    array = zarrlite.create_array({}, shape=(6,), dtype="int32", codecs=[Bytes(), "blosc"])
    document = json.dumps(array.metadata.to_json()).replace('"shuffle": "shuffle", ', "").encode()
    (fault,) = zarrlite.validate(document)
    assert str(fault) == "zarr.json#/codecs/1/configuration/shuffle: is required and missing"

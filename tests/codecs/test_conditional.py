"""The `conditional` codec."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codecs.decoding import LITTLE, decode, pipeline, refusal
from zarrlite.codecs import Conditional, Crc32c, Gzip, Zstd
from zarrlite.errors import ArgumentError, DataError, MetadataError, TruncatedError
from zarrlite.testing import BytesBytesLaws


class TestConditional(BytesBytesLaws):
    codec = Conditional((Zstd(), Gzip()))


class TestConditionalCompression(BytesBytesLaws):
    codec = Conditional((Zstd(), Crc32c(), Gzip()), 16, decision="compress_if_smaller")

    def test_json_reads_as_an_equal_codec(self) -> None:
        """Skip this law, because the JSON of the codec does not contain the decision."""


def conditional(*codecs: Any, **members: Any) -> Any:
    return {"name": "conditional", "configuration": {"codecs": list(codecs), **members}}


def test_a_mask_tells_which_codecs_were_applied() -> None:
    value = bytes(100)
    for decision, mask in (("never_apply", 0), ("always_apply", 7), ("compress_if_smaller", 5)):
        codec = Conditional((Gzip(), Crc32c(), Zstd()), decision=decision)
        stored = bytes(codec.encode(value))
        assert stored[0] == mask
        assert bytes(codec.decode(stored, 100)) == value
    assert bytes(Conditional((Gzip(), Crc32c())).encode(b"12")) == b"\x0012"
    assert bytes(Conditional((Gzip(), Crc32c()), 24).encode(b"12")) == b"\x00\x00\x0012"
    gzip_only = Conditional((Zstd(), Gzip()), decision=lambda codec, value, encoded: codec.name == "gzip")
    assert bytes(gzip_only.encode(b"12"))[0] == 2
    nine = Conditional((Crc32c(),) * 9, decision=lambda codec, value, encoded: True)
    assert bytes(nine.encode(b"1"))[:2] == b"\xff\x01"


def test_damaged_masks_are_refused() -> None:
    bound = pipeline([LITTLE, conditional("crc32c", header_bits=16)], (2,), "u1")
    assert refusal(bound, b"\x00") == (TruncatedError, "codec conditional: has 1 bytes, but the header alone has 2")
    assert refusal(bound, b"\x02\x0012") == (
        DataError,
        "codec conditional: the header is 0x2, but all bits above the lowest 1 must be 0",
    )
    assert refusal(bound, b"\x00\x80ab")[0] is DataError
    assert decode(bound, b"\x00\x0012").tobytes() == b"12"


@pytest.mark.parametrize(
    ("codec", "pointer"),
    [
        (conditional("crc32c", header_bits=4), "/configuration/header_bits"),
        (conditional(*["crc32c"] * 9, header_bits=8), "/configuration/header_bits"),
        (conditional("bytes"), "/configuration/codecs/0"),
        (conditional("crc32c", {"name": "transpose", "configuration": {"order": [0]}}), "/configuration/codecs/1"),
        (conditional({"name": "unheard-of", "must_understand": False}), "/configuration/codecs/0"),
        (conditional("crc32c", mask=1), "/configuration/mask"),
        ({"name": "conditional"}, "/configuration/codecs"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(codec: Any, pointer: str) -> None:
    with pytest.raises(MetadataError) as caught:
        pipeline([LITTLE, codec], (2,), "u1")
    assert caught.value.pointer == pointer


def test_an_unknown_decision_is_refused() -> None:
    with pytest.raises(ArgumentError, match="decision must be a function or one of never_apply"):
        Conditional((Zstd(),), decision="sometimes")


def test_codecs_other_than_bytes_to_bytes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="codecs must be bytes -> bytes codecs"):
        Conditional((LITTLE,))

"""Decoding: bounds on the size of the decoded bytes, and errors that name the codec."""

from __future__ import annotations

import pytest

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ArgumentError, ChecksumError, DataError, TruncatedError, ZarrliteError
from zarrlite.pipeline.decoding import Budget, Limit, decode_bytes


class Reversing:
    """A codec that reverses values, or raises the error it was created with."""

    name = "reversing"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.limits: list[int] = []

    def decode(self, data: Buffer, limit: int) -> bytes:
        self.limits.append(limit)
        if self.error:
            raise self.error
        return bytes(data)[::-1]


class Doubling:
    """A codec that decodes a value to two copies of it, even if they exceed `limit`."""

    name = "doubling"

    def decode(self, data: Buffer, limit: int) -> bytes:
        return bytes(data) * 2


def test_codecs_are_undone_in_the_given_order() -> None:
    assert decode_bytes(b"ab", [(Doubling(), Limit(4)), (Reversing(), Limit(4))]) == b"baba"
    assert decode_bytes(b"ab", [(Reversing(), Limit(2)), (Doubling(), Limit(4))]) == b"baba"
    assert decode_bytes(b"ab", []) == b"ab"
    assert decode_bytes(b"", [(Reversing(), Limit(3))]) == b""


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (ValueError("odd"), DataError, "codec reversing: cannot be decoded: odd"),
        (MemoryError(), DataError, "codec reversing: cannot be decoded: "),
        (ChecksumError("differs"), ChecksumError, "codec reversing: differs"),
        (DataError("from within", codec="inner"), DataError, "codec inner: from within"),
        (ArgumentError("no such option"), ArgumentError, "no such option"),
    ],
)
def test_every_exception_of_a_codec_becomes_an_error_of_zarrlite(
    raised: Exception, expected: type[ZarrliteError], message: str
) -> None:
    with pytest.raises(ZarrliteError) as caught:
        decode_bytes(b"abc", [(Reversing(raised), Limit(3))])
    assert (type(caught.value), str(caught.value)) == (expected, message)


@pytest.mark.parametrize(
    ("limit", "fits"), [(Limit(3), False), (Limit(4), True), (Limit(0, 1), False), (Limit(1, 2), True)]
)
def test_a_codec_that_produces_more_than_its_limit_is_refused(limit: Limit, fits: bool) -> None:
    if fits:
        assert decode_bytes(b"ab", [(Doubling(), limit)]) == b"abab"
        return
    with pytest.raises(TruncatedError) as caught:
        decode_bytes(b"ab", [(Doubling(), limit)])
    assert str(caught.value) == f"codec doubling: decodes to 4 bytes, but at most {limit.of(2)} are allowed"


def test_a_limit_is_the_larger_of_a_fixed_and_a_proportional_one() -> None:
    assert [Limit(100, 3).of(n) for n in (0, 33, 34)] == [100, 100, 102]


def test_proportional_limits_do_not_multiply_along_a_chain() -> None:
    codec = Reversing()
    decode_bytes(b"ab", [(Doubling(), Limit(0, 3)), (codec, Limit(0, 3))])
    assert codec.limits == [6]


def test_a_budget_limits_the_total_size_of_several_values() -> None:
    budget = Budget(10)
    budget.spend(4)
    budget.spend(6)
    budget.spend(0)
    with pytest.raises(TruncatedError, match=r"^decodes to more than the 10 bytes that are allowed$"):
        budget.spend(1)

"""The libraries for zstd and CRC32C: which one is chosen, and that all of them accept and refuse the same bytes."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

from tests import libraries
from tests.required import lacking
from zarrlite.errors import DataError

DATA = bytes(range(256)) * 40
CHOICE = """
from tests.libraries import hidden
with hidden({hidden!r}):
    from zarrlite.libraries import {module}
print({module}.library)
"""


@pytest.fixture(params=["zarrlite.libraries.zstd_zstandard", "zarrlite.libraries.zstd_standard"])
def zstd(request: pytest.FixtureRequest) -> Any:
    try:
        return importlib.import_module(request.param)
    except ImportError as error:
        lacking(str(error))


def choose(module: str, *hidden: str) -> str:
    """Return the library that a new interpreter chooses while some modules are hidden, or the error that it prints."""
    command = [sys.executable, "-c", CHOICE.format(module=module, hidden=hidden)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


STANDARD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def test_the_first_library_that_can_be_imported_is_chosen() -> None:
    assert choose("zstd") == "zstandard"
    assert choose("zstd", "zstandard") == STANDARD
    assert choose("crc32c") == "google_crc32c"
    assert choose("crc32c", "google_crc32c") == "crc32c"


def test_a_slow_library_is_used_only_if_there_is_no_other() -> None:
    assert choose("crc32c", "google_crc32c._crc32c", "google_crc32c.cext") == "crc32c"
    assert choose("crc32c", "google_crc32c._crc32c", "google_crc32c.cext", "crc32c") == "google_crc32c"


def test_an_error_names_what_to_install_if_there_is_none() -> None:
    message = "zstd needs zstandard, or Python 3.14, or backports.zstd: pip install zstandard"
    assert choose("zstd", "zstandard", STANDARD) == f"zarrlite.errors.DependencyError: {message}"
    message = "CRC32C needs google-crc32c or crc32c: pip install google-crc32c"
    assert choose("crc32c", "google_crc32c", "crc32c") == f"zarrlite.errors.DependencyError: {message}"


@pytest.mark.parametrize("hidden", [[], ["google_crc32c"]], ids=["google_crc32c", "crc32c"])
def test_checksums_equal_those_of_the_specification(hidden: list[str]) -> None:
    name = "zarrlite.libraries.crc32c"
    before = sys.modules.pop(name)
    try:
        with libraries.hidden(hidden):
            module = importlib.import_module(name)
    finally:
        sys.modules[name] = before
    assert module.checksum(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert module.checksum(b"") == 0
    for data in (bytearray(DATA), memoryview(DATA), memoryview(bytearray(DATA))[100:]):
        assert module.checksum(data) == module.checksum(bytes(data))
        assert module.checksum(data, module.checksum(b"1234")) == module.checksum(b"1234" + bytes(data))


@pytest.mark.parametrize("level", [-5, 0, 1, 3, 19])
@pytest.mark.parametrize("checksum", [False, True])
def test_frames_contain_their_content_size_and_decode_with_every_library(zstd: Any, level: int, checksum: bool) -> None:
    reader = importlib.import_module("zarrlite.libraries.zstd").Decompressor()
    compressor = zstd.Compressor(level, checksum=checksum)
    for data in (DATA, b"a", memoryview(DATA)[7:]):
        for frame in (compressor.compress(data), *compressor.compress_many([data])):
            assert zstd.frame_content_size(frame) == len(data)
            assert bytes(frame)[4] & 4 == 4 * checksum
            assert reader.decompress(frame, len(data)) == data
            assert zstd.Decompressor().decompress(frame, len(data)) == data


def test_a_frame_is_decoded_only_if_it_is_complete_and_nothing_follows(zstd: Any) -> None:
    frame, decompressor = zstd.Compressor(3, checksum=True).compress(DATA), zstd.Decompressor()
    for end in (9, 20, len(frame) - 1):
        with pytest.raises((zstd.Error, DataError)):
            decompressor.decompress(frame[:end], len(DATA))
    assert decompressor.decompress(frame + b"x", len(DATA)) is None
    assert decompressor.decompress(frame + frame, len(DATA)) is None
    damaged = bytearray(frame)
    damaged[-1] ^= 1
    with pytest.raises(zstd.Error):
        decompressor.decompress(damaged, len(DATA))
    assert decompressor.decompress(frame, len(DATA)) == DATA


def test_a_frame_with_a_wrong_size_is_refused_before_more_is_decoded(zstd: Any) -> None:
    frame = bytearray(zstd.Compressor(3, checksum=False).compress(bytes(2**20)))
    assert frame[4] & 0xE0 == 0xA0  # the header descriptor: a content size field of 4 bytes follows
    frame[5:9] = (1000).to_bytes(4, "little")
    with pytest.raises(zstd.Error):
        zstd.Decompressor().decompress(frame, 1000)


def test_the_start_of_a_frame_is_decoded_into_memory(zstd: Any) -> None:
    frame, decompressor = zstd.Compressor(3, checksum=False).compress(DATA), zstd.Decompressor()
    for length in (0, 1, 300, len(DATA)):
        memory = bytearray(length)
        assert decompressor.decompress_start(frame, memoryview(memory))
        assert memory == DATA[:length]
    assert not decompressor.decompress_start(frame, memoryview(bytearray(len(DATA) + 1)))
    assert not decompressor.decompress_start(frame[:9], memoryview(bytearray(len(DATA))))


def test_several_frames_are_decoded_into_consecutive_slots(zstd: Any) -> None:
    compressor, memory = zstd.Compressor(3, checksum=False), bytearray(30)
    values = [b"a" * 10, b"b" * 10, b"c" * 10]
    zstd.Decompressor().decompress_many([compressor.compress(value) for value in values], memoryview(memory), 10)
    assert memory == b"".join(values)
    with pytest.raises((zstd.Error, DataError)):
        zstd.Decompressor().decompress_many([compressor.compress(b"a" * 9)] * 3, memoryview(memory), 10)

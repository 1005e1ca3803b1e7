"""The zip format: its directory, the headers of its entries, and deflated values (PKWARE APPNOTE 6.3).

Rules
- The directory is authoritative. The header of an entry is read only when its value is read, and must agree with the
  directory.
- A file is refused if readers could disagree about its contents: if it has two end records, two entries with the same
  name, entries that overlap, or names that are not keys, or if its size contradicts the end records (for example,
  because there are bytes before the first entry).
- Sizes are checked before anything is allocated: compressed sizes against the size of the file, and uncompressed sizes
  against what so many compressed bytes can expand to.
- Nothing here does I/O: functions receive bytes, or a source that provides byte ranges.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import ChecksumError, DataError, KeyRefusedError, TruncatedError
from zarrlite.stores.base import check_key

STORED: Final = 0  # compression methods
DEFLATED: Final = 8
TAIL_BYTES: Final = 2**17  # bytes at the end of a file that are read first; the end record is in the last 65,557
HEADER_BYTES: Final = 30  # size of the header of an entry, without its name and extra fields
_MAX_FIELD = 0xFFFF  # maximum of 16-bit fields: the number of entries, the lengths of names and comments
_IN_ZIP64 = 0xFFFFFFFF  # stands for a size or offset that is stored in a zip64 field instead
# a deflated value may have this many bytes, or this many times its stored size, whichever is more
_MAX_INFLATED, _MAX_RATIO = 2**26, 100

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_RECORD = struct.Struct("<4s6H3L5H2L")
_HEADER = struct.Struct("<4s5H3L2H")
_END_MARK, _END64_MARK, _LOCATOR_MARK = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_RECORD_MARK, _HEADER_MARK = b"PK\1\2", b"PK\3\4"

_ENCRYPTED = 0x1 | 0x40 | 0x2000  # bits of the flags
_SIZES_FOLLOW = 0x8  # the sizes and the checksum follow the value
_UTF8 = 0x800
_ZIP64_FIELD, _UNICODE_NAME_FIELD = 0x0001, 0x7075  # identifiers of extra fields
_UNIX = 3  # the file attributes of an entry follow the conventions of Unix
_REGULAR_FILE = 0o100644 << 16
_FILE_TYPE, _SYMLINK = 0o170000 << 16, 0o120000 << 16


class Entry(NamedTuple):
    """An entry of the directory."""

    key: str
    name: bytes  # the key as stored in the file
    method: int
    crc: int
    stored: int  # size of the stored value in bytes
    size: int  # size of the decoded value in bytes
    modified: int  # time in the low 16 bits, date in the high 16 bits
    offset: int  # where its header starts
    end: int  # where the next entry or the directory starts


class Directory(NamedTuple):
    """The contents of a zip file."""

    entries: dict[str, Entry]
    comment: bytes


# Reading


def read_directory(source: Source) -> Directory | None:
    """Read the directory of a zip file with one request, or two if it is larger than `TAIL_BYTES`.

    Returns None if the file does not exist.
    """
    found = source.read_one(ByteRange(-TAIL_BYTES))
    if found is None:
        return None
    tail = bytes(found)
    position = _find_end(tail)
    _, disk, start_disk, _, count, size, offset, comment_size = _END.unpack_from(tail, position)
    comment = tail[position + _END.size : position + _END.size + comment_size]
    if position >= _LOCATOR.size and tail.startswith(_LOCATOR_MARK, position - _LOCATOR.size):
        position, count, size, offset = _read_zip64_end(tail, position, (count, size, offset))
    elif (disk, start_disk) != (0, 0):
        raise DataError("must not be one part of a split zip file")
    described = offset + size + len(tail) - position
    actual = source.known_size()
    if actual is None:  # without a reported size, the size is known only if the tail is the whole file
        actual = len(tail) if len(tail) < TAIL_BYTES else max(described, len(tail))
    if described != actual:
        raise DataError(f"must have {described} bytes according to its end records, not {actual}")
    records = tail[max(0, position - size) : position]
    if size > position:
        records = bytes(source.read_one(ByteRange(offset, offset + size - position)) or b"") + records
    if len(records) != size:
        raise TruncatedError(f"must have a directory of {size} bytes, not {len(records)}")
    return Directory(_parse_records(records, count, offset), comment)


def _find_end(tail: bytes) -> int:
    """Return the position of the end record, whose comment must extend to the end of the file."""
    found = []
    position = tail.rfind(_END_MARK)
    while position >= 0:
        if position + _END.size <= len(tail):
            (comment_size,) = struct.unpack_from("<H", tail, position + _END.size - 2)
            if position + _END.size + comment_size == len(tail):
                found.append(position)
        position = tail.rfind(_END_MARK, 0, position + len(_END_MARK) - 1)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError("must have one end record, but its comment contains another one")
    raise TruncatedError("must be a zip file, but has no end record: it is truncated, or has another format")


def _read_zip64_end(tail: bytes, end: int, values: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """Return the position of the zip64 end record, and the count, size and offset in it."""
    position = end - _LOCATOR.size - _END64.size
    _, disk, offset64, disks = _LOCATOR.unpack_from(tail, end - _LOCATOR.size)
    if position < 0 or not tail.startswith(_END64_MARK, position):
        raise DataError("must have a zip64 end record of 56 bytes before its locator")
    _, _, _, _, number, start_disk, here, count, size, offset = _END64.unpack_from(tail, position)
    if (disk, number, start_disk) != (0, 0, 0) or disks > 1 or here != count:
        raise DataError("must not be one part of a split zip file")
    for value, value64, limit in zip(values, (count, size, offset), (_MAX_FIELD, _IN_ZIP64, _IN_ZIP64), strict=True):
        if value not in (limit, value64):
            raise DataError(f"must have end records that agree, but one contains {value} and the other {value64}")
    if offset64 != offset + size:
        raise DataError("must have its zip64 end record directly after the directory")
    return position, count, size, offset


def _parse_records(records: bytes, count: int, directory_offset: int) -> dict[str, Entry]:
    """Parse the directory. All entries are checked, so that their values can be read in any order."""
    found: list[Entry] = []
    position = 0
    while position < len(records):
        if not records.startswith(_RECORD_MARK, position) or position + _RECORD.size > len(records):
            raise DataError(f"must have an entry at byte {position} of its directory")
        entry, position = _parse_record(records, position)
        found.append(entry)
    if len(found) != count:
        raise DataError(f"must have {count} entries, not {len(found)}")
    found.sort(key=lambda entry: entry.offset)
    ends = [following.offset for _, following in pairwise(found)]
    entries: dict[str, Entry] = {}
    for entry, end in zip(found, [*ends, directory_offset], strict=False):
        if entry.offset + HEADER_BYTES + len(entry.name) + entry.stored > end:
            raise DataError(f"entry {entry.key!r} must end before byte {end}, where another part of the file starts")
        if entry.key.endswith("/"):
            continue  # a directory
        try:
            check_key(entry.key)
        except KeyRefusedError as error:
            raise DataError(f"entry {entry.key!r} must have a valid key as its name: {error.message}") from None
        if entry.key in entries:
            raise DataError(f"entry {entry.key!r} must not occur twice")
        entries[entry.key] = entry._replace(end=end)
    return entries


def _parse_record(records: bytes, position: int) -> tuple[Entry, int]:
    """Parse a record of the directory. Returns the entry and the position of the next record."""
    fields = _RECORD.unpack_from(records, position)
    _, made_by, _, flags, method, clock, date, crc, stored, size, *lengths, disk, _, attributes, offset = fields
    name_end = position + _RECORD.size + lengths[0]
    end = name_end + lengths[1]
    name, extra = records[position + _RECORD.size : name_end], records[name_end:end]
    if end + lengths[2] > len(records):
        raise TruncatedError(f"entry {name!r} must end within the directory")
    extra_fields = _parse_extra(extra, name)
    key = _decode_name(name, flags, made_by >> 8, extra_fields)
    if _IN_ZIP64 in (stored, size, offset) or disk == _MAX_FIELD:
        size, stored, offset, disk = _parse_zip64(extra_fields, key, size, stored, offset, disk)
    if disk != 0:
        raise DataError(f"entry {key!r} must not be in another part of a split zip file")
    if flags & _ENCRYPTED:
        raise DataError(f"entry {key!r} must not be encrypted")
    if made_by >> 8 == _UNIX and attributes & _FILE_TYPE == _SYMLINK:
        raise DataError(f"entry {key!r} must not be a symlink")
    if method not in (STORED, DEFLATED):
        raise DataError(f"entry {key!r} must be stored or deflated, not compressed with method {method}")
    if method == STORED and stored != size:
        raise DataError(f"entry {key!r} is not compressed, so its two sizes must be equal, not {stored} and {size}")
    if size > max(_MAX_INFLATED, _MAX_RATIO * stored) and method == DEFLATED:
        raise DataError(
            f"entry {key!r} must not grow from {stored} to {size} bytes when it is decompressed; store it uncompressed"
        )
    entry = Entry(key, name, method, crc, stored, size, date << 16 | clock, offset, 0)
    return entry, end + lengths[2]


def _parse_extra(extra: bytes, name: bytes) -> dict[int, bytes]:
    """Return the extra fields of an entry, by identifier."""
    found: dict[int, bytes] = {}
    position = 0
    while position + 4 <= len(extra):
        identifier, length = struct.unpack_from("<2H", extra, position)
        position += 4
        if position + length > len(extra):
            raise DataError(f"entry {name!r} must not have a truncated extra field")
        found.setdefault(identifier, extra[position : position + length])
        position += length
    return found


def _parse_zip64(
    extra: dict[int, bytes], key: str, size: int, stored: int, offset: int, disk: int
) -> tuple[int, int, int, int]:
    """Return the sizes, offset and disk number of an entry.

    Values that are too large for the record are in the extra field, in this order.
    """
    field, position = extra.get(_ZIP64_FIELD, b""), 0
    values = [size, stored, offset, disk]
    for i, (missing, code) in enumerate(((_IN_ZIP64, "<Q"),) * 3 + ((_MAX_FIELD, "<L"),)):
        if values[i] == missing:
            if position + struct.calcsize(code) > len(field):
                raise DataError(f"entry {key!r} must have a zip64 field with its sizes and offset")
            (values[i],) = struct.unpack_from(code, field, position)
            position += struct.calcsize(code)
    size, stored, offset, disk = values
    return size, stored, offset, disk


def _decode_name(name: bytes, flags: int, system: int, extra: dict[int, bytes]) -> str:
    """Return a name as text.

    Some programs store the name in UTF-8 in an extra field, with a checksum of the regular name. On Unix, Info-ZIP
    stores the bytes of a file name, which are UTF-8, without setting the flag for UTF-8.
    """
    unicode_name = extra.get(_UNICODE_NAME_FIELD, b"")
    try:
        if unicode_name[:1] == b"\1" and unicode_name[1:5] == zlib.crc32(name).to_bytes(4, "little"):
            return unicode_name[5:].decode()
        return name.decode("utf-8" if flags & _UTF8 or system == _UNIX else "cp437")
    except UnicodeDecodeError:
        raise DataError(f"entry {name!r} must have a name in UTF-8") from None


def header_size(entry: Entry) -> int:
    """Return the size of the header of an entry, without its extra fields."""
    return HEADER_BYTES + len(entry.name)


def value_start(header: Buffer, entry: Entry) -> int:
    """Return where the value of an entry starts, after checking its header against the directory."""
    header = bytes(header)
    if len(header) < header_size(entry):
        raise TruncatedError("must have a header, but the file is truncated", key=entry.key)
    mark, _, flags, method, _, _, crc, stored, size, name_length, extra_length = _HEADER.unpack_from(header)
    start: int = entry.offset + header_size(entry) + extra_length
    if mark != _HEADER_MARK:
        raise DataError(f"must have a header at byte {entry.offset} of the zip file", key=entry.key)
    same_name = name_length == len(entry.name) and header.endswith(entry.name, 0, header_size(entry))
    if not same_name or method != entry.method or flags & _ENCRYPTED:
        raise DataError("must have the same name and method in its header and in the directory", key=entry.key)
    known = [(stored, entry.stored), (size, entry.size)]
    if not flags & _SIZES_FOLLOW and (crc != entry.crc or any(a not in (b, _IN_ZIP64) for a, b in known)):
        raise DataError("must have the same sizes and checksum in its header and in the directory", key=entry.key)
    if start + entry.stored > entry.end:
        raise DataError("must not overlap the next entry", key=entry.key)
    return start


def decode(stored: Buffer, entry: Entry) -> Buffer:
    """Return the value of an entry, after checking its size and checksum."""
    value = stored
    if entry.method == DEFLATED:
        decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            value = decompressor.decompress(stored, entry.size + 1)
        except zlib.error as error:
            raise DataError(f"must be valid deflated data: {error}", key=entry.key) from None
        if len(value) != entry.size or not decompressor.eof or decompressor.unused_data:
            raise TruncatedError(f"must decompress to {entry.size} bytes", key=entry.key)
    if zlib.crc32(value) != entry.crc:
        raise ChecksumError("does not match its checksum in the zip file", key=entry.key)
    return value


# Writing


def new_entry(key: str, value: Buffer, offset: int) -> Entry:
    """Return the entry for an uncompressed value. Its `end` is 0 until the entry is appended to a file."""
    year, month, day, hour, minute, second, *_ = time.localtime()
    clock = hour << 11 | minute << 5 | second // 2
    date = min(max(year - 1980, 0), 127) << 9 | month << 5 | day
    name = encode_name(key)
    return Entry(key, name, STORED, zlib.crc32(value), len(value), len(value), date << 16 | clock, offset, 0)


def encode_name(key: str) -> bytes:
    """Return the name of an entry. Raises KeyRefusedError if it cannot be stored."""
    try:
        name = key.encode()
    except UnicodeEncodeError:
        raise KeyRefusedError(f"key {key!r} must not contain lone surrogates: names are UTF-8", key=key) from None
    if len(name) > _MAX_FIELD:
        raise KeyRefusedError(f"a key in a zip file must have at most {_MAX_FIELD} bytes, not {len(name)}", key=key)
    return name


def local_header(entry: Entry, *, zip64: bool) -> bytes:
    """Return the header of an entry, with zip64 sizes if they are needed or requested."""
    stored, size, extra = entry.stored, entry.size, b""
    if zip64 or max(stored, size) >= _IN_ZIP64:
        extra = struct.pack("<2H2Q", _ZIP64_FIELD, 16, size, stored)
        stored = size = _IN_ZIP64
    clock, date = entry.modified & _MAX_FIELD, entry.modified >> 16
    lengths = len(entry.name), len(extra)
    version = _version(bool(extra))
    fields = version, _flags(entry), entry.method, clock, date, entry.crc, stored, size, *lengths
    return _HEADER.pack(_HEADER_MARK, *fields) + entry.name + extra


def directory(entries: Iterable[Entry], offset: int, comment: bytes, *, zip64: bool) -> bytes:
    """Return the directory and the end records of a file in which the directory starts at `offset`."""
    records = [_record(entry, zip64) for entry in entries]
    count, size = len(records), sum(map(len, records))
    end = b""
    if zip64 or count >= _MAX_FIELD or max(size, offset) >= _IN_ZIP64:
        version = _version(True)
        # 44 is the size of the rest of the record, after this field
        end = _END64.pack(_END64_MARK, 44, version, version, 0, 0, count, count, size, offset)
        end += _LOCATOR.pack(_LOCATOR_MARK, 0, offset + size, 1)
        count, size, offset = min(count, _MAX_FIELD), min(size, _IN_ZIP64), min(offset, _IN_ZIP64)
    end += _END.pack(_END_MARK, 0, 0, count, count, size, offset, len(comment))
    return b"".join([*records, end, comment])


def _record(entry: Entry, zip64: bool) -> bytes:
    stored, size, offset, extra = entry.stored, entry.size, entry.offset, b""
    if zip64 or max(stored, size, offset) >= _IN_ZIP64:
        extra = struct.pack("<2H3Q", _ZIP64_FIELD, 24, size, stored, offset)
        stored = size = offset = _IN_ZIP64
    version = _version(bool(extra))
    clock, date = entry.modified & _MAX_FIELD, entry.modified >> 16
    lengths = len(entry.name), len(extra), 0
    times = entry.method, clock, date, entry.crc
    fields = _UNIX << 8 | version, version, _flags(entry), *times, stored, size, *lengths, 0, 0, _REGULAR_FILE, offset
    return _RECORD.pack(_RECORD_MARK, *fields) + entry.name + extra


def _flags(entry: Entry) -> int:
    return 0 if entry.name.isascii() else _UTF8


def _version(zip64: bool) -> int:
    """Return the version of the format that a reader must support: 4.5 for zip64, 2.0 otherwise."""
    return 45 if zip64 else 20

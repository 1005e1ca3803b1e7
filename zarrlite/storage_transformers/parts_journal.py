"""The journal of a chunk in parts: enough to complete a change that was interrupted between two parts.

Rules
- It is stored beside the chunk, under `__zarrlite.journal.` and the last segment of the chunk's key. A `concat-parts`
  after another one has a number in that name, since chunks of both may have one key.
- It has the sizes of the parts before and after the change, and the bytes that change; a checksum covers all of it.
  Without such bytes it says that a chunk whose parts do not fit together is missing: enough for a new chunk, and for
  one that is erased.
- Parts that fit together are the chunk, whatever a journal says: another program may have written since.

The order of changes is in parts_store.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from zarrlite.buffers.pieces import Value, as_list, join, size_of
from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.crc32c import Crc32c
from zarrlite.errors import ChecksumError
from zarrlite.stores.base import overwrite

NAME: Final = "__zarrlite.journal"
_MAGIC = b"zarrlite journal 1\n"
_COUNTS = struct.Struct("<II")  # number of parts, number of patches
_MISSING = 2**64 - 1  # the size of a missing part
_PATCH = struct.Struct("<IQQ")  # number of the part, offset in it, length
_CHECKSUM = Crc32c()
Sizes = Sequence[int | None]  # sizes of all parts of a chunk, None for missing ones
PartPatch = tuple[int, int, Value]  # number of the part, offset in it, the bytes there


def key_of(chunk: str, level: int) -> str:
    """Return the key of the journal of a chunk; `level` counts the transformers of this kind before this one."""
    head, slash, name = chunk.rpartition("/")
    return f"{head}{slash}{NAME}{f'-{level}' if level else ''}.{name}"


def chunk_of(key: str, level: int) -> str | None:
    """Return the key of the chunk that a journal belongs to. Returns None if the key is not that of a journal."""
    head, slash, name = key.rpartition("/")
    prefix = key_of("", level)
    return f"{head}{slash}{name[len(prefix) :]}" if name.startswith(prefix) and name != prefix else None


class Journal(NamedTuple):
    """A change of a chunk that is under way."""

    before: Sizes
    after: Sizes
    patches: Sequence[PartPatch]

    def encode(self) -> list[Buffer]:
        """Return the stored form, in pieces."""
        sizes = [_MISSING if size is None else size for size in (*self.before, *self.after)]
        head = [_MAGIC, _COUNTS.pack(len(self.before), len(self.patches)), struct.pack(f"<{len(sizes)}Q", *sizes)]
        head += [_PATCH.pack(number, start, size_of(data)) for number, start, data in self.patches]
        value = [b"".join(head), *(join([piece]) for _, _, data in self.patches for piece in as_list(data))]
        return [*value, _CHECKSUM.frame([*value])[1]]

    @classmethod
    def parse(cls, data: bytes) -> Journal | None:
        """Return the journal of a stored form. Returns None if the form is unknown or damaged."""
        position = len(_MAGIC) + _COUNTS.size
        if not data.startswith(_MAGIC) or len(data) < position:
            return None
        try:
            _CHECKSUM.verify(data)
            count, patched = _COUNTS.unpack_from(data, len(_MAGIC))
            sizes = [None if n == _MISSING else n for n in struct.unpack_from(f"<{2 * count}Q", data, position)]
            position += 16 * count
            heads = [_PATCH.unpack_from(data, position + i * _PATCH.size) for i in range(patched)]
        except (ChecksumError, struct.error):
            return None
        position += patched * _PATCH.size
        patches: list[PartPatch] = []
        for number, start, length in heads:
            patches.append((number, start, data[position : position + length]))
            position += length
        return cls(sizes[:count], sizes[count:], patches)

    def explains(self, found: Sizes, parts: Sizes) -> bool:
        """Whether this change leads to parts of these sizes on its way; `parts` are the sizes that some must have."""
        if len(self.before) != len(found):
            return False
        room = sum(size_of(data) for _, _, data in self.patches)  # bytes by which a part can grow
        for number, start, data in self.patches:
            end = self.after[number] if number < len(found) else None
            if end is None or start + size_of(data) > end or start > (found[number] or 0) + room:
                return False
        for size, before, after, expected in zip(found, self.before, self.after, parts, strict=True):
            if size in (before, after):
                continue
            is_emptied = size == 0 and expected is not None and bool(self.patches)
            is_growing = size is not None and (before or 0) <= size <= (after or 0)
            if not is_emptied and not is_growing:
                return False
        return True

    def values(self, read: Callable[[int], Buffer | None]) -> list[Buffer] | None:
        """Return the parts after the change; `read` returns a stored one. Returns None if there is no chunk then."""
        if not self.patches:
            return None
        values: list[Buffer] = []
        for number, size in enumerate(self.after):
            patches = [(start, join(data)) for n, start, data in self.patches if n == number]
            if len(patches) == 1 and patches[0][0] == 0 and len(patches[0][1]) == size:
                values.append(patches[0][1])
            else:
                values.append(bytes(overwrite(read(number), patches)[:size]))
        return values

"""The journal of a chunk that is stored in parts, used to complete or undo an interrupted change of the chunk.

Rules
- Parts fit together if all of them exist and have the required sizes. Parts that fit together form the chunk, whatever
  its journal says, because another program may have written them after the journal.
- The journal is stored next to the chunk. Its name is `__zarrlite.journal.` followed by the last segment of the chunk's
  key. If an array has several `concat-parts` transformers, two of them may use the same chunk key. The names of the
  journals of all but the first transformer therefore contain a number.
- The journal records the sizes of the parts before and after the change, and the bytes that change. A checksum covers
  the whole journal.
- A journal that records no bytes means that the chunk counts as missing while its parts do not fit together. Such a
  journal is enough to create or erase a chunk.
- The bytes of a large part that is replaced as a whole are not recorded, because they would then be written twice.
  Instead, the journal records how to undo the change (the old bytes of the part that is emptied during the change), and
  a mark: bytes in which the new large part differs from the old one. Until the stored part contains the mark, the chunk
  is the old one.

parts_store.py defines the order in which the parts are changed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from zarrlite.buffers.pieces import Value, as_list, join, size_of
from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.crc32c import Crc32c
from zarrlite.errors import ChecksumError
from zarrlite.stores.base import overwrite
from zarrlite.stores.files import JOURNAL

NAME: Final = JOURNAL
_MAGIC = b"zarrlite journal 2\n"
_COUNTS = struct.Struct("<IIII")  # counts of parts, patches, undo patches and marks
_MISSING = 2**64 - 1  # represents the size of a missing part
_PATCH = struct.Struct("<IQQ")  # number of the part, offset in it, length
_CHECKSUM = Crc32c()
Sizes = Sequence[int | None]  # sizes of all parts of a chunk, None for missing ones
PartPatch = tuple[int, int, Value]  # number of the part, offset in it, the bytes to write there


def key_of(chunk: str, level: int) -> str:
    """Return the key of a chunk's journal; `level` is the number of `concat-parts` transformers before this one."""
    head, slash, name = chunk.rpartition("/")
    return f"{head}{slash}{NAME}{f'-{level}' if level else ''}.{name}"


def chunk_of(key: str, level: int) -> str | None:
    """Return the key of the chunk to which a journal belongs. Returns None if the key is not that of a journal."""
    head, slash, name = key.rpartition("/")
    prefix = key_of("", level)
    return f"{head}{slash}{name[len(prefix) :]}" if name.startswith(prefix) and name != prefix else None


class Journal(NamedTuple):
    """An unfinished change to a chunk."""

    before: Sizes
    after: Sizes
    patches: Sequence[PartPatch]
    back: Sequence[PartPatch] = ()  # patches that restore the old chunk if the mark has not been stored
    mark: PartPatch | None = None  # bytes that identify a new part that is not in the journal; may be empty

    def encode(self) -> list[Buffer]:
        """Return the stored form, as a list of buffers. Patches of the part with the mark are omitted."""
        marks = [] if self.mark is None else [self.mark]
        patches = [patch for patch in self.patches if self.mark is None or patch[0] != self.mark[0]]
        sizes = [_MISSING if size is None else size for size in (*self.before, *self.after)]
        head = [_MAGIC, _COUNTS.pack(len(self.before), len(patches), len(self.back), len(marks))]
        head.append(struct.pack(f"<{len(sizes)}Q", *sizes))
        data: list[Buffer] = []
        for number, start, value in (*patches, *self.back, *marks):
            head.append(_PATCH.pack(number, start, size_of(value)))
            data += [join([piece]) for piece in as_list(value)]
        form = [b"".join(head), *data]
        return [*form, _CHECKSUM.frame([*form])[1]]

    @classmethod
    def parse(cls, data: bytes) -> Journal | None:
        """Parse the stored form of a journal. Returns None if its format is unknown or it is damaged."""
        position = len(_MAGIC) + _COUNTS.size
        if not data.startswith(_MAGIC) or len(data) < position:
            return None
        try:
            _CHECKSUM.verify(data)
            count, changed, undone, marked = _COUNTS.unpack_from(data, len(_MAGIC))
            sizes = [None if n == _MISSING else n for n in struct.unpack_from(f"<{2 * count}Q", data, position)]
            position += 16 * count
            listed = range(changed + undone + marked)
            heads = [_PATCH.unpack_from(data, position + i * _PATCH.size) for i in listed]
        except (ChecksumError, struct.error):
            return None
        position += len(heads) * _PATCH.size
        patches: list[PartPatch] = []
        for number, start, length in heads:
            patches.append((number, start, data[position : position + length]))
            position += length
        back, marks = patches[changed : changed + undone], patches[changed + undone :]
        return cls(sizes[:count], sizes[count:], patches[:changed], back, next(iter(marks), None))

    def explains(self, found: Sizes, parts: Sizes) -> bool:
        """Whether the parts can have the sizes `found` during this change. `parts` contains the required sizes."""
        if len(self.before) != len(found) or not self._can_be_applied(found):
            return False
        for size, before, after, expected in zip(found, self.before, self.after, parts, strict=True):
            if size in (before, after):
                continue
            is_emptied = size == 0 and expected is not None and bool(self.patches)
            is_growing = size is not None and (before or 0) <= size <= (after or 0)
            if not is_emptied and not is_growing:
                return False
        return True

    def _can_be_applied(self, found: Sizes) -> bool:
        """Whether patches can be applied to parts of these sizes.

        A patch must end within the final size of its part. It may begin after the current end of the part, but the
        gap must not exceed the total size of all patches.
        """
        room = sum(size_of(data) for _, _, data in self.patches)
        ends = [*((patch, self.after) for patch in self.patches), *((patch, self.before) for patch in self.back)]
        for (number, start, data), sizes in ends:
            end = sizes[number] if number < len(found) else None
            if end is None or start + size_of(data) > end or start > (found[number] or 0) + room:
                return False
        return self.mark is None or self.mark[0] < len(found)

    def remaining(self, stored: Sequence[Buffer | None]) -> Journal:
        """Return the change that completes the chunk: this one or, if the mark is not stored, one that undoes it."""
        if self.mark is None:
            return self
        number, start, data = self.mark
        part, data = stored[number], join(data)
        if part is not None and len(part) == self.after[number] and part[start : start + len(data)] == data:
            return self
        return Journal(self.before, self.before, self.back)

    def values(self, stored: Sequence[Buffer | None]) -> list[Buffer] | None:
        """Return the parts after the change, given the stored parts. Returns None if the change erases the chunk."""
        if not self.patches:
            return None
        values: list[Buffer] = []
        for number, size in enumerate(self.after):
            patches = [(start, join(data)) for n, start, data in self.patches if n == number]
            if len(patches) == 1 and patches[0][0] == 0 and len(patches[0][1]) == size:
                values.append(patches[0][1])
            else:
                values.append(bytes(overwrite(stored[number], patches)[:size]))
        return values

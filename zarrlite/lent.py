"""Memory that a thread uses again and again: new memory costs more than a copy.

Rules
- Whoever takes some has it alone until it is given back; who forgets to give it back has cost some time, nothing else.
- A thread keeps two pieces: one for a value as it is stored, one for what that decodes to.
"""

from __future__ import annotations

from _thread import _local as local  # as `threading` has it, which takes a millisecond to import
from typing import Final

MOST: Final = 2**23  # bytes of a piece that a thread keeps
KEPT: Final = 2  # pieces that it keeps
_local = local()


def take(size: int) -> memoryview:
    """Memory of at least this size, most often what this thread gave back before."""
    kept: list[memoryview] = _local.__dict__.setdefault("kept", [])
    for i, memory in enumerate(kept):
        if len(memory) >= size:
            return kept.pop(i)
    return memoryview(bytearray(size))


def give(memory: memoryview) -> None:
    """Give memory back, to be used again."""
    kept: list[memoryview] = _local.__dict__.setdefault("kept", [])
    if len(memory) <= MOST:
        kept.append(memory)
        kept.sort(key=len)  # the smallest that is large enough is taken first
        del kept[:-KEPT]

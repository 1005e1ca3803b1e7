"""Memory that a thread uses again and again: new memory costs more than a copy.

Rules
- Whoever takes some has it alone until it is given back; who forgets to give it back has cost some time, nothing else.
- A thread keeps two pieces: one for a value as it is stored, one for what that decodes to.
"""

from __future__ import annotations

from _thread import _local as local  # as `threading` has it, which takes a millisecond to import
from typing import Final

MOST: Final = 2**23  # bytes of a piece that a thread keeps
ALIGNMENT: Final = 64  # of memory that a thread keeps, in bytes
KEPT: Final = 2  # pieces that it keeps
_local = local()


def take(size: int) -> memoryview:
    """Memory of at least this size, most often what this thread gave back before."""
    kept = _all_kept()
    for i, memory in enumerate(kept):
        if len(memory) >= size:
            del kept[i]
            break
    else:
        memory = _aligned(size)
    _local.kept = kept
    return memory


def give(memory: memoryview) -> None:
    """Give memory back, to be used again."""
    if len(memory) <= MOST:
        # the smallest that is large enough is taken first
        _local.kept = sorted([*_all_kept(), memory], key=len)[-KEPT:]


def _aligned(size: int) -> memoryview:
    """New memory, to whose start a kernel copies up to twice as fast as to where large blocks begin by themselves."""
    from ctypes import addressof, c_char

    memory = memoryview(bytearray(size + ALIGNMENT))
    start = -addressof(c_char.from_buffer(memory)) % ALIGNMENT
    return memory[start : start + size]


def _all_kept() -> list[memoryview]:
    """What this thread keeps, which it has no more: a signal handler that comes now must not take the same."""
    kept: list[memoryview] = _local.__dict__.pop("kept", None) or []
    return kept

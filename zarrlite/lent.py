"""Memory that a thread uses again and again: new memory costs more than a copy.

Rules
- Whoever takes some has it alone until it is given back; who forgets to give it back has cost some time, nothing else.
"""

from __future__ import annotations

import threading
from typing import Final

MOST: Final = 2**23  # bytes that a thread keeps
_local = threading.local()


def take(size: int) -> memoryview:
    """Memory of at least this size, most often what this thread gave back before."""
    memory: memoryview | None = getattr(_local, "memory", None)
    if memory is None or len(memory) < size:
        return memoryview(bytearray(size))
    _local.memory = None  # whoever needs some before it is given back gets other memory
    return memory


def give(memory: memoryview) -> None:
    """Give memory back, to be used again."""
    kept: memoryview | None = getattr(_local, "memory", None)
    if len(memory) <= MOST and (kept is None or len(kept) < len(memory)):
        _local.memory = memory

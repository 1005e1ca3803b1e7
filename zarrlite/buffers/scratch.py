"""Scratch memory that each thread reuses, because allocating and first touching new memory costs more than a copy.

Rules
- A buffer belongs to the thread that acquired it until it is released. Not releasing it is safe: it only costs one
  allocation.
- A thread keeps two buffers: one for a stored value, one for its decoded form. Threads of the pool that waits for
  requests share buffers, and hold them only while they decode or encode (`threads.work`).
"""

from __future__ import annotations

from zarrlite.threads import kept
from zarrlite.tuning import MAX_SCRATCH_BYTES, SCRATCH_ALIGNMENT, SCRATCH_BUFFERS


def acquire(size: int) -> memoryview:
    """Return a buffer of at least `size` bytes, usually one that this thread released before."""
    buffers = _take_all()
    for i, memory in enumerate(buffers):
        if len(memory) >= size:
            del buffers[i]
            break
    else:
        memory = _aligned(size)
    kept.scratch = buffers
    return memory


def release(memory: memoryview) -> None:
    """Return a buffer to this thread for reuse."""
    if len(memory) <= MAX_SCRATCH_BYTES:
        # sorted, so that `acquire` finds the smallest sufficient buffer first
        kept.scratch = sorted([*_take_all(), memory], key=len)[-SCRATCH_BUFFERS:]


def _aligned(size: int) -> memoryview:
    """Allocate aligned memory: the kernel copies into it up to twice as fast as into unaligned memory from malloc."""
    from ctypes import addressof, c_char  # imported here: keeps `import zarrlite` light

    memory = memoryview(bytearray(size + SCRATCH_ALIGNMENT))
    start = -addressof(c_char.from_buffer(memory)) % SCRATCH_ALIGNMENT
    return memory[start : start + size]


def _take_all() -> list[memoryview]:
    """Take all buffers of this thread off its list, so that a signal handler cannot take one of them as well."""
    buffers: list[memoryview] = kept.__dict__.pop("scratch", None) or []
    return buffers

"""A lock that a `with` statement always releases, even if an interrupt (Ctrl-C) arrives while it acquires the lock.

Rules
- Since Python 3.14, a signal handler may run after an `__enter__` written in C has returned and before the block of
  the `with` statement begins. If the handler raises an exception there, `__exit__` is not called. `__enter__` is
  therefore written in Python, so that no handler runs between the last call in it and the beginning of the block.
  Earlier versions of Python run no handler at this point.
- `__exit__` is inherited from the built-in lock, which is written in C: a handler may run before the first instruction
  of a Python function, but not before a C function is called.
- Every other context manager whose `__enter__` is written in C has this problem: use `try` and `finally` for those that
  must be closed.
"""

from __future__ import annotations

import sys
from _thread import RLock

if sys.version_info < (3, 14):
    Guard = RLock
else:

    class Guard(RLock):
        """A lock that is re-entrant, because a signal handler that runs while it is held may acquire it again."""

        __slots__ = ()

        def __enter__(self) -> bool:
            held: list[bool] = []
            try:
                held.extend(map(self.acquire, (True,)))  # `held` is changed before a signal handler can run
            except BaseException:
                if held:
                    self.release()
                raise
            return True

"""A lock for `with` statements that an interrupt (Ctrl-C) cannot leave locked.

Rules
- Since Python 3.14, a signal handler may run after an `__enter__` written in C has returned and before the block of
  the `with` statement begins. An exception that the handler raises there skips `__exit__`. `__enter__` is therefore
  written in Python: no handler runs after its last call has returned. Earlier versions run no handler at this point.
- `__exit__` is inherited from the built-in lock: a handler may run before the first instruction of a Python function,
  but not before a C function.
- Every other object with an `__enter__` in C has this problem: use `try` and `finally` for those that must be closed.
"""

from __future__ import annotations

import sys
from _thread import RLock

if sys.version_info < (3, 14):
    Guard = RLock
else:

    class Guard(RLock):
        """A re-entrant lock, because a signal handler may run while it is held, and acquire it again."""

        __slots__ = ()

        def __enter__(self) -> bool:
            held: list[bool] = []
            try:
                held.extend(map(self.acquire, (True,)))  # stores the result before a handler can run
            except BaseException:
                if held:
                    self.release()
                raise
            return True

"""A lock for `with` statements that an interrupt (Ctrl-C) cannot leave locked.

Rules
- Since Python 3.14, a signal handler may run after the `__enter__` of a C class has returned and before the block of
  the `with` statement begins. An exception that it raises there skips `__exit__`. So `__enter__` is Python code, which
  runs no handler after its last call has returned. Earlier versions run none there.
- `__exit__` is that of the built-in lock: a handler may run before the first instruction of Python code, but not before
  a C function.
- The same holds for every object with an `__enter__` in C: use `try` and `finally` for those that must be closed.
"""

from __future__ import annotations

import sys
from _thread import RLock

if sys.version_info < (3, 14):
    Guard = RLock
else:

    class Guard(RLock):
        """A re-entrant lock: a signal handler may run while it is held, and acquire it again."""

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

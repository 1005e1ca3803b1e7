"""A property that is computed once.

Before Python 3.12, `functools.cached_property` computes the value under a lock. A child process that is forked while
the lock is held would inherit the locked lock and wait for it forever.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A cached property without a lock: two threads may both compute the value, and either result is correct."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


__all__ = ["cached_property"]

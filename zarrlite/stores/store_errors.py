"""Conversion of file system errors, and of exceptions in users' code, to store errors that name the key.

Rules
- Every OSError becomes a StoreError with the key, the errno, and the original error as its cause.
- A StoreError is passed on unchanged: it already names its key.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

from zarrlite.errors import StoreError

_REASONS = {
    errno.ENOTDIR: "one of its parents is a stored value",
    errno.EISDIR: "it is a prefix of other keys",
    errno.ENAMETOOLONG: "its path, or a name in it, is too long for the file system",
}


class as_store_error:
    """A context that turns an OSError into a StoreError. `action` completes "'key' cannot be ..." ("read", "written").

    This is a class because it is entered for every value, and a generator function would take longer to enter.
    """

    __slots__ = ("action", "key")

    def __init__(self, action: str, key: str) -> None:
        self.action = action
        self.key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            raise store_error(error, self.action, self.key) from error


def store_error(error: OSError, action: str, key: str) -> StoreError:
    """Return the StoreError to raise for an OSError."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return StoreError(f"{key!r} cannot be {action}: {reason}", key=key, errno=error.errno)


def foreign_error(error: Exception, named: str | Sequence[tuple[Any, ...]], action: str) -> StoreError:
    """Return the StoreError for an exception in a user's store; `named` is a key, a prefix or a batch of requests."""
    keys = [named] if isinstance(named, str) else [*dict.fromkeys(request[0] for request in named)]
    others = ""
    if len(keys) == 2:
        others = f" or {keys[1]!r}"
    elif len(keys) > 2:
        others = f" or one of {len(keys) - 1} others"
    message = f"{keys[0]!r}{others} cannot be {action}: {type(error).__name__}: {error}"
    return StoreError(message, key=keys[0], errno=getattr(error, "errno", None))

"""What goes wrong with files, as errors that name the key.

Rules
- Every OSError becomes a StoreError with the key, the errno, and the original as its cause.
"""

from __future__ import annotations

import errno

from zarrlite.errors import StoreError

_REASONS = {
    errno.ENOTDIR: "one of its parents is a value",
    errno.EISDIR: "it is a prefix of other keys",
    errno.ENAMETOOLONG: "the file system takes no names as long as that",
}


class failures:
    """While something is done with a key."""

    __slots__ = ("done", "key")

    def __init__(self, done: str, key: str) -> None:
        self.done = done
        self.key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            raise failure(error, self.done, self.key) from error


def failure(error: OSError, done: str, key: str) -> StoreError:
    """The error to raise."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return StoreError(f"{key!r} cannot be {done}: {reason}", key=key, errno=error.errno)

"""What goes wrong with files, as errors that name the key.

Rules
- Every OSError becomes a StoreError with the key, the errno, and the original as its cause.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from zarrlite.errors import StoreError

_REASONS = {
    errno.ENOTDIR: "one of its parents is a value",
    errno.EISDIR: "it is a prefix of other keys",
    errno.ENAMETOOLONG: "the file system takes no names as long as that",
}


@contextlib.contextmanager
def failures(done: str, key: str) -> Iterator[None]:
    """While something is done with a key."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise failure(error, done, key) from error


def failure(error: OSError, done: str, key: str) -> StoreError:
    """The error to raise."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return StoreError(f"{key!r} cannot be {done}: {reason}", key=key, errno=error.errno)

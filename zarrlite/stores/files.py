"""Operations on files and directories, mostly by descriptor. The local store is built on them.

Rules
- Nothing here depends on keys, roots or locks, and all errors are OSErrors.
- A read allocates memory for its whole range, so callers compare large ranges (`MAX_READ`) with the size of the file
  first. Short reads and writes are continued until they are complete.
- Unlike a plain call, `(fd,) = map(os.open, ...)` stores the descriptor without a check for signals after the call, so
  an interrupt cannot lose it before the `try` that closes it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Sequence
from typing import Final

from zarrlite.buffers.pieces import LazyPiece, Value
from zarrlite.buffers.ranges import Buffer
from zarrlite.stores.base import flat

_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not block

# Flags for os.open
READ: Final = os.O_RDONLY | _CLOEXEC | _NONBLOCK
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
READ_HERE: Final = READ | NOFOLLOW  # fails on a symlink
DIRECTORY: Final = READ | getattr(os, "O_DIRECTORY", 0)
READ_AND_WRITE: Final = os.O_RDWR | _CLOEXEC | _NONBLOCK
CREATE: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _CLOEXEC
_FD_LINKS = "/proc/self/fd"
# creates a file without a name (Linux); 0 if the platform does not support such files, or cannot link them later
TMPFILE: Final[int] = os.O_TMPFILE | os.O_WRONLY | _CLOEXEC if os.path.isdir(_FD_LINKS) else 0

# Error numbers
SYMLINK: Final = frozenset({errno.ELOOP, errno.EMLINK})  # NOFOLLOW found a symlink
MISSING: Final = SYMLINK | {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}  # there is no file at the path
NOT_A_FILE: Final = frozenset({errno.EISDIR, errno.ENXIO})  # directories and sockets cannot be opened for writing
NOT_WRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY})
DISK_FULL: Final = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})

RESERVED: Final = "__zarrlite."  # prefix of the names of this library's own files
TEMPORARY: Final = RESERVED + "tmp."  # prefix of the names of files that are being written
LOCK: Final = RESERVED + "lock."  # prefix of the names of lock files
JOURNAL: Final = RESERVED + "journal"  # prefix of journal names (parts_journal.py); a journal shares its value's lock
FILE_TYPE_MASK: Final = 0o170000  # the bits of a file mode that contain the file type (stat.S_IFREG, ...)


def _seek_and_read(fd: int, count: int, offset: int) -> bytes:
    """Read as `os.pread` does, on platforms without it. The file position may move: threads share no descriptor."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, count)


def _seek_and_write(fd: int, value: Buffer, offset: int) -> int:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, value)


pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _seek_and_read)
_pwrite: Callable[[int, Buffer, int], int] = getattr(os, "pwrite", _seek_and_write)
_HAS_PREADV = hasattr(os, "preadv")
_MAX_GATHERED = 512 if hasattr(os, "writev") else 1  # pieces written by one call
MAX_READ: Final = 2**30  # bytes; a range that ends beyond this is read only after checking the size of the file
MAX_FILE_END = 2**62  # bytes; some file systems report a larger size for a directory
_count = itertools.count()
UNKNOWN_MACHINE: Final = "unknown"


def _machine() -> str:
    """Return an identifier of this boot and container, within which process ids are unique.

    Returns "unknown" if the system does not provide one.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().replace("-", "")[:12]
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return UNKNOWN_MACHINE


MACHINE: Final = _machine()
_token = os.urandom(8).hex()  # distinguishes processes with the same id on other machines or in other containers


def read(fd: int, start: int, stop: int) -> bytes:
    """Read the bytes between two offsets, fewer if the file ends before `stop`. Allocates memory for all of them."""
    if start == stop:
        return b""
    data = pread(fd, stop - start, start)
    if len(data) == stop - start:
        return data
    pieces = []
    while data:  # one call reads at most 2 GiB; no data means the end of the file
        pieces.append(data)
        start += len(data)
        data = pread(fd, stop - start, start) if start < stop else b""
    return b"".join(pieces)


def read_into(memory: memoryview | None, fd: int, start: int, stop: int) -> Buffer:
    """Read the bytes between two offsets, into the start of `memory` if there is room."""
    if memory is None or len(memory) < stop - start or start == stop or not _HAS_PREADV:
        return read(fd, start, stop)
    view = memory[: stop - start]
    filled = os.preadv(fd, (view,), start)
    while filled < stop - start:
        count = os.preadv(fd, (view[filled:],), start + filled)
        if not count:
            return view[:filled]  # the file ends here
        filled += count
    return view


def read_exactly(memory: memoryview | None, fd: int, size: int) -> Buffer | None:
    """Read a file that must have `size` bytes, with a single system call. Returns None if the size differs.

    The call requests one byte more, so no second call is needed to check the size.
    """
    if memory is None or len(memory) < size or not _HAS_PREADV:
        data = pread(fd, size + 1, 0)
        return data if len(data) == size else None
    view = memory[:size]
    return view if os.preadv(fd, (view, bytearray(1)), 0) == size else None


def temporary_name(directory: str) -> str:
    """Return a unique path in a directory. No other thread or process will use this path."""
    return f"{directory}/{TEMPORARY}{os.getpid()}.{next(_count)}.{MACHINE}.{_token}"


def write(path: str, value: Value, *, fsync: bool) -> None:
    """Write a new file."""
    (fd,) = map(os.open, (path,), (CREATE,), (0o666,))
    try:
        write_to(fd, value, fsync=fsync)
    finally:
        os.close(fd)


def write_to(fd: int, value: Value, *, fsync: bool) -> None:
    """Write a value to an empty file, one piece at a time."""
    if not isinstance(value, list):
        _write(fd, _flat(value))
    else:
        pending: list[bytes | memoryview] = []
        for piece in value:
            if isinstance(piece, LazyPiece):
                _write_gathered(fd, pending)
                pending = []
                for block in piece:
                    _write(fd, _flat(block))
            else:
                pending.append(_flat(piece))
        _write_gathered(fd, pending)
    if fsync:
        os.fsync(fd)


def _write(fd: int, view: bytes | memoryview) -> None:
    while view:
        view = view[os.write(fd, view) :]


def _flat(piece: Buffer) -> bytes | memoryview:
    return piece if type(piece) is bytes else flat(piece)


def _write_gathered(fd: int, views: list[bytes | memoryview]) -> None:
    """Write several pieces with few system calls."""
    for first in range(0, len(views), _MAX_GATHERED):
        batch = views[first : first + _MAX_GATHERED]
        written = os.writev(fd, batch) if _MAX_GATHERED > 1 else 0
        batch_size = sum(map(len, batch))
        if written < batch_size:
            for view in batch:
                _write(fd, view[written:])
                written = max(0, written - len(view))


def link_tmpfile(fd: int, path: str) -> bool:
    """Link a file without a name to a path. Returns False if the path exists."""
    try:
        # `src_dir_fd` has no effect on an absolute path, but Python follows the link only if this argument is passed
        os.link(f"{_FD_LINKS}/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
    except FileExistsError:
        return False
    return True


def size(fd: int) -> int | None:
    """Return the size of an open file in bytes. Returns None if it is not a regular file, for example a directory."""
    try:
        end = os.lseek(fd, 0, os.SEEK_END)  # costs a third of fstat
    except OSError:  # a pipe, or a directory on some file systems
        end = 0
    if 0 < end < MAX_FILE_END:
        return end
    info = os.fstat(fd)
    return info.st_size if info.st_mode & FILE_TYPE_MASK == stat.S_IFREG else None


def open_single(path: str) -> int | None:
    """Open a regular file for reading and writing.

    Returns None if it is missing, is a symlink, is not a regular file, or has other hard links.
    """
    try:
        (fd,) = map(os.open, (path,), (READ_AND_WRITE | NOFOLLOW,))
    except OSError as error:
        if error.errno in MISSING or error.errno in NOT_A_FILE:
            return None
        raise
    is_single = False
    try:
        info = os.fstat(fd)
        is_single = info.st_mode & FILE_TYPE_MASK == stat.S_IFREG and info.st_nlink == 1
    finally:
        if not is_single:
            os.close(fd)
    return fd if is_single else None


def overwrite(fd: int, pieces: Sequence[tuple[int, memoryview]], *, fsync: bool) -> None:
    """Write pieces to a file at their offsets, in order. If that fails, restore the previous bytes and length."""
    length = os.lseek(fd, 0, os.SEEK_END)
    old = [(start, read(fd, start, min(start + len(piece), length))) for start, piece in pieces if start < length]
    try:
        _write_all(fd, pieces, fsync)
    except BaseException:
        for start, value in reversed(old):
            with contextlib.suppress(OSError):  # continue restoring the rest
                _write_at(fd, start, memoryview(value))
        with contextlib.suppress(OSError):
            os.ftruncate(fd, length)
        raise


def _write_all(fd: int, pieces: Sequence[tuple[int, memoryview]], fsync: bool) -> None:
    for start, piece in pieces:
        _write_at(fd, start, piece)
        if not piece and os.fstat(fd).st_size < start:
            os.ftruncate(fd, start)  # an empty piece beyond the end extends the file
        if fsync:
            os.fsync(fd)  # before writing the next piece: an index must not be durable before the data it points to


def _write_at(fd: int, start: int, value: memoryview) -> None:
    while value:
        count = _pwrite(fd, value, start)
        value, start = value[count:], start + count


def is_journal(path: str) -> bool:
    """Whether a path, or a key, is that of a journal."""
    return JOURNAL in path and path.startswith(JOURNAL, path.rfind("/") + 1)


def has_entries(directory: str) -> bool:
    """Whether a directory is not empty. Returns False if it is missing or cannot be read."""
    try:
        (entries,) = map(os.scandir, (directory,))
        try:
            return next(entries, None) is not None
        finally:
            entries.close()
    except OSError:
        return False


def discard(path: str) -> None:
    """Remove a file, ignoring errors."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def make_directories(directory: str, *, fsync: bool) -> str:
    """Create a directory and its missing parents. Returns the deepest directory that existed before."""
    missing: list[str] = []
    existing = directory
    while not os.path.lexists(existing):
        missing.append(existing)
        existing = os.path.dirname(existing)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another writer has created it in the meantime
            os.mkdir(path)
        if fsync:
            sync_directory(os.path.dirname(path))
    return existing


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable. Does nothing if the directory is missing, or is a file."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (fd,) = map(os.open, (directory,), (DIRECTORY,))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

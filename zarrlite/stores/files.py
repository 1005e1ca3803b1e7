"""Files and directories, by descriptor: what the local store is made of.

Rules
- Nothing here knows about keys, roots or locks, and everything raises OSError.
- Reads never ask for more than the file holds; reads and writes go on until they are complete.
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
READ: Final = os.O_RDONLY | _CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # nonblocking: a fifo must not hang the reader
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
READ_HERE: Final = READ | NOFOLLOW  # and nowhere else
DIRECTORY: Final = READ | getattr(os, "O_DIRECTORY", 0)
SYMLINK: Final = frozenset({errno.ELOOP, errno.EMLINK})  # what NOFOLLOW says of one
MISSING: Final = SYMLINK | {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}  # a path that leads nowhere
NO_FILE: Final = frozenset({errno.EISDIR, errno.ENXIO})  # what cannot be written but is there: a directory, a socket
FULL: Final = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})  # no room for what is written
_BY_DESCRIPTOR = "/proc/self/fd"
# to make a file that has no name yet (Linux); 0: there is no such thing, or no way to give it one
UNNAMED: Final[int] = os.O_TMPFILE | os.O_WRONLY | _CLOEXEC if os.path.isdir(_BY_DESCRIPTOR) else 0
TEMPORARY: Final = "__zarrlite.tmp."  # how the names of files that are being written begin


def _seek_and_read(fd: int, count: int, offset: int) -> bytes:
    """`os.pread`, where there is none: the descriptor is never shared, so its position is ours."""
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, count)


def _seek_and_write(fd: int, value: Buffer, offset: int) -> int:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, value)


pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _seek_and_read)
_pwrite: Callable[[int, Buffer, int], int] = getattr(os, "pwrite", _seek_and_write)
_FILLS = hasattr(os, "preadv")  # whether memory can be filled from an offset of a file
_MOST_GATHERED = 512 if hasattr(os, "writev") else 1  # pieces that are written at once
HUGE: Final = 2**62  # the end of a directory on some file systems
FORMAT = 0o170000  # the bits of a mode that say what kind of file it is
_count = itertools.count()
_token = os.urandom(8).hex()  # two processes of one number, on two machines or in two containers, differ in it


def read(fd: int, start: int, stop: int) -> bytes:
    """The bytes of a file between two offsets that are known to lie within it."""
    if start == stop:
        return b""
    data = pread(fd, stop - start, start)
    if len(data) == stop - start:
        return data
    pieces = []
    while data:  # the kernel reads at most 2 GiB at once; no data: the file has been cut meanwhile
        pieces.append(data)
        start += len(data)
        data = pread(fd, stop - start, start) if start < stop else b""
    return b"".join(pieces)


def read_into(memory: memoryview | None, fd: int, start: int, stop: int) -> Buffer:
    """Read the bytes of a file between two offsets, into memory if there is some and it has room for them."""
    if memory is None or len(memory) < stop - start or start == stop or not _FILLS:
        return read(fd, start, stop)
    view = memory[: stop - start]
    count = os.preadv(fd, (view,), start)
    while count < stop - start:
        more = os.preadv(fd, (view[count:],), start + count)
        if not more:
            return view[:count]  # the file has been truncated meanwhile
        count += more
    return view


def temporary_name(directory: str) -> str:
    """A path in a directory that nobody else will write to."""
    return f"{directory}/{TEMPORARY}{os.getpid()}.{next(_count)}.{_token}"


def write(path: str, value: Value, *, fsync: bool) -> None:
    """Write a new file."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _CLOEXEC, 0o666)
    try:
        write_to(fd, value, fsync=fsync)
    finally:
        os.close(fd)


def write_to(fd: int, value: Value, *, fsync: bool) -> None:
    """Write a value to an empty file."""
    if not isinstance(value, list):
        _write(fd, _flat(value))
    else:
        ready: list[bytes | memoryview] = []
        for piece in value:
            if isinstance(piece, LazyPiece):
                _gather(fd, ready)
                ready = []
                for block in piece:
                    _write(fd, _flat(block))
            else:
                ready.append(_flat(piece))
        _gather(fd, ready)
    if fsync:
        os.fsync(fd)


def _write(fd: int, view: bytes | memoryview) -> None:
    while view:
        view = view[os.write(fd, view) :]


def _flat(piece: Buffer) -> bytes | memoryview:
    return piece if type(piece) is bytes else flat(piece)


def _gather(fd: int, views: list[bytes | memoryview]) -> None:
    """Write several pieces, many of them by one call."""
    for first in range(0, len(views), _MOST_GATHERED):
        some = views[first : first + _MOST_GATHERED]
        done, size = (os.writev(fd, some) if _MOST_GATHERED > 1 else 0), sum(map(len, some))
        if done < size:
            for view in some:
                _write(fd, view[done:])
                done = max(0, done - len(view))


def give_name(fd: int, path: str) -> bool:
    """Put a file that has no name at a path; False: something is there."""
    try:
        # with `src_dir_fd`, which an absolute path has no use for, since Python follows the link only then
        os.link(f"{_BY_DESCRIPTOR}/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
    except FileExistsError:
        return False
    return True


def size(fd: int) -> int | None:
    """Bytes of an open file; None: it is no regular file, but a directory perhaps."""
    try:
        end = os.lseek(fd, 0, os.SEEK_END)  # costs a third of fstat
    except OSError:  # a pipe, or a directory of some file systems
        end = 0
    if 0 < end < HUGE:
        return end
    info = os.fstat(fd)
    return info.st_size if info.st_mode & FORMAT == stat.S_IFREG else None


def open_single(path: str) -> int | None:
    """The regular file at a path, to be read and written; None: there is none of that name only, and no symlink."""
    try:
        fd = os.open(path, os.O_RDWR | NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | _CLOEXEC)
    except OSError as error:
        if error.errno in MISSING or error.errno in NO_FILE:
            return None
        raise
    info = os.fstat(fd)
    if info.st_mode & FORMAT == stat.S_IFREG and info.st_nlink == 1:
        return fd
    os.close(fd)
    return None


def overwrite(fd: int, pieces: Sequence[tuple[int, memoryview]], *, fsync: bool) -> None:
    """Write pieces into a file where they belong, in order; if that fails, put back what was there."""
    length = os.lseek(fd, 0, os.SEEK_END)
    old = [(start, read(fd, start, min(start + len(piece), length))) for start, piece in pieces if start < length]
    try:
        for start, piece in pieces:
            _write_at(fd, start, piece)
            if not piece and os.fstat(fd).st_size < start:
                os.ftruncate(fd, start)  # nothing, behind the end
            if fsync:
                os.fsync(fd)  # each before the next: an index must not be durable before what it points at
    except BaseException:
        for start, value in reversed(old):
            with contextlib.suppress(OSError):  # of the others, and of the length, as much as can be
                _write_at(fd, start, memoryview(value))
        with contextlib.suppress(OSError):
            os.ftruncate(fd, length)
        raise


def _write_at(fd: int, start: int, value: memoryview) -> None:
    while value:
        n = _pwrite(fd, value, start)
        value, start = value[n:], start + n


def discard(path: str) -> None:
    """Remove a file, if that is possible."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def make_directories(directory: str, *, fsync: bool) -> str:
    """Make a directory and the missing ones above it; the lowest one that was there before."""
    missing: list[str] = []
    existing = directory
    while not os.path.lexists(existing):
        missing.append(existing)
        existing = os.path.dirname(existing)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # somebody else makes it too
            os.mkdir(path)
        if fsync:
            sync_directory(os.path.dirname(path))
    return existing


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable; nothing to do if it has gone."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(directory, DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

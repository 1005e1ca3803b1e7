"""Locks that are acquired by creating a file, for file systems that cannot lock files or directories.

Rules
- The lock of a path is a file next to it. Its name is `__zarrlite.lock.` followed by the name of the path. Creating the
  file acquires the lock, on any file system and across machines. Threads of the same process exclude each other by
  other means (filelock.py).
- The file identifies its holder by process id, start time of the process, and machine. It is written under a temporary
  name and then linked, so that it always identifies its holder. Where links are not supported, it is created and then
  written: a process that is killed in between leaves a file that does not identify its holder.
- A lock is stale if its process ran on this machine and has ended. A process may remove the lock of another process
  only if it is stale, and only while holding a lock of the lock file, so that two processes never both remove it.
- A process waits for a lock that is not stale. If the wait takes too long, the error names the holder, and the file to
  remove if the holder has ended.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import warnings

from zarrlite.stores.files import CREATE, LOCK, READ, discard, make_directories, temporary_name, write
from zarrlite.stores.inode_locks import pauses

_MAX_READ = 4096  # bytes; every file that is read here is shorter
_MAX_NAME = 200  # bytes; a longer file name is replaced by its hash, so that the name of the lock file is not too long


class LockFile:
    """A lock on a path, implemented as a file next to it. It can be acquired and released once."""

    def __init__(self, path: str) -> None:
        directory, name = os.path.split(path)
        if len(os.fsencode(name)) > _MAX_NAME:
            import hashlib  # imported here because it is slow to load, and names this long are rare

            name = hashlib.sha256(os.fsencode(name)).hexdigest()
        self.path = os.path.join(directory, LOCK + name)
        self._temporary = ""  # path of the temporary file that will be linked; empty if there is no such file
        self._links: list[None] = []  # not empty once the temporary file has been linked to `path`
        self._fds: list[int] = []  # descriptor of the lock file, if that was created without a link
        self._closing = map(os.close, self._fds)
        # runs at most once, because a later file at this path belongs to another lock
        self._removing = map(os.unlink, (self.path,))

    def acquire(self, deadline: float | None, *, fsync: bool = False) -> str:
        """Wait until the file can be created. A missing directory is created, too.

        Returns the deepest directory that existed before. Raises TimeoutError if another process holds the lock.
        """
        existing = os.path.dirname(self.path)
        for _ in pauses(deadline):
            try:
                if self._try_acquire():
                    return existing
            except FileNotFoundError:
                with contextlib.suppress(FileNotFoundError):  # other writers may remove the directory in the meantime
                    created = make_directories(os.path.dirname(self.path), fsync=fsync)
                    existing = min(existing, created, key=len)
        holder = _describe(_read(self.path))
        remedy = f"remove {self.path!r} if that process has ended"
        raise TimeoutError(errno.ETIMEDOUT, f"{holder} has not released its lock in time; {remedy}")

    def _try_acquire(self) -> bool:
        """Create the file. Returns False if it exists; a stale file is removed, and the next attempt may succeed.

        Raises FileNotFoundError if there is no such directory.
        """
        identity = _identity(os.getpid()).encode()
        try:
            if not self._temporary:
                self._temporary = temporary_name(os.path.dirname(self.path))
                write(self._temporary, identity, fsync=False)
            self._links.extend(map(os.link, (self._temporary,), (self.path,)))
        except FileExistsError:
            self._remove_stale()
            return False
        except FileNotFoundError:
            self._discard_temporary()
            raise
        except OSError:  # links are not supported; or nothing can be written, and `os.open` fails, too
            try:
                self._fds.extend(map(os.open, (self.path,), (CREATE,), (0o666,)))
            except FileExistsError:
                self._remove_stale()
                return False
            os.write(self._fds[0], identity)
            any(self._closing)
        self._discard_temporary()
        return True

    def _discard_temporary(self) -> None:
        if self._temporary:
            discard(self._temporary)
            self._temporary = ""

    def release(self) -> None:
        """Remove the file, if it was created. May be called repeatedly."""
        self._discard_temporary()
        if not self._links and not self._fds:
            return
        try:
            any(self._closing)
        finally:
            try:
                any(self._removing)
            except FileNotFoundError:
                pass
            except OSError as error:
                warnings.warn(f"{self.path!r} cannot be removed: {error.strerror}", RuntimeWarning, stacklevel=2)

    def _remove_stale(self) -> None:
        """Remove the file if the process that holds it has ended."""
        if not _has_ended(_read(self.path)):
            return
        guard = LockFile(self.path)
        try:
            # read the file again: before the guard was acquired, another process may have replaced it with its own
            if guard._try_acquire() and _has_ended(_read(self.path)):
                os.unlink(self.path)
        except FileNotFoundError:
            return  # another process has removed it
        finally:
            guard.release()


def _read(path: str) -> str:
    """Read a small file. Returns an empty string if it cannot be read.

    Unlike with the built-in `open`, an interrupt cannot lose the descriptor (files.py).
    """
    try:
        (fd,) = map(os.open, (path,), (READ,))
        try:
            return os.read(fd, _MAX_READ).decode(errors="replace")
        finally:
            os.close(fd)
    except OSError:
        return ""


@functools.cache
def _machine() -> str:
    """Return an identifier of this machine, its current boot, and the namespace of the process ids."""
    words = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    with contextlib.suppress(OSError):
        words += [_read("/proc/sys/kernel/random/boot_id").strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(words)


def _identity(process: int) -> str:
    return f"{process} {_started(process)} {_machine()}"


def _started(process: int) -> str:
    """Return when a process started, in ticks since the boot, or "-" if that is not known."""
    words = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return words[19] if len(words) > 19 else "-"


def _has_ended(holder: str) -> bool:
    """Whether the holder of a lock was a process on this machine that has ended."""
    process, _, rest = holder.partition(" ")
    if not (process.isascii() and process.isdigit() and rest.partition(" ")[2] == _machine() and os.name == "posix"):
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return "-" not in (rest.partition(" ")[0], _started(int(process))) and holder != _identity(int(process))


def _describe(holder: str) -> str:
    process, _, rest = holder.partition(" ")
    machine = rest.partition(" ")[2].partition(" ")[0]
    return f"process {process} on {machine}" if machine else "another process"

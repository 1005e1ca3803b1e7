"""Hooks around the file-system calls of this process, to count them, record them, or stop at one of them.

Rules
- `install` is for a process that ends soon, such as a forked child, because the hooks cannot be removed.
- Only calls that change the file system are reported, not calls that read, lock or close.
- The builtin `open` is replaced by that of `_pyio`, which is written in Python and calls `os.open` and `os.write`.
- The trial chooses the order in which directories are listed, because a file system may list names in any order.

`python -m tests.reliability.shim` compares the hooks with strace, if it is installed: every system call that changes
something must have been reported.
"""

from __future__ import annotations

import _pyio
import builtins
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CALLS = (
    "open", "write", "pwrite", "writev", "pwritev", "sendfile", "copy_file_range", "truncate", "ftruncate",
    "posix_fallocate", "rename", "replace", "link", "symlink", "unlink", "remove", "mkdir", "rmdir",
    "fsync", "fdatasync", "chmod", "fchmod", "chown", "utime", "mknod", "mkfifo", "setxattr",
)  # fmt: skip
WRITES = {"write": 1, "pwrite": 1, "writev": 1, "pwritev": 1}  # position of the data among the arguments


class Call(NamedTuple):
    """A file-system call that is about to be made."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def data(self) -> bytes:
        """The data of a write; empty for other calls."""
        if self.name not in WRITES:
            return b""
        data = self.args[1]
        return b"".join(data) if self.name in ("writev", "pwritev") else bytes(data)

    def half(self) -> Call:
        """Return a call that writes the first half of the data."""
        data = self.data[: len(self.data) // 2]
        return self._replace(args=(self.args[0], [data] if self.name[-1] == "v" else data, *self.args[2:]))

    def make(self) -> Any:
        """Make the call, bypassing the hook."""
        return ORIGINAL[self.name](*self.args, **self.kwargs)


Hook = Callable[[Call], Any]  # makes the call or skips it, and returns its result
ORIGINAL = {name: getattr(os, name) for name in CALLS if hasattr(os, name)}
_scandir, _listdir = os.scandir, os.listdir


def install(hook: Hook, *, backwards: bool = False) -> None:
    """Pass every call that changes the file system to a hook. Also sorts directory listings by name, or in reverse."""
    for name, original in ORIGINAL.items():
        wrapped = _wrap(name, original, hook)
        setattr(os, name, wrapped)
        for module in [module for key, module in sys.modules.items() if key.partition(".")[0] == "zarrlite"]:
            for attribute, value in list(vars(module).items()):
                if value is original:  # a module may have imported the function under another name
                    setattr(module, attribute, wrapped)
    builtins.open = io.open = _pyio.open  # type: ignore[assignment]
    os.scandir = lambda path=".": _Listing(path, backwards)  # type: ignore[assignment,misc]
    os.listdir = lambda path=".": sorted(_listdir(path), reverse=backwards)  # type: ignore[assignment]


def _wrap(name: str, original: Callable[..., Any], hook: Hook) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if name == "open" and not _creates(args[1] if len(args) > 1 else kwargs["flags"]):
            return original(*args, **kwargs)
        return hook(Call(name, args, kwargs))

    return call


def _creates(flags: int) -> bool:
    return bool(flags & (os.O_CREAT | os.O_TRUNC)) or is_tmpfile(flags)


def is_tmpfile(flags: int) -> bool:
    """Whether flags of `os.open` create a file without a name."""
    return flags & os.O_TMPFILE == os.O_TMPFILE


class _Listing:
    """The result of `os.scandir`, sorted."""

    def __init__(self, path: Any, backwards: bool) -> None:
        with _scandir(path) as found:
            self._entries = iter(sorted(found, key=lambda entry: entry.name, reverse=backwards))

    def __iter__(self) -> Iterator[Any]:
        return self._entries

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Listing:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


# Comparison with strace

_TRACED = (
    "open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,truncate,ftruncate,fallocate,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,"
    "chmod,fchmod,fchmodat,chown,utimensat,mknod,mknodat"
)


def _operate(name: str, root: str) -> None:
    """Run the operation of a `Scene`. The hooks write to standard error, so that strace lists these writes, too."""
    from tests.reliability.scenes import SCENES
    from zarrlite import LocalStore

    store = LocalStore(root)
    SCENES[name].prepare(store)
    write = ORIGINAL["write"]

    def report(call: Call) -> Any:
        write(2, b"HOOK")
        return call.make()

    install(report)
    write(2, b"BEGIN")
    SCENES[name].operate(store)
    write(2, b"END")
    os._exit(0)


def compare(name: str) -> tuple[int, list[str]]:
    """Run a `Scene` under strace. Returns the number of system calls, and those that no hook reported."""
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        command = [sys.executable, "-m", "tests.reliability.shim", "--operate", name, f"{folder}/store"]
        trace = ["strace", "-f", "-qq", "-e", "signal=none", "-e", f"trace={_TRACED}", "-o", log]
        subprocess.run([*trace, *command], check=True, stderr=subprocess.DEVNULL)
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.split(maxsplit=1)[1].rstrip() for line in file]
    start = next(i for i, line in enumerate(lines) if '"BEGIN"' in line)
    stop = next(i for i, line in enumerate(lines) if '"END"' in line)
    seen, missed, hooked = 0, [], False
    for line in lines[start + 1 : stop]:
        if '"HOOK"' in line:
            hooked = True
            continue
        if line.startswith("open") and not any(flag in line for flag in ("O_CREAT", "O_TRUNC", "O_TMPFILE")):
            continue
        seen += 1
        if not hooked:
            missed.append(line)
        hooked = False
    return seen, missed


def main(arguments: list[str]) -> int:
    from tests.reliability.scenes import SCENES

    total = 0
    failed = False
    for name in arguments or SCENES:
        seen, missed = compare(name)
        total += seen
        failed = failed or bool(missed)
        for line in missed:
            print(f"{name}: not seen: {line}")
    print(f"{total} system calls that change files, {'some' if failed else 'none'} past the hooks")
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--operate"]:
        _operate(*sys.argv[2:])
    sys.exit(main(sys.argv[1:]))

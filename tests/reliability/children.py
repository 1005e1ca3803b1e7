"""Forked children in which operations are killed or interrupted, and the directories they work in."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from tests.reliability.scenes import Scene, State, reference
from zarrlite import LocalStore

KILLED = 99  # exit code of a child that was killed by a hook


class Stage:
    """A `Scene` on disk: its old and new states, and a prepared directory to copy for each trial."""

    def __init__(self, scene: Scene, folder: str) -> None:
        self.scene = scene
        self._folder = folder
        self._count = 0
        self.old, self.new = reference(scene, lambda: LocalStore(self._path()))
        self.template = self._path()
        os.mkdir(self.template)
        scene.prepare(LocalStore(self.template))

    def _path(self) -> str:
        self._count += 1
        return f"{self._folder}/{self._count}"

    @contextlib.contextmanager
    def copy(self) -> Iterator[str]:
        """Yield the path of a new copy of the prepared directory."""
        path = self._path()
        shutil.copytree(self.template, path)
        yield path
        shutil.rmtree(path)

    @contextlib.contextmanager
    def empty(self) -> Iterator[str]:
        """Yield the path of a new, empty directory."""
        path = self._path()
        os.mkdir(path)
        yield path
        shutil.rmtree(path)

    def look(self, path: str) -> State:
        """Examine a copy of a directory through a separate store, because `Scene.look` may write."""
        copy = self._path()
        shutil.copytree(path, copy)
        state = self.scene.look(LocalStore(copy))
        shutil.rmtree(copy)
        return state


@contextlib.contextmanager
def staged(scene: Scene) -> Iterator[Stage]:
    """Prepare a `Scene` in a temporary directory."""
    with tempfile.TemporaryDirectory() as folder:
        yield Stage(scene, folder)


def run_child(work: Callable[[], Any]) -> tuple[int, bytes]:
    """Run a function in a forked child. Returns the exit code, and the bytes that `work` returns or a traceback."""
    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(receive)
        gc.freeze()  # a garbage collection in the child would copy all memory of the parent
        run_and_exit(work, send)
    os.close(send)
    with open(receive, "rb") as file:
        output = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output


def run_and_exit(work: Callable[[], Any], send: int) -> NoReturn:
    """Run a function in this process, send the bytes that it returns (or its traceback), and exit."""
    code, write = 1, os.write  # the original function, because `work` may install hooks
    try:
        output = work() or b""
        code = 0
    except BaseException:
        output = traceback.format_exc().encode()
    while output:
        output = output[write(send, output) :]
    os._exit(code)

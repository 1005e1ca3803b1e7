"""An interrupt (Ctrl-C) at any point of an operation leaves no lock, descriptor or temporary file behind.

CPython runs signal handlers when a Python function starts, after calls to C functions, and when a loop jumps back to
its start. `interrupt_at` sends an interrupt right before one of these points; a timer sends interrupts at random times.
"""

from __future__ import annotations

import dis
import fcntl
import gc
import os
import random
import signal
import sys
import threading
import traceback
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from open_files import open_files

import zarrlite
from zarrlite.buffers.ranges import ByteRange
from zarrlite.stores import LocalStore, MemoryStore, Store
from zarrlite.stores.base import InPlace
from zarrlite.testing import in_threads

SEED = 20
STEP = int(os.environ.get("ZARRLITE_INTERRUPT_STEP", "7"))  # every STEP-th point is tested; 1 means all of them
RANDOM_INTERRUPTS = int(os.environ.get("ZARRLITE_INTERRUPTS", "20"))  # number of interrupts for each operation
OLD = {"a/b": b"old" * 1000, "a/c": b"old" * 1000, "a/d/e": b"old" * 1000}
NEW = b"new" * 1000
MANY = [f"n/{n}" for n in range(4)]
CHECKED = {code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD", "RESUME"))}


def locked_update(store: Store) -> None:
    with store.lock("a/b"), store.lock("x/y"), store.lock("x/z"):
        store.set("x/y", NEW)
        store.erase("x/y")
        store.set("a/b", NEW)


def read_twice(store: Store) -> None:
    source = store.source("a/b")
    try:
        assert source.read_one() == source.read_one()
    finally:
        source.close()


OPERATIONS: dict[str, Callable[[Store], object]] = {
    "get": lambda store: store.get("a/b"),
    "get_partial_values": lambda store: store.get_partial_values([(key, ByteRange(0, 9)) for key in (*OLD, "a/d/e")]),
    "size": lambda store: store.size("a/b"),
    "source": read_twice,
    "list": lambda store: [list(store.list()), store.list_dir("a/")],
    "set": lambda store: store.set("a/b", NEW),
    "set a new key": lambda store: store.set("n/0", NEW),
    "set new keys": lambda store: store.set_many([(key, NEW) for key in MANY]),
    "set many keys": lambda store: store.set_many([(key, NEW) for key in OLD]),
    "update": lambda store: store.update("a/b", lambda old: NEW),
    "update a new key": lambda store: store.update("n/0", lambda old: NEW),
    "update to nothing": lambda store: store.update("a/d/e", lambda old: None),
    "update in place": lambda store: store.change([("a/b", lambda source: InPlace([(0, NEW)]))]),
    "erase": lambda store: store.erase("a/d/e"),
    "erase_prefix": lambda store: store.erase_prefix("a/"),
    "lock": locked_update,
}
STORES: dict[str, Callable[[Path], Store]] = {
    "local": LocalStore,
    "local, durable": lambda root: LocalStore(root, fsync=True),
    "local, with lock files": lambda root: LocalStore(root, lock_method="file"),
    "memory": lambda root: MemoryStore(),
}
each_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
each_store = pytest.mark.parametrize("new_store", STORES.values(), ids=STORES)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Make Ctrl-C and the timer raise KeyboardInterrupt, even if a test runner has disabled Ctrl-C."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    for number in before:
        signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _fast_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fsync with a faster C function, which can be interrupted at the same points."""
    monkeypatch.setattr(os, "fsync", os.fstat)


def interrupt_at(point: int, operation: Callable[[], object]) -> str | None:
    """Run an operation and interrupt it at its n-th check for signals.

    Returns the location of the interrupt, for messages. Returns None if the operation has fewer checks.
    """
    reached = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal reached
        frame.f_trace_opcodes = True
        if event == "call" or (event == "opcode" and frame.f_code.co_code[frame.f_lasti] in CHECKED):
            reached += 1
            if reached == point:
                sys.settrace(None)
                for _ in map(interrupt_main, (signal.SIGINT,)):  # a plain call would raise the interrupt here
                    return None
        return trace

    gc.disable()  # a callback of the garbage collector, such as that of hypothesis, would swallow the interrupt
    try:
        sys.settrace(trace)
        operation()
        sys.settrace(None)
    except KeyboardInterrupt as error:
        return " > ".join(f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[1:])
    finally:
        sys.settrace(None)
        gc.enable()
    assert reached < point, "the interrupt was ignored"
    return None


def interrupt_after(seconds: float, operation: Callable[[], object]) -> None:
    """Repeat an operation until a timer interrupts it."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while True:
            operation()
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def locked_paths(root: Path) -> list[Path]:
    """Return the files and directories that another descriptor cannot lock."""
    found = []
    for path in [root, *root.rglob("*")] if root.exists() else []:
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append(path)
        finally:
            os.close(fd)
    return found


def check_traces(store: Store, root: Path, place: str) -> None:
    """Check that an interrupted operation left nothing behind, and that other threads can write every key."""
    assert open_files(root) == [], place
    assert locked_paths(root) == [], place
    assert list(root.rglob("__zarrlite*")) == [], place
    for key in (*OLD, *MANY):
        assert store.get(key) in (OLD.get(key), NEW, None), place
    unwritten = [*OLD, *MANY, "x/y", "x/z"]

    def write() -> None:
        for key in [*unwritten]:
            store.set(key, b"next")
            unwritten.remove(key)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(30)
    assert unwritten == [], place


@each_operation
@each_store
def test_an_interrupt_at_any_point_leaves_no_traces(
    tmp_path: Path, new_store: Callable[[Path], Store], operation: Callable[[Store], object]
) -> None:
    for point in range(1 + SEED % STEP, 10_000, STEP):
        root = tmp_path / str(point)
        store = new_store(root)
        store.set_many(list(OLD.items()))
        place = interrupt_at(point, lambda: operation(store))
        if place is None:
            break
        check_traces(store, root, place)
    assert point > STEP  # the operation was interrupted
    in_threads(lambda: store.set("a/b", b"next"))


@each_operation
@each_store
def test_interrupts_at_random_times_leave_no_traces(
    tmp_path: Path, new_store: Callable[[Path], Store], operation: Callable[[Store], object]
) -> None:
    generator = random.Random(SEED)
    for n in range(RANDOM_INTERRUPTS):
        root = tmp_path / str(n)
        store = new_store(root)
        store.set_many(list(OLD.items()))
        interrupt_after(generator.uniform(0.0001, 0.002), lambda: operation(store))
        check_traces(store, root, f"interrupt {n}")


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a module and of everything in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def unprotected_jumps(code: CodeType) -> Iterator[int]:
    """Yield the first line of each function in which a loop jumps back outside of the `with` or `try` around it."""
    instructions = list(dis.get_instructions(code))
    names = {each.offset: each.opname for each in instructions}
    handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]

    def handler(offset: int) -> int | None:
        found = (entry.target for entry in handlers if entry.start <= offset < entry.end)
        return next((target for target in found if names[target] == "PUSH_EXC_INFO"), None)

    for i, jump in enumerate(instructions):
        before = [each.opname for each in instructions[max(0, i - 3) : i]]
        # these jumps leave an exception handler; they do not belong to a loop
        ends_handler = before == ["POP_EXCEPT", "POP_TOP", "POP_TOP"] or before[-1:] == ["CLEANUP_THROW"]
        starts_over = jump.opname == "JUMP_BACKWARD" and not ends_handler
        if starts_over and handler(jump.offset) != handler(jump.argval) is not None:
            yield code.co_firstlineno


WRITERS = ("buffers", "chunks", "nodes", "storage_transformers", "stores", "threads.py")


@pytest.mark.parametrize("path", WRITERS)
def test_no_loop_repeats_outside_of_the_statement_that_cleans_up(path: str) -> None:
    # since Python 3.12, if a loop ends with a condition (`while x`, or `if` as its last statement), its jump back is
    # not covered by the `with` or `try` around it, so that an interrupt at the jump skips `__exit__` and `finally`
    package = Path(zarrlite.__file__).parent / path
    for file in package.rglob("*.py") if package.is_dir() else [package]:
        module = compile(file.read_text("utf-8"), str(file), "exec")
        found = [line for code in codes(module) for line in unprotected_jumps(code)]
        assert found == [], f"{file}: move the loops of the functions at these lines into functions of their own"

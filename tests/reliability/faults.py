"""Store faults: the Nth request fails, once or permanently, and no data is lost.

Rules
- The store implements only `get`, `set`, `erase` and `list`, as a user's store may. A trial counts the requests of an
  operation and makes one fail: the store refuses the request, or carries it out but reports a timeout, or returns too
  few bytes. This last fault applies only to requests for a known number of bytes, because a whole value that is cut
  short is indistinguishable from a shorter value.
- The operation succeeds or raises an error of the library, even if the store raised a different exception. Afterwards,
  every chunk and every document is either the old one or the new one.
- Once the store works again, another thread can repeat the operation, which leads to the new state: no lock is left.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

from tests.reliability.report import Figures
from tests.reliability.scenes import SCENES, Scene, State, equal, judge, reference
from zarrlite import ByteRange, MemoryStore, Store, ZarrliteError
from zarrlite.buffers.ranges import ALL, Buffer
from zarrlite.stores.base import Limits

SAMPLE = 2500  # trials
WAIT = 300  # seconds; a repetition that takes longer is waiting for a lock
FAULTS = {
    "refused": {"get", "get a part", "set", "erase", "list"},
    "timed out": {"set", "erase"},
    "short": {"get a part"},
}
LASTING = ["once", "from then on"]
Trial = tuple[str, int, str, str]  # name of a `Scene`, number of the request, fault, duration


class FaultyStore(Store):
    """A user's in-memory store in which one request fails, or one request and all later ones."""

    limits = Limits(concurrency=1)  # one request at a time, so that the order, and thus each number, is fixed

    def __init__(self) -> None:
        self.inner = MemoryStore()
        self.requests: list[str] = []
        self.failing: tuple[int, str, str] | None = None  # number of the request, fault, duration

    def fails(self, operation: str) -> str | None:
        """Return the fault of a request. Returns None if the request succeeds."""
        self.requests.append(operation)
        if self.failing is None:
            return None
        number, fault, lasting = self.failing
        now = len(self.requests) - 1
        is_due = now == number or (now > number and lasting == "from then on")
        return fault if is_due and operation in FAULTS[fault] else None

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        value = self.inner.get(key, byte_range)
        fault = self.fails("get a part" if value and len(value) == _length(byte_range) else "get")
        if fault == "refused":
            raise TimeoutError(f"no answer for {key}")
        return value[: len(value) // 2] if fault == "short" and value else value

    def set(self, key: str, value: Buffer) -> None:
        fault = self.fails("set")
        if fault != "refused":
            self.inner.set(key, value)
        if fault:
            raise TimeoutError(f"no answer for {key}")

    def erase(self, key: str) -> None:
        fault = self.fails("erase")
        if fault != "refused":
            self.inner.erase(key)
        if fault:
            raise TimeoutError(f"no answer for {key}")

    def list(self) -> Iterator[str]:
        if self.fails("list"):
            raise TimeoutError("no answer")
        return self.inner.list()


def _length(byte_range: ByteRange) -> int | None:
    """Return the number of bytes that a range requests. Returns None if that depends on the size of the value."""
    start, stop = byte_range
    if stop is None:
        return -start if start < 0 else None
    return stop - start if (start < 0) == (stop < 0) else None


def trials_of(scene: Scene) -> Iterator[Trial]:
    """Yield all trials of a `Scene`: each request with each fault that applies to it."""
    store = FaultyStore()
    scene.prepare(store)
    store.requests.clear()
    scene.operate(store)
    for number, operation in enumerate(store.requests):
        for fault, operations in FAULTS.items():
            if operation in operations:
                for lasting in LASTING:
                    yield scene.name, number, fault, lasting


def run(trials: int | None, seed: int) -> Figures:
    """Make the requests of all `SCENES` fail: each request, or a sample."""
    figures = Figures("faults", seed)
    scenes = [scene for scene in SCENES.values() if not scene.local]
    for scene in scenes:
        run_scene(scene, None if trials is None else max(1, trials // len(scenes)), seed, figures)
    return figures


def run_scene(scene: Scene, trials: int | None, seed: int, figures: Figures | None = None) -> Figures:
    """Make the requests of one `Scene` fail."""
    figures = figures or Figures("faults", seed)
    chosen = list(trials_of(scene))
    if trials is not None:
        chosen = random.Random(f"{seed} {scene.name}").sample(chosen, min(trials, len(chosen)))
    states = reference(scene, FaultyStore)
    for trial in chosen:
        _try(figures, trial, *states)
    return figures


def replay(spec: str) -> Figures:
    """Repeat one trial."""
    figures = Figures("faults", 0)
    name, number, fault, lasting = spec.split("|")
    _try(figures, (name, int(number), fault, lasting), *reference(SCENES[name], FaultyStore))
    return figures


def _try(figures: Figures, trial: Trial, old: State, new: State) -> None:
    name, *fault = trial
    scene = SCENES[name]
    store = FaultyStore()
    scene.prepare(store)
    store.requests.clear()
    store.failing = (fault[0], fault[1], fault[2])  # type: ignore[assignment]
    outcome, description = _operate(scene, store)
    store.failing = None
    if not outcome:
        outcome, description = judge(scene, old, new, scene.look(MemoryStore(_values(store))))
    if outcome in ("old", "new", "between") and scene.repeatable:
        outcome, description = _repeat(scene, store, new) or (outcome, description)
    if outcome in ("old", "new", "between"):
        figures.passed(name, outcome)
    else:
        figures.failed(name, outcome, "|".join(map(str, trial)), description)


def _values(store: FaultyStore) -> dict[str, Any]:
    return {key: store.inner.get(key) for key in store.inner.list()}


def _operate(scene: Scene, store: FaultyStore) -> tuple[str, str]:
    try:
        scene.operate(store)
    except ZarrliteError:
        pass
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    return "", ""


def _repeat(scene: Scene, store: FaultyStore, new: State) -> tuple[str, str] | None:
    """Repeat the operation in another thread. Returns None if this leads to the new state."""
    errors: list[Exception] = []

    def operate() -> None:
        try:
            scene.operate(store)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=operate, daemon=True)
    thread.start()
    thread.join(WAIT)
    if thread.is_alive():
        return "locked", "the operation cannot be repeated: it waits"
    if errors:
        return "not repeatable", f"{type(errors[0]).__name__}: {errors[0]}"
    if not equal(scene.look(store), new):
        return "not repeatable", "the repetition does not lead to the new state"
    return None

"""Damage everywhere: stored objects that are missing, truncated, extended or have a flipped bit are read and checked.

Rules
- A trial changes one object of an array, reads the array in four ways and runs fsck. An error must be one of the
  library's own. A read that succeeds must return the original values wherever checksums cover the whole chunk.
- If reading fails, fsck reports a problem. If fsck reports a problem, reading the whole array never returns wrong
  values. It may return the correct ones, because readers ignore headers and the index entries of chunks outside the
  array. Reading only part of the array, however, may return wrong values if there is no checksum.
- If all objects of a chunk are missing, the chunk reads as the fill value; if only some are missing, reading it fails.
- Documents are damaged too: reading the array then returns other values or raises one of the library's own exceptions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import zarrlite
from tests.layout.arrays import ARRAYS
from tests.reliability.report import Figures
from zarrlite import MemoryStore, Store, ZarrliteError
from zarrlite.layout import check

SAMPLE = 2000  # trials
# kinds of arrays in which checksums cover all bytes that affect values
VERIFIED = {
    "gzip and crc32c",
    "crc32c and zstd",
    "two paddings",
    "shard",
    "shard, transposed",
    "shard in a shard",
    "shard behind a header",
    "shard in gzip",
    "shard with padded index",
    "shard with room for a header",
    "parts",
    "parts across a frame",
    "shard in parts",
}
IN_PARTS = {"parts", "parts across a frame", "shard in parts", "draft shards in parts"}  # chunks of several objects
NEVER_READ = {"outside", "unknown"}  # kinds of problems that do not affect readers
READS: dict[str, Callable[[Any], Any]] = {
    "everything": lambda a: a[...],
    "a slice": lambda a: a[1:3, 1:],
    "rows by index": lambda a: a.oindex[[0, -1], ::2],
    "one element": lambda a: a[(0,) * a.ndim],
}
ENDS = [b"\0", b"\xff", bytes(100)]  # bytes appended to an object
Damage = tuple[str, str, str, int]  # kind of array, key, kind of damage, position


def damages(kind: str, store: Store) -> Iterator[Damage]:
    """Yield all damage: missing, extended and truncated objects, and flipped bits (one per byte of a document)."""
    for key in store.list():
        size = store.size(key) or 0
        yield kind, key, "missing", 0
        for place in range(len(ENDS)):
            yield kind, key, "longer", place
        for place in range(size):
            yield kind, key, "cut", place
        for place in range(8 * size):
            if key != "zarr.json" or place % 8 == place // 8 % 8:
                yield kind, key, "flip", place


def damaged(value: bytes, sort: str, place: int) -> bytes | None:
    if sort == "missing":
        return None
    if sort == "longer":
        return value + ENDS[place]
    if sort == "cut":
        return value[:place]
    changed = bytearray(value)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def run(trials: int | None, seed: int) -> Figures:
    """Run trials of randomly chosen damage, or all of them."""
    figures = Figures("flips", seed)
    for kind in ARRAYS:
        run_kind(kind, None if trials is None else max(1, trials // len(ARRAYS)), seed, figures)
    return figures


def run_kind(kind: str, trials: int | None, seed: int, figures: Figures | None = None) -> Figures:
    """Damage one kind of array."""
    figures = figures or Figures("flips", seed)
    original = ARRAYS[kind]()
    chosen = list(damages(kind, original.store))
    if trials is not None:
        chosen = random.Random(f"{seed} {kind}").sample(chosen, min(trials, len(chosen)))
    for damage in chosen:
        _try(figures, original, damage)
    return figures


def replay(spec: str) -> Figures:
    """Repeat one trial."""
    figures = Figures("flips", 0)
    kind, key, sort, place = spec.split("|")
    _try(figures, ARRAYS[kind](), (kind, key, sort, int(place)))
    return figures


def _try(figures: Figures, original: Any, damage: Damage) -> None:
    kind, key, sort, place = damage
    values = {k: bytes(original.store.get(k)) for k in original.store.list()}
    changed = damaged(values.pop(key), sort, place)
    store = MemoryStore(values if changed is None else {**values, key: changed})
    outcome, good, description = judge(damage, original, store)
    if good:
        figures.passed(kind, outcome)
    else:
        figures.failed(kind, outcome, "|".join(map(str, damage)), description)


def judge(damage: Damage, original: Any, store: MemoryStore) -> tuple[str, bool, str]:
    """Return the outcome of reading and checking a damaged store, whether it is acceptable, and a description."""
    kind, key, sort, _ = damage
    found = {
        name: attempt(lambda read=read: read(zarrlite.open_array(store, mode="r"))) for name, read in READS.items()
    }  # type: ignore[misc]
    problems = attempt(lambda: list(check(store)))
    for name, result in {**found, "fsck": problems}.items():
        if isinstance(result, Exception) and not isinstance(result, ZarrliteError):
            return "foreign", False, f"{name}: {type(result).__name__}: {result}"
    failing = [name for name, result in found.items() if isinstance(result, Exception)]
    if isinstance(problems, Exception):  # the store contains no node
        return "refused by fsck", bool(failing), f"fsck: {problems}; but all reads succeed"
    if failing and not problems:
        return "unknown to fsck", False, f"{failing[0]}: {found[failing[0]]}; but fsck reports nothing"
    wrong = [name for name in found if name not in failing and differs(original, name, found[name])]
    reported = [problem.message for problem in problems if problem.kind not in NEVER_READ]
    if not wrong:
        return "detected" if failing else "seen by fsck" if reported else "harmless", True, ""
    if key == "zarr.json":
        return "another array", True, ""
    if sort == "missing" and kind not in IN_PARTS:
        return "fill value", True, ""
    if kind not in VERIFIED and (not reported or "everything" in failing):
        return "undetectable", True, ""
    return "wrong", False, f"{wrong[0]} returns {found[wrong[0]]}; fsck: {reported}"


def differs(original: Any, name: str, found: Any) -> bool:
    return bool(np.asarray(found).tolist() != np.asarray(READS[name](original)).tolist())


def attempt(action: Callable[[], Any]) -> Any:
    """Return the result of an action, or its exception."""
    try:
        return action()
    except Exception as error:
        return error

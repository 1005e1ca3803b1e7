"""The list of all workloads of the remote benchmark, with the goals of zarrlite."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from benchmarks.remote.data import RemoteScale
from benchmarks.remote.workloads import (
    Copy,
    OnServer,
    OpenGroup,
    RemotePeakMemory,
    RemotePoints,
    RemoteRead,
    RemoteReads,
    RemoteWrite,
)

CODECS = ("raw", "zstd")
GOAL, GOAL_ON_LOOPBACK = 1.15, 1.3  # multiples of the limit; without a delay, server, proxy and client share the cores
LEAD = 0.95  # no peer may be ahead by more than a twentieth


def catalogue(scale: RemoteScale) -> Iterator[OnServer]:
    """Yield every workload; those that share a layout are consecutive."""
    for delay in scale.delays:
        yield from _delayed(scale, delay)
    yield from _memory(scale)


def select(scale: RemoteScale, pattern: str | None) -> list[OnServer]:
    """Return the workloads whose name contains a pattern."""
    return [w for w in catalogue(scale) if pattern is None or fnmatchcase(w.name, f"*{pattern}*")]


def _delayed(scale: RemoteScale, delay: int) -> Iterator[OnServer]:
    goal = (GOAL, LEAD) if delay else (GOAL_ON_LOOPBACK, None)
    section = f"Delay of {delay} ms"

    def named(name: str) -> tuple[str, str]:
        return f"{delay}ms/{name}", section

    for size in ("64K", "1M"):
        for codec in CODECS:
            form, tail = scale.layout(size, codec), f"{size}/{codec}"
            yield RemoteRead(*named(f"read/{tail}"), form, *goal, delay=delay)
            if (size, codec) != ("1M", "raw"):
                yield RemoteWrite(*named(f"write/{tail}"), form, *goal, delay=delay)
            if size == "64K":
                yield RemotePoints(*named(f"elements/{tail}"), form, *goal, delay=delay)
                yield RemoteReads(*named(f"oindex/{tail}"), form, *goal, what="orthogonal", delay=delay)
    for codec in CODECS:
        form, tail = scale.sharded("64K", codec), f"64K/{codec}"
        yield RemoteRead(*named(f"shard/read/{tail}"), form, *goal, delay=delay)
        for what in ("half", "every-second"):
            yield RemoteReads(*named(f"shard/{what}/{tail}"), form, *goal, what=what, delay=delay)
        yield RemotePoints(*named(f"shard/elements/{tail}"), form, *goal, delay=delay)
    for consolidated in (False, True):
        name = "open/consolidated" if consolidated else "open/group"
        yield OpenGroup(*named(name), None, *goal, delay=delay, consolidated=consolidated)
    for direction in ("upload", "download"):
        form = scale.layout("64K", "zstd")
        yield Copy(*named(f"copy/{direction}/64K/zstd"), form, *goal, delay=delay, direction=direction)


def _memory(scale: RemoteScale) -> Iterator[OnServer]:
    delay = scale.delays[-1]
    form = scale.layout("1M", "zstd")
    for operation in ("read", "write"):
        name = f"{delay}ms/peak/{operation}/1M/zstd"
        yield RemotePeakMemory(name, "Peak memory", form, delay=delay, operation=operation)

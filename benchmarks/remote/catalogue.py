"""The list of all workloads of the remote benchmark, with the goals of zarrlite."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from benchmarks.remote.data import RemoteScale
from benchmarks.remote.workloads import (
    Copy,
    OpenGroup,
    RemoteOpenDataset,
    RemotePeakMemory,
    RemotePoints,
    RemoteRead,
    RemoteReadDataset,
    RemoteReads,
    RemoteWrite,
)
from benchmarks.workloads import Workload

CODECS = ("raw", "zstd")
# maximum multiples of the time of `limit`; the second is for workloads without a delay, in which the server, the proxy
# and the client compete for the cores
GOAL, GOAL_ON_LOOPBACK = 1.15, 1.3
LEAD = 0.95  # no peer may be more than 5 % faster


def catalogue(scale: RemoteScale) -> Iterator[Workload]:
    """Yield every workload; those that share a layout are consecutive."""
    for delay in scale.delays:
        yield from _delayed(scale, delay)
    for delay in scale.delays:
        yield from _datasets(scale, delay)
    yield from _memory(scale)


def select(scale: RemoteScale, pattern: str | None) -> list[Workload]:
    """Return the workloads whose name contains a pattern."""
    return [w for w in catalogue(scale) if pattern is None or fnmatchcase(w.name, f"*{pattern}*")]


def _delayed(scale: RemoteScale, delay: int) -> Iterator[Workload]:
    common: dict[str, Any] = {"section": f"Delay of {delay} ms", "delay": delay, "goal": GOAL_ON_LOOPBACK}
    if delay:
        common |= {"goal": GOAL, "lead": LEAD}

    def named(name: str) -> dict[str, Any]:
        return {"name": f"{delay}ms/{name}", **common}

    for size in ("64K", "1M"):
        for codec in CODECS:
            form, tail = scale.layout(size, codec), f"{size}/{codec}"
            yield RemoteRead(**named(f"read/{tail}"), layout=form)
            if (size, codec) != ("1M", "raw"):
                yield RemoteWrite(**named(f"write/{tail}"), layout=form)
            if size == "64K":
                yield RemotePoints(**named(f"elements/{tail}"), layout=form)
                yield RemoteReads(**named(f"oindex/{tail}"), layout=form, what="orthogonal")
    for codec in CODECS:
        form, tail = scale.sharded("64K", codec), f"64K/{codec}"
        yield RemoteRead(**named(f"shard/read/{tail}"), layout=form)
        for what in ("half", "every-second"):
            yield RemoteReads(**named(f"shard/{what}/{tail}"), layout=form, what=what)
        yield RemotePoints(**named(f"shard/elements/{tail}"), layout=form)
    for consolidated in (False, True):
        name = "open/consolidated" if consolidated else "open/group"
        yield OpenGroup(**named(name), consolidated=consolidated)
    for direction in ("upload", "download"):
        form = scale.layout("1M", "zstd")
        yield Copy(**named(f"copy/{direction}/1M/zstd"), layout=form, direction=direction)


def _datasets(scale: RemoteScale, delay: int) -> Iterator[Workload]:
    common: dict[str, Any] = {"section": "Datasets of xarray", "delay": delay, "layout": scale.layout("64K", "zstd")}
    yield RemoteOpenDataset(f"{delay}ms/xarray/open", **common, lead=1.0)
    yield RemoteReadDataset(f"{delay}ms/xarray/read/64K/zstd", **common, lead=1.0)


def _memory(scale: RemoteScale) -> Iterator[Workload]:
    delay = scale.delays[-1]
    form = scale.layout("1M", "zstd")
    for operation in ("read", "write"):
        name = f"{delay}ms/peak/{operation}/1M/zstd"
        yield RemotePeakMemory(name, "Peak memory", form, delay=delay, operation=operation)

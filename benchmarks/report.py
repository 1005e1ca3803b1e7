"""The results of a run as JSON, as Markdown and (plot.py) as a chart.

Rules
- The time of the reference is shown in s, ms or µs, and other times as multiples of it.
- Only times are shown as multiples; peak memory is shown in MiB.
- Reports contain no names of machines or users, and no paths.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.contestants import PEERS, Contestant
from benchmarks.data import LEVEL, Scale
from benchmarks.measure import Entry, Result, summary
from benchmarks.workloads import Workload

Results = dict[Workload, Result]
ATOMIC = "†"


def environment(
    scale: Scale,
    contestants: Mapping[str, Contestant],
    ratios: Mapping[str, float],
    load: float,
    server: str | None = None,
) -> dict[str, Any]:
    """Describe the machine, the versions and the scale of a run."""
    packages = sorted({package for contestant in contestants.values() for package in contestant.packages})
    return {
        "scale": scale.name,
        "mebibytes": scale.shape[0] * scale.shape[1] * 2 // 2**20,
        "zstd_level": LEVEL,
        "zstd_ratio": {size: round(ratio, 2) for size, ratio in ratios.items()},
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory():.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load": round(load, 2),
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in packages},
        **({"server": server} if server else {}),
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "source"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def to_json(about: Mapping[str, Any], results: Results) -> dict[str, Any]:
    """Return everything that was measured."""
    workloads = [
        {
            "name": workload.name,
            "section": workload.section,
            "unit": workload.unit,
            "reference": workload.reference,
            "goal": workload.goal,
            "lead": workload.lead,
            "entries": {name: summary(entry) for name, entry in result.items()},
            "ratios": ratios(workload, result),
            "best_peer": best_peer(result),
            "ahead_of_best_peer": ahead(result),
        }
        for workload, result in results.items()
    ]
    return {"environment": dict(about), "workloads": workloads}


def ratios(workload: Workload, result: Result) -> dict[str, float]:
    """Return each time as a multiple of the reference's time. Returns an empty dict if the figures are not times."""
    reference = result[workload.reference].best
    if workload.unit != "s" or not reference:
        return {}
    return {name: entry.best / reference for name, entry in result.items() if entry.best is not None}


def best_peer(result: Result) -> str | None:
    """Return the name of the peer with the best figure. Returns None if no peer has a figure."""
    figures = {name: best for name in PEERS if name in result and (best := result[name].best) is not None}
    return min(figures, key=figures.__getitem__, default=None)


def ahead(result: Result) -> float | None:
    """Return the best peer's time as a multiple of zarrlite's. Returns None if either time is missing."""
    peer, ours = best_peer(result), result.get("zarrlite", Entry()).best
    theirs = result[peer].best if peer is not None else None
    return theirs / ours if theirs is not None and ours else None


def to_markdown(about: Mapping[str, Any], results: Results, picture: str) -> str:
    """Return the report as Markdown."""
    ratio = ", ".join(f"{size} {value}" for size, value in about["zstd_ratio"].items())
    versions = ", ".join(f"{package} {version}" for package, version in about["versions"].items())
    server = f", {about['server']}" if "server" in about else ""
    head = f"""# Benchmark results

{about["date"]}, {about["scale"]} run on {about["mebibytes"]} MiB. {about["machine"]}; {about["system"]}; load average \
before the run {about["load"]}. Python {about["python"]}, {versions}{server}.
Compression ratio of zstd at level {about["zstd_level"]}, by size of chunks: {ratio}.

The column of the reference shows the time of one operation; the other columns show multiples of it (less is better).
Every time is the minimum over all rounds. `-`: not supported. `{ATOMIC}`: the contestant writes a temporary file and
renames it; the others overwrite files. *ahead*: how many times faster zarrlite is than the best peer. *goal*: the
multiple that zarrlite should not exceed, or how far ahead it should be. The README explains what is timed.

![multiples of the limit]({picture})"""
    lines = [head]
    for section in dict.fromkeys(workload.section for workload in results):
        lines += ["", f"## {section}", "", *_table([item for item in results.items() if item[0].section == section])]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[Workload, Result]]) -> Iterable[str]:
    first, result = rows[0]
    names = [first.reference, *(name for name in result if name != first.reference)]
    with_peers = any(name in PEERS for name in names)
    timed = first.unit == "s"
    head = ["workload", *names, *(["best peer", "ahead"] if with_peers and timed else []), *(["goal"] if timed else [])]
    yield "| " + " | ".join(head if timed else [head[0], *(f"{name}, MiB" for name in names)]) + " |"
    yield "|---" + "|--:" * (len(head) - 1) + "|"
    for workload, entries in rows:
        cells = [f"`{workload.name}`", *(cell(workload, entries, name) for name in names)]
        if with_peers and timed:
            lead = ahead(entries)
            cells += [best_peer(entries) or "", "" if lead is None else f"{lead:.2f}"]
        if timed:
            cells.append(_goal(workload))
        yield "| " + " | ".join(cells) + " |"


def _goal(workload: Workload) -> str:
    goals = []
    if workload.goal is not None:
        goals.append(f"{workload.goal:.2f}")
    if workload.lead is not None:
        goals.append(f"{workload.lead:g} ahead")
    return ", ".join(goals)


def cell(workload: Workload, result: Result, name: str) -> str:
    """Return the text of a table cell."""
    entry = result[name]
    if entry.best is None:
        return entry.status
    mark = f" {ATOMIC}" if entry.atomic else ""
    if workload.unit != "s":
        return f"{entry.best:.1f}"
    if name == workload.reference:
        return duration(entry.best) + mark
    multiple = ratios(workload, result).get(name)
    if multiple is None:
        return duration(entry.best) + mark
    text = f"{multiple:.2f}" if multiple < 10 else f"{multiple:.0f}"
    return (f"**{text}**" if name == "zarrlite" else text) + mark


def duration(seconds: float) -> str:
    """Return a time with about three digits, in s, ms or µs."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"

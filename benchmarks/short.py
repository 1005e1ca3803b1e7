"""`python -m benchmarks.short [RESULTS.json]`: print the short table for the README, and the table of goals.

Rules
- Every figure comes from the results of one run; tests compare the tables in the READMEs with `RESULTS.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import duration

RESULTS = Path(__file__).with_name("RESULTS.json")
NAMES = ("zarrlite", "zarr-python", "zarrs", "zarrista", "tensorstore")
SHOWN = {
    "read/disk/64K/zstd": "read, chunks of 64 KiB, zstd + crc32c",
    "read/disk/1M/zstd": "read, 1 MiB, zstd + crc32c",
    "read/disk/1M/raw": "read, 1 MiB, raw",
    "write/disk/64K/zstd": "write, 64 KiB, zstd + crc32c",
    "write/disk/1M/zstd": "write, 1 MiB, zstd + crc32c",
    "shard/read/8K/zstd": "read shards, inner chunks of 8 KiB, zstd + crc32c",
    "shard/read/8K/raw": "read shards, 8 KiB, raw",
    "shard/write/8K/raw": "write shards, 8 KiB, raw",
    "elements/64K/zstd": "one element, 64 KiB, zstd + crc32c",
    "elements/64K/raw": "one element, 64 KiB, raw",
    "shard/elements/8K/raw": "one element of a shard, 8 KiB, raw",
    "shard/update/64K/raw/in-place": "replace an inner chunk of 64 KiB, raw, in place",
    "open+element/64K/raw": "open, and read one element",
    "list": "list a group of 2,000 arrays, each",
}


def multiple(value: float | None) -> str:
    """Return the text of a ratio, or a dash if it is missing."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def short_table(results: dict[str, Any]) -> str:
    """Return a table of selected workloads: the time of `limit`, and other times as multiples of it."""
    workloads = {workload["name"]: workload for workload in results["workloads"]}
    lines = [f"| | limit | {' | '.join(NAMES)} |", "|---" + "|--:" * (len(NAMES) + 1) + "|"]
    for name, text in SHOWN.items():
        ratios = workloads[name]["ratios"]
        cells = [multiple(ratios.get(contestant)) for contestant in NAMES]
        limit = duration(workloads[name]["entries"]["limit"]["best"])
        lines.append(f"| {text} | {limit} | **{cells[0]}** | {' | '.join(cells[1:])} |")
    return "\n".join(lines)


def goals(results: dict[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield, for each goal, the workload, the goal, the figure reached, and whether it meets the goal."""
    for workload in results["workloads"]:
        reference, ratios = workload["reference"], workload["ratios"]
        if workload["goal"] is not None:
            for name in ("zarrlite",) if reference == "limit" else ("pad", "parts", "draft"):
                label = workload["name"] if reference == "limit" else f"{workload['name']}, {name}"
                yield label, f"{workload['goal']:.2f}", multiple(ratios.get(name)), ratios[name] <= workload["goal"]
        lead = workload["ahead_of_best_peer"]
        if workload["lead"] is not None and lead is not None:
            goal, reached = f"{workload['lead']:g} x ahead", f"{lead:.3g} x ahead"
            yield workload["name"], goal, reached, lead >= workload["lead"]


def goals_table(results: dict[str, Any]) -> str:
    """Return a table of all goals, and the number of those that are met."""
    rows = list(goals(results))
    lines = ["| workload | goal | reached | |", "|---|--:|--:|---|"]
    lines += [f"| `{name}` | {goal} | {reached} | {'yes' if ok else 'no'} |" for name, goal, reached, ok in rows]
    count = sum(ok for *_, ok in rows)
    return f"{count} of {len(rows)} goals are reached.\n\n" + "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print both tables."""
    results = json.loads(Path(arguments[0] if arguments else RESULTS).read_text())
    print(f"{short_table(results)}\n\n{goals_table(results)}")


if __name__ == "__main__":
    main(sys.argv[1:])

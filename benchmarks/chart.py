"""`python -m benchmarks.chart [RESULTS.json]`: draw the chart for the README.

The chart shows how many times faster than zarr-python each library performs everyday tasks.

Rules
- Every figure comes from the results of one run, and the title names the version of zarr-python in that run.
- Each task has one bar for each library that supports it. The axis is logarithmic. A bar that extends from 1 to the
  left means that the library is slower than zarr-python.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.plot import COLOURS
from benchmarks.short import RESULTS

CHART = RESULTS.parents[1] / "docs" / "pictures" / "speed.svg"

TASKS = {
    "read/disk/64K/zstd": "Read an array, 64 KiB chunks, zstd",
    "read/disk/1M/zstd": "Read an array, 1 MiB chunks, zstd",
    "write/disk/64K/zstd": "Write an array, 64 KiB chunks, zstd",
    "shard/read/8K/zstd": "Read shards of 8 KiB chunks, zstd",
    "columns/64K/zstd": "Read a column of elements",
    "elements/64K/zstd": "Read one element",
    "shard/elements/8K/zstd": "Read one element of a shard",
    "open+element/64K/zstd": "Open an array, read one element",
}
LIBRARIES = ("zarrlite", "zarrista", "tensorstore", "zarrs")
BASE = "zarr-python"
LEFT, WIDTH, RIGHT = 230, 430, 50  # pixels: width of the labels, the axis, and the margin for the figures
BAR, SPACE, TOP, BOTTOM = 9, 10, 66, 10  # pixels: height of a bar, space between tasks, height of the legend, margin
LOW = 0.5  # ratio at the left end of the axis
STYLE = "text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:13px}.grid{stroke:#ddd}.one{stroke:#222}"


def speedups(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return, for each task and each library that supports it, the library's speedup over zarr-python."""
    workloads = {workload["name"]: workload["ratios"] for workload in results["workloads"]}
    return {
        name: {
            library: workloads[name][BASE] / ratio for library in LIBRARIES if (ratio := workloads[name].get(library))
        }
        for name in TASKS
    }


def to_svg(results: dict[str, Any]) -> str:
    """Return the chart as SVG."""
    tasks = speedups(results)
    versions = results["environment"]["versions"]
    libraries = [name for name in LIBRARIES if any(name in task for task in tasks.values())]
    decades = math.log10(max(value for task in tasks.values() for value in task.values()) * 1.3 / LOW)

    def x(value: float) -> float:
        return LEFT + WIDTH * math.log10(max(value, LOW) / LOW) / decades

    step = len(libraries) * BAR + SPACE
    width, height = LEFT + WIDTH + RIGHT, TOP + len(TASKS) * step + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="10" y="18">Times faster than {BASE} {versions["zarr"]}</text>',
    ]
    left = 10
    for name in libraries:
        label = f"{name} {versions.get(name, '')}".strip()
        parts.append(f'<rect x="{left}" y="27" width="10" height="10" fill="{COLOURS[name]}"/>')
        parts.append(f'<text x="{left + 15}" y="36">{escape(label)}</text>')
        left += 30 + 7 * len(label)
    ticks = [tick for power in range(4) for tick in (10**power, 3 * 10**power) if x(tick) <= LEFT + WIDTH]
    for tick in ticks:
        parts.append(f'<path class="{"one" if tick == 1 else "grid"}" d="M{x(tick):.1f} {TOP - 8}V{height - BOTTOM}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{TOP - 12}" text-anchor="middle">{tick}x</text>')
    for row, (name, text) in enumerate(TASKS.items()):
        top = TOP + row * step
        middle = top + len(libraries) * BAR / 2 + 4
        parts.append(f'<text x="{LEFT - 10}" y="{middle:.1f}" text-anchor="end">{escape(text)}</text>')
        for i, library in enumerate(libraries):
            if library in tasks[name]:
                parts.append(_bar(x(1), x(tasks[name][library]), top + i * BAR, library, tasks[name][library]))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(one: float, end: float, top: float, library: str, ratio: float) -> str:
    """Return the bar of a library as SVG. The bar of zarrlite is labelled with its ratio."""
    text = f"{ratio:.1f}x" if ratio < 10 else f"{ratio:.0f}x"
    start, width = min(one, end), max(1, abs(end - one))
    bar = (
        f'<rect x="{start:.1f}" y="{top:.1f}" width="{width:.1f}" height="{BAR - 2}" fill="{COLOURS[library]}">'
        f"<title>{library}: {text}</title></rect>"
    )
    if library == "zarrlite":
        bar += f'<text x="{max(one, end) + 5:.1f}" y="{top + BAR - 1:.1f}" font-weight="bold">{text}</text>'
    return bar


def main(arguments: list[str]) -> None:
    """Draw the chart."""
    results = json.loads(Path(arguments[0] if arguments else RESULTS).read_text())
    CHART.write_text(to_svg(results))


if __name__ == "__main__":
    main(sys.argv[1:])

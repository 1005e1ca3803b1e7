"""A chart of times relative to the `limit` baseline: a row per workload, a dot per contestant, a logarithmic axis."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from benchmarks.report import Results, ratios

COLOURS = {
    "zarrlite": "#d7301f",
    "zarrlite fsspec": "#f4a582",
    "zarr-python": "#7f7f7f",
    "zarr-python 10": "#bdbdbd",
    "zarr-python 64": "#7f7f7f",
    "zarrs": "#e6a100",
    "tensorstore": "#2b6cb0",
    "tensorstore 32": "#92b8de",
    "tensorstore 64": "#2b6cb0",
    "zarrista": "#5e3c99",
}
LEFT, WIDTH, RIGHT = 230, 640, 30  # pixels: width of the labels, the axis and the margin
ROW, TOP = 17, 62  # pixels: height of a row, height of the legend
LOW = 0.5  # multiple of the time of `limit` at the left end of the axis
STYLE = (
    "text{font:11px sans-serif;fill:#222}.section{font-weight:bold}"
    ".grid{stroke:#ddd}.one{stroke:#222}.goal{stroke:#2a9d3a;stroke-width:2}"
)


def to_svg(results: Results) -> str:
    """Return the chart as SVG, with all workloads whose reference is `limit`."""
    timed = [(w, ratios(w, result)) for w, result in results.items() if w.reference == "limit"]
    rows = [(w, multiples) for w, multiples in timed if multiples]
    rows.sort(key=lambda row: [w.section for w in results].index(row[0].section))
    high = max((value for _, multiples in rows for value in multiples.values()), default=10.0)
    decades = math.log10(max(high * 1.3, 10) / LOW)
    height = TOP + ROW * (len(rows) + len({w.section for w, _ in rows})) + 20

    def x(value: float) -> float:
        return LEFT + WIDTH * math.log10(max(value, LOW) / LOW) / decades

    parts = [_head(height, [name for name in COLOURS if any(name in multiples for _, multiples in rows)])]
    parts += [_grid(x(tick), tick, height) for tick in _ticks(high * 1.3)]
    y, section = float(TOP), ""
    for workload, multiples in rows:
        if workload.section != section:
            section = workload.section
            parts.append(f'<text class="section" x="10" y="{y + 13:.0f}">{escape(section)}</text>')
            y += ROW
        parts.append(f'<text x="{LEFT - 10}" y="{y + 12:.0f}" text-anchor="end">{escape(workload.name)}</text>')
        if workload.goal is not None:
            parts.append(f'<path class="goal" d="M{x(workload.goal):.1f} {y + 2:.0f}v12"/>')
        for name in reversed([name for name in COLOURS if name in multiples]):
            title = f"{workload.name}: {name} {multiples[name]:.2f}"
            parts.append(
                f'<circle cx="{x(multiples[name]):.1f}" cy="{y + 8:.0f}" r="{5 if name == "zarrlite" else 4}" '
                f'fill="{COLOURS[name]}"><title>{escape(title)}</title></circle>'
            )
        y += ROW
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(height: int, names: list[str]) -> str:
    width = LEFT + WIDTH + RIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="10" y="18" class="section">Time as a multiple of the hand-written limit (left is better)</text>',
    ]
    left = 10
    for name in names:
        lines.append(
            f'<circle cx="{left + 5}" cy="32" r="5" fill="{COLOURS[name]}"/><text x="{left + 15}" y="36">{name}</text>'
        )
        left += 110
    lines.append(f'<path class="goal" d="M{left + 5} 26v12"/><text x="{left + 15}" y="36">goal of zarrlite</text>')
    return "\n".join(lines)


def _ticks(high: float) -> list[float]:
    ticks = [base * 10.0**power for power in range(-1, 7) for base in (1, 2, 5)]
    return [tick for tick in ticks if LOW <= tick <= high]


def _grid(x: float, tick: float, height: int) -> str:
    return (
        f'<path class="{"one" if tick == 1 else "grid"}" d="M{x:.1f} {TOP - 4}V{height - 14}"/>'
        f'<text x="{x:.1f}" y="{TOP - 8}" text-anchor="middle">{tick:g}</text>'
    )

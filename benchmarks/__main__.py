"""`python -m benchmarks`: run the workloads, show progress, write the report."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

from benchmarks.catalogue import select
from benchmarks.contestants import NAMES, Contestant, load
from benchmarks.data import FULL, QUICK, TINY
from benchmarks.measure import failures, measure, settled
from benchmarks.plot import to_svg
from benchmarks.report import Results, environment, to_json, to_markdown
from benchmarks.workspace import Workspace

SCALES = {scale.name: scale for scale in (FULL, QUICK, TINY)}


class Progress:
    """One line on a terminal that is written again and again; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.shown = sys.stderr.isatty()
        self.begin = time.monotonic()

    def __call__(self, text: str) -> None:
        if self.shown:
            gone = int(time.monotonic() - self.begin)
            line = f"[{min(self.done + 1, self.total)}/{self.total}] {gone // 60}:{gone % 60:02}  {text}"
            sys.stderr.write(f"\r\x1b[K{line[:110]}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    options = parser().parse_args(arguments)
    scale = SCALES[options.scale]
    if options.rounds:
        scale = replace(scale, rounds=options.rounds)
    workloads = select(scale, options.only)
    if options.list:
        print("\n".join(workload.name for workload in workloads))
        return 0
    if not workloads:
        print(f"no workload has {options.only!r} in its name; --list shows them all", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # peers warn of what their own newer versions will do
    load_average = os.getloadavg()[0]
    contestants = available()
    gc.freeze()  # what is imported need not be looked through before every turn
    progress = Progress(len(workloads))
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="zarrlite-bench-", dir=options.dir) as root:
        progress("making the image")
        space = Workspace(root, scale)
        about = environment(scale, contestants, space.ratios(), load_average)
        for _ in range(scale.passes):
            for workload in [one for one in workloads if one not in results or not settled(one, results[one])]:
                before = results.get(workload)
                results[workload] = measure(workload, space, contestants, scale.rounds, progress, before)
                report = write(Path(options.out), about, results)  # what is there is kept, however the run ends
                progress.done += before is None
    progress.clear()
    print(report)
    faults = failures({workload.name: result for workload, result in results.items()})
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def available() -> dict[str, Contestant]:
    """The contestants whose libraries are installed."""
    found = {}
    for name in NAMES:
        try:
            found[name] = load(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def write(directory: Path, about: dict[str, object], results: Results) -> str:
    """Write the three files; the text of the tables."""
    directory.mkdir(parents=True, exist_ok=True)
    text = to_markdown(about, results, "RESULTS.svg")
    (directory / "RESULTS.md").write_text(text)
    (directory / "RESULTS.json").write_text(json.dumps(to_json(about, results), indent=1) + "\n")
    (directory / "RESULTS.svg").write_text(to_svg(results))
    return text


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser("python -m benchmarks", description="zarrlite, its peers and a hand-written limit")
    scales = made.add_mutually_exclusive_group()
    made.set_defaults(scale="full")
    scales.add_argument("--full", dest="scale", action="store_const", const="full", help="512 MiB; the default")
    scales.add_argument("--quick", dest="scale", action="store_const", const="quick", help="about two minutes")
    scales.add_argument(
        "--tiny", dest="scale", action="store_const", const="tiny", help="does everything, says nothing"
    )
    made.add_argument(
        "--only", metavar="PATTERN", help="workloads that have this in their name; * and ? as in file names"
    )
    made.add_argument("--rounds", type=int, metavar="N", help="turns for each contestant, at least")
    made.add_argument("--out", default="bench-results", metavar="DIR", help="where the report goes (bench-results)")
    made.add_argument("--dir", metavar="DIR", help="where the temporary files go; 3 GiB for a full run")
    made.add_argument("--list", action="store_true", help="the names of the workloads")
    return made


if __name__ == "__main__":
    sys.exit(main())

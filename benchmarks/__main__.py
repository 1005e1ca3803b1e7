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
    """A progress line on a terminal; silent if stderr is not a terminal."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.shown = sys.stderr.isatty()
        self.begin = time.monotonic()

    def __call__(self, text: str) -> None:
        if self.shown:
            elapsed = int(time.monotonic() - self.begin)
            line = f"[{min(self.done + 1, self.total)}/{self.total}] {elapsed // 60}:{elapsed % 60:02}  {text}"
            sys.stderr.write(f"\r\x1b[K{line[:110]}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    options = parser().parse_args(arguments)
    scale = SCALES[options.scale]
    if options.rounds:
        scale = replace(scale, rounds=options.rounds)
    workloads = select(scale, options.only)
    if options.list:
        print("\n".join(workload.name for workload in workloads))
        return 0
    if not workloads:
        print(f"no workload has {options.only!r} in its name; use --list to see all", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # deprecation warnings of peers
    load_average = os.getloadavg()[0]
    contestants = available()
    gc.freeze()  # so that collections before every turn skip the imported modules
    progress = Progress(len(workloads))
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="zarrlite-bench-", dir=options.dir) as root:
        progress("generating the image")
        space = Workspace(root, scale)
        about = environment(scale, contestants, space.ratios(), load_average)
        for _ in range(scale.passes):
            for workload in [w for w in workloads if w not in results or not settled(w, results[w])]:
                before = results.get(workload)
                results[workload] = measure(workload, space, contestants, scale.rounds, progress, before)
                report = write(
                    Path(options.out), about, results
                )  # after every workload, so that an aborted run keeps its results
                progress.done += before is None
    progress.clear()
    print(report)
    failed = failures({workload.name: result for workload, result in results.items()})
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


def available() -> dict[str, Contestant]:
    """Return the contestants whose libraries are installed."""
    contestants = {}
    for name in NAMES:
        try:
            contestants[name] = load(name)
        except ImportError as error:
            print(f"{name} is skipped: {error}", file=sys.stderr)
    return contestants


def write(directory: Path, about: dict[str, object], results: Results) -> str:
    """Write the three files of the report, and return the Markdown."""
    directory.mkdir(parents=True, exist_ok=True)
    text = to_markdown(about, results, "RESULTS.svg")
    (directory / "RESULTS.md").write_text(text)
    (directory / "RESULTS.json").write_text(json.dumps(to_json(about, results), indent=1) + "\n")
    (directory / "RESULTS.svg").write_text(to_svg(results))
    return text


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = argparse.ArgumentParser(
        "python -m benchmarks", description="zarrlite, its peers and a hand-written limit"
    )
    scales = options.add_mutually_exclusive_group()
    options.set_defaults(scale="full")
    scales.add_argument("--full", dest="scale", action="store_const", const="full", help="512 MiB; the default")
    scales.add_argument("--quick", dest="scale", action="store_const", const="quick", help="about two minutes")
    scales.add_argument(
        "--tiny",
        dest="scale",
        action="store_const",
        const="tiny",
        help="smallest data: checks that everything runs, the times mean nothing",
    )
    options.add_argument(
        "--only", metavar="PATTERN", help="only workloads whose name contains this; * and ? are wildcards"
    )
    options.add_argument("--rounds", type=int, metavar="N", help="minimum number of turns for each contestant")
    options.add_argument(
        "--out", default="bench-results", metavar="DIR", help="directory of the report (bench-results)"
    )
    options.add_argument("--dir", metavar="DIR", help="directory for temporary files; a full run needs 3 GiB")
    options.add_argument("--list", action="store_true", help="print the names of the workloads")
    return options


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks`: run the workloads, show progress, write the report."""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.catalogue import select
from benchmarks.contestants import NAMES, REMOTE, Contestant, load
from benchmarks.data import FULL, QUICK, TINY
from benchmarks.measure import failures, measure, settled
from benchmarks.plot import to_svg
from benchmarks.report import Results, environment, to_json, to_markdown
from benchmarks.workloads import Workload
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
    if options.newest and not os.environ.get("ZARRLITE_NEWEST"):
        words = sys.argv[1:] if arguments is None else arguments
        return run_in_newest([word for word in words if word != "--newest"], options.out)
    scale: Any
    workloads: Sequence[Workload]
    if options.remote:
        from benchmarks.remote import catalogue, data

        scale = {scale.name: scale for scale in (data.FULL, data.QUICK, data.TINY)}[options.scale]
        workloads = catalogue.select(scale, options.only)
    else:
        scale = SCALES[options.scale]
        workloads = select(scale, options.only)
    if options.rounds:
        scale = replace(scale, rounds=options.rounds)
    if options.list:
        print("\n".join(workload.name for workload in workloads))
        return 0
    if not workloads:
        print(f"no workload has {options.only!r} in its name; use --list to see all", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # deprecation warnings of peers
    load_average = os.getloadavg()[0]
    contestants = available(options.remote)
    gc.freeze()  # excludes the imported modules from the garbage collection that runs before every turn
    progress = Progress(len(workloads))
    results: Results = {}
    with ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory(prefix="zarrlite-bench-", dir=options.dir))
        progress("generating the image")
        space = remote_space(root, scale, stack) if options.remote else Workspace(root, scale)
        about = environment(scale, contestants, space.ratios(), load_average, space.server)
        for _ in range(scale.passes):
            for workload in [w for w in workloads if w not in results or not settled(w, results[w])]:
                before = results.get(workload)
                results[workload] = measure(workload, space, contestants, scale.rounds, progress, before)
                # update the report after every workload, so that an aborted run keeps its results
                report = write(Path(options.out), "RESULTS-remote" if options.remote else "RESULTS", about, results)
                progress.done += before is None
    progress.clear()
    print(report)
    failed = failures({workload.name: result for workload, result in results.items()})
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


def run_in_newest(arguments: list[str], out: str) -> int:
    """Run the command in the environment of `make test-newest`. The reports are still written to `out`."""
    os.makedirs(out, exist_ok=True)
    command = ["tests/newest.sh", "--run", os.path.abspath(out), "env", "ZARRLITE_NEWEST=1", "python"]
    return subprocess.run([*command, "-m", "benchmarks", *arguments, "--out", "/out"]).returncode


def remote_space(root: str, scale: Any, stack: ExitStack) -> Workspace:
    """Start a server and a proxy, which stop when `stack` closes, and return a workspace in the server's buckets."""
    from benchmarks.remote.proxy import Proxy
    from benchmarks.remote.server import Server
    from benchmarks.remote.space import RemoteSpace

    server = stack.enter_context(Server(f"{root}/server"))
    proxy = stack.enter_context(Proxy(server.port, scale.delays))
    return RemoteSpace(root, scale, server, proxy)


def available(remote: bool = False) -> dict[str, Contestant]:
    """Return the contestants whose libraries are installed."""
    contestants = {}
    for name in REMOTE if remote else NAMES:
        try:
            contestants[name] = load(name, remote)
        except ImportError as error:
            print(f"{name} is skipped: {error}", file=sys.stderr)
    return contestants


def write(directory: Path, name: str, about: dict[str, object], results: Results) -> str:
    """Write the three files of the report, and return the Markdown."""
    directory.mkdir(parents=True, exist_ok=True)
    text = to_markdown(about, results, f"{name}.svg")
    (directory / f"{name}.md").write_text(text)
    (directory / f"{name}.json").write_text(json.dumps(to_json(about, results), indent=1) + "\n")
    (directory / f"{name}.svg").write_text(to_svg(results))
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
        help="smallest data: only checks that everything runs; the times mean nothing",
    )
    options.add_argument(
        "--remote", action="store_true", help="arrays in an S3 server on this machine, whose answers are delayed"
    )
    options.add_argument(
        "--newest",
        action="store_true",
        help="in a Debian system with the newest Python and zarr-python, also with its FusedCodecPipeline (as root)",
    )
    options.add_argument(
        "--only", metavar="PATTERN", help="only workloads whose name contains this; * and ? are wildcards"
    )
    options.add_argument("--rounds", type=int, metavar="N", help="minimum number of turns for each contestant")
    options.add_argument(
        "--out", default="bench-results", metavar="DIR", help="directory of the report (bench-results)"
    )
    options.add_argument("--dir", metavar="DIR", help="directory for temporary files; a full run needs 6 GiB")
    options.add_argument("--list", action="store_true", help="print the names of the workloads")
    return options


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exit normally, so that servers are stopped too
    sys.exit(main())

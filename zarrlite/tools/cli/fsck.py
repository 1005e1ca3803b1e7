"""`zarrlite fsck`: read every stored object of an array or a hierarchy, and report what is wrong.

Nothing is changed unless an option requests it. `--repair` makes only safe repairs. Repairs that can remove useful
information have options of their own: `--repair-outside` and `--repair-consolidated`.
"""

from __future__ import annotations

import argparse

from zarrlite.errors import NodeNotFoundError
from zarrlite.names import key_prefix
from zarrlite.tools.cli import locate
from zarrlite.tools.cli.console import Console
from zarrlite.tools.layout import REPAIRS, Problem, check, repair

HELP = "check every stored object"
EXAMPLE = "zarrlite fsck image.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an array or group")
    parser.add_argument("--lenient", action="store_true", help="accept common omissions in metadata documents")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="remove temporary files of writers that no longer run (on other machines: if the files are an hour old), "
        "and complete interrupted changes to chunks in parts, interrupted resizes and interrupted removals",
    )
    parser.add_argument("--repair-outside", action="store_true", help="remove chunks outside of the chunk grid")
    parser.add_argument("--repair-consolidated", action="store_true", help="update stale consolidated metadata")


def run(args: argparse.Namespace, console: Console) -> int:
    store, path = locate.split(args.location)
    requested = {
        "leftovers": args.repair,
        "journals": args.repair,
        "resizes": args.repair,
        "removals": args.repair,
        "outside": args.repair_outside,
        "consolidated": args.repair_consolidated,
    }
    repairable = {kind for name, kind in REPAIRS.items() if requested[name]}
    kept: list[Problem] = []  # problems to report or repair at the end
    report_at_end = console.as_json or console.stderr.isatty()  # printing lines would break up the progress bar
    checked = found = unsupported = 0
    total = sum(1 for _ in store.list_prefix(key_prefix(path))) if console.stderr.isatty() else 0
    with console.progress(f"checking {args.location}", total) as progress:

        def done(key: str) -> None:
            nonlocal checked
            checked += 1
            progress.advance()

        try:
            for problem in check(store, path, strict=not args.lenient, done=done):
                found += 1
                unsupported += problem.kind == "unsupported"
                if report_at_end or problem.kind in repairable:
                    kept.append(problem)
                if not report_at_end:
                    _print(console, problem)
        except NodeNotFoundError:
            locate.open_node(args.location)  # raises an error that names the location as typed
            raise
    for problem in kept if report_at_end and not console.as_json else ():
        _print(console, problem)
    with store:  # a zip file is complete once its store is closed
        repaired = repair(store, [problem for problem in kept if problem.kind in repairable])
    if console.as_json:
        console.json(
            {
                "checked": checked,
                "problems": [problem.to_json() for problem in kept],
                "repaired": [{"key": problem.key, "kind": problem.kind} for problem in repaired],
            }
        )
    else:
        _print_summary(console, checked, found, repaired)
    if found == unsupported > 0:
        return 4  # in every command, the exit code for an unknown extension
    return int(found > len(repaired))


def _print(console: Console, problem: Problem) -> None:
    location = "" if problem.start is None else f", bytes {problem.start} to {problem.stop}"
    console.print(f"{console.style(problem.key, 'name')}{location}: {console.style(problem.kind, 'bad')}")
    console.print(f"  {console.style(problem.message, 'bold')}")
    console.print(f"  {console.style(problem.remedy, 'dim')}")


def _print_summary(console: Console, checked: int, found: int, repaired: list[Problem]) -> None:
    for problem in repaired:
        console.print(f"{console.style(problem.key, 'name')}: {console.style('repaired', 'good')}")
    objects = "1 object" if checked == 1 else f"{checked} objects"
    problems = {0: "no problems", 1: "1 problem"}.get(found, f"{found} problems")
    suffix = f", {len(repaired)} repaired" if repaired else ""
    console.print(console.style(f"{problems} in {objects}{suffix}", "bad" if found > len(repaired) else "good"))

"""`zarrlite fsck`: reads every stored object of an array or a hierarchy, and says what is wrong.

Nothing is changed unless it is asked for. `--repair` does what is safe; the other two must be asked for by name.
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
    parser.add_argument("location", help="a path or file:// URL of an array or group")
    parser.add_argument("--lenient", action="store_true", help="accept what documents often forget")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="remove temporary files of writers that are gone, once they are an hour old",
    )
    parser.add_argument(
        "--repair-outside", action="store_true", help="remove chunks that lie outside of the grid of their array"
    )
    parser.add_argument(
        "--repair-consolidated", action="store_true", help="make copies of documents anew where they are stale"
    )


def run(args: argparse.Namespace, console: Console) -> int:
    store, path = locate.split(args.location)
    wanted = {"leftovers": args.repair, "outside": args.repair_outside, "consolidated": args.repair_consolidated}
    kinds = {kind for name, kind in REPAIRS.items() if wanted[name]}
    problems: list[Problem] = []  # what is told or repaired at the end
    later = console.as_json or console.stderr.isatty()  # not to print into a display of progress
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
                if later or problem.kind in kinds:
                    problems.append(problem)
                if not later:
                    _print(console, problem)
        except NodeNotFoundError:
            locate.open_node(args.location)  # which says it in the words of the command line
            raise
    for problem in problems if later and not console.as_json else ():
        _print(console, problem)
    repaired = repair(store, [problem for problem in problems if problem.kind in kinds])
    if console.as_json:
        told = [problem.to_json() for problem in problems]
        mended = [{"key": problem.key, "kind": problem.kind} for problem in repaired]
        console.json({"checked": checked, "problems": told, "repaired": mended})
    else:
        _summary(console, checked, found, repaired)
    if found == unsupported > 0:
        return 4  # as for every command that meets an extension it does not know
    return int(found > len(repaired))


def _print(console: Console, problem: Problem) -> None:
    place = "" if problem.start is None else f", bytes {problem.start} to {problem.stop}"
    console.print(f"{console.style(problem.key, 'name')}{place}: {console.style(problem.kind, 'bad')}")
    console.print(f"  {console.style(problem.message, 'bold')}")
    console.print(f"  {console.style(problem.remedy, 'dim')}")


def _summary(console: Console, checked: int, found: int, repaired: list[Problem]) -> None:
    for problem in repaired:
        console.print(f"{console.style(problem.key, 'name')}: {console.style('repaired', 'good')}")
    objects = "1 object" if checked == 1 else f"{checked} objects"
    problems = "no problems" if not found else "1 problem" if found == 1 else f"{found} problems"
    mended = f", {len(repaired)} repaired" if repaired else ""
    console.print(console.style(f"{problems} in {objects}{mended}", "bad" if found > len(repaired) else "good"))

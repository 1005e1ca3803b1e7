"""`zarrlite conformance`: run the corpus over implementations, compare two runs, show a case."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from zarrlite.errors import ArgumentError
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.conformance import materialize, runner
from zarrlite.tools.conformance.cases import Case, Corpus, load
from zarrlite.tools.conformance.implementations import SHIPPED, commands_of
from zarrlite.tools.conformance.judge import RESULTS
from zarrlite.tools.conformance.reports.html import to_html
from zarrlite.tools.conformance.reports.junit import to_junit
from zarrlite.tools.conformance.reports.markdown import to_markdown
from zarrlite.tools.conformance.results import FINE, Implementation, Run, diff, load_run
from zarrlite.tools.conformance.show import describe_case

HELP = "test an implementation of Zarr v3"
EXAMPLE = "zarrlite conformance run my_harness.py --filter core/ --html report.html"
SHOWN = 20  # cases that did not pass, for each implementation
STYLES = {"pass": "good", "unsupported": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="what", required=True, metavar="run | diff | show | list")
    run = commands.add_parser(
        "run", help="run cases over implementations", description=_RUN, epilog=f"example: {EXAMPLE}"
    )
    run.add_argument("harness", nargs="*", default=["zarrlite"], help=f"{', '.join(SHIPPED)}, all, a file or a command")
    _add_choice(run)
    run.add_argument("--timeout", type=float, default=runner.LIMIT, metavar="S", help="seconds for one request (10)")
    run.add_argument("--jobs", type=int, metavar="N", help="processes of each implementation (one for each processor)")
    run.add_argument("--json", nargs="?", const=True, default=argparse.SUPPRESS, metavar="FILE", help="all results")
    run.add_argument("--junit", metavar="FILE", help="a report as JUnit XML")
    run.add_argument("--markdown", metavar="FILE", help="a report as Markdown")
    run.add_argument("--html", metavar="FILE", help="a report as one page of HTML")
    run.add_argument("--materialize", metavar="DIR", help="do not run the cases, write them there as real directories")
    compare = commands.add_parser(
        "diff",
        help="what differs between two runs",
        description="Compare two JSON reports.",
        epilog="example: zarrlite conformance diff old.json new.json",
    )
    compare.add_argument("before", help="a file that `run --json FILE` wrote")
    compare.add_argument("after", help="another one")
    show = commands.add_parser(
        "show",
        help="one case",
        description="Everything about one case.",
        epilog="example: zarrlite conformance show core/arrays/edge-chunk",
    )
    show.add_argument("id", help="the id of the case")
    show.add_argument("--corpus", metavar="DIR", help="another corpus than the one installed")
    listing = commands.add_parser(
        "list",
        help="the cases",
        description="List cases.",
        epilog="example: zarrlite conformance list --filter extension=pad",
    )
    _add_choice(listing)
    for command in (compare, show, listing):
        command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


_RUN = (
    "Run cases over implementations. A case that must pass and does not makes the exit code 1. "
    "zarrita is looked for in the folder that the environment variable ZARRITA names."
)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="F",
        help="only this id, prefix or pattern, or feature=, level=, since=, kind=, extension=; all must hold",
    )
    parser.add_argument("--corpus", metavar="DIR", help="another corpus than the one installed")


def run(args: argparse.Namespace, console: Console) -> int:
    commands: dict[str, Callable[[argparse.Namespace, Console], int]] = {
        "run": _run,
        "diff": _diff,
        "show": _show,
        "list": _list,
    }
    return commands[args.what](args, console)


def _run(args: argparse.Namespace, console: Console) -> int:
    suite, cases = _chosen(args)
    if args.materialize:
        return _materialize(cases, args.materialize, console)
    _check_reports(args)
    if args.timeout <= 0 or (args.jobs is not None and args.jobs < 1):
        raise ArgumentError("--timeout and --jobs must be greater than 0")
    found = []
    for command in commands_of(args.harness):
        with console.progress(Path(command[-1]).name, len(cases)) as bar:
            try:
                found.append(runner.run(cases, command, limit=args.timeout, jobs=args.jobs, progress=bar.advance))
            except runner.HarnessError as error:
                console.error(f"zarrlite conformance: {error}")
    result = Run(suite.name, suite.version, found)
    _write_reports(args, result, suite)
    if console.as_json:
        console.json(result.to_json())
    elif found:
        _print(result, console)
    failed = any(_must_pass(one, case) for one in found for case in cases)
    return 1 if failed or len(found) < len(commands_of(args.harness)) else 0


def _check_reports(args: argparse.Namespace) -> None:
    """Refuse, before anything is run, to write a report over what is none, such as the harness."""
    for name in ("json", "junit", "markdown", "html"):
        target = getattr(args, name, None)
        if not isinstance(target, str):
            continue
        path = Path(target)
        if path.suffix in (".py", ".js", ".mjs") or (path.exists() and not path.is_file()):
            raise ArgumentError(f"--{name} {target} is no place for a report; the harness stands before the options")
        if not path.parent.is_dir():
            raise ArgumentError(f"--{name} {target}: there is no folder {str(path.parent)!r}")


def _must_pass(one: Implementation, case: Case) -> bool:
    """A case that had to pass and did not: one of level `must`, or one that ended the harness."""
    result = one.results[case.id].result
    return result in ("crash", "timeout", "garbage") or (result not in FINE and case.level == "must")


def _chosen(args: argparse.Namespace) -> tuple[Corpus, list[Case]]:
    suite = load(args.corpus)
    cases = suite.select(args.filter)
    if not cases:
        raise ArgumentError(f"no case fits {' '.join(args.filter)!r}; `zarrlite conformance list` has all")
    return suite, cases


def _write_reports(args: argparse.Namespace, result: Run, suite: Corpus) -> None:
    reports: list[tuple[Any, Callable[[], str]]] = [
        (args.json, lambda: json.dumps(result.to_json(), indent=1) + "\n"),
        (args.junit, lambda: to_junit(result)),
        (args.markdown, lambda: to_markdown(result, suite)),
        (args.html, lambda: to_html(result, suite)),
    ]
    for file, make in reports:
        if isinstance(file, str):  # a text from a harness need not be one that can be written
            Path(file).write_text(make(), "utf-8", "backslashreplace")


def _print(result: Run, console: Console) -> None:
    present = [r for r in RESULTS if any(one.count()[r] for one in result.implementations)]
    for one in result.implementations:
        failed = [(name, case) for name, case in one.results.items() if case.result not in FINE]
        for name, case in failed[:SHOWN]:
            detail = clean(case.detail)[:120]
            console.print(f"{one.name}: {console.style(case.result, 'bad')} {console.style(name, 'name')} {detail}")
        if len(failed) > SHOWN:
            console.print(console.style(f"{one.name}: {len(failed) - SHOWN} more; the reports have all of them", "dim"))
    headers = ["implementation", "version", *present, "seconds", "ms a case"]
    rows = [[one.name, one.version, *(one.count()[r] for r in present), *_times(one)] for one in result.implementations]
    console.table(headers, rows)


def _times(one: Implementation) -> Sequence[float]:
    return round(one.seconds, 1), round(statistics.median(case.ms for case in one.results.values()), 2)


def _materialize(cases: list[Case], folder: str, console: Console) -> int:
    count, left_out = materialize.materialize(cases, folder)
    if console.as_json:
        console.json({"folder": folder, "cases": count, "incomplete": left_out})
    else:
        console.print(f"{count} cases in {clean(folder)}")
        for name in left_out:
            console.warn(f"{name} has keys that cannot be files")
    return 0


def _diff(args: argparse.Namespace, console: Console) -> int:
    changes = diff(load_run(args.before), load_run(args.after))
    if console.as_json:
        console.json([{**vars(change), "worse": change.worse} for change in changes])
    for change in () if console.as_json else changes:
        before, after = (
            console.style(result or "not run", STYLES.get(result or "unsupported", "bad"))
            for result in (change.before, change.after)
        )
        console.print(f"{clean(change.implementation)}: {console.style(change.case, 'name')} {before} -> {after}")
    return 1 if any(change.worse for change in changes) else 0


def _show(args: argparse.Namespace, console: Console) -> int:
    case = load(args.corpus).find(args.id)
    if console.as_json:
        console.json(case.data)
    else:
        console.print(describe_case(case, console.style))
    return 0


def _list(args: argparse.Namespace, console: Console) -> int:
    _, cases = _chosen(args)
    if console.as_json:
        console.json([{**case.tags, "id": case.id, "kind": case.kind} for case in cases])
    else:
        rows = [[case.id, case.kind, case.feature, case.level, case.data["description"]] for case in cases]
        console.table(["id", "kind", "feature", "level", "description"], rows)
    return 0

"""`zarrlite conformance`: run the corpus against implementations, compare two runs, show or list cases."""

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
_MAX_PRINTED = 20  # failed cases printed for each implementation; the reports contain all of them
_STYLES = {"pass": "good", "unsupported": "dim"}  # every other result is "bad"
_RUN_DESCRIPTION = (
    "Run cases against implementations. The exit code is 1 if a case that must pass does not. "
    "zarrita is looked up in the folder named by the environment variable ZARRITA."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="run | diff | show | list")
    run = subcommands.add_parser(
        "run", help="run cases against implementations", description=_RUN_DESCRIPTION, epilog=f"example: {EXAMPLE}"
    )
    run.add_argument("harness", nargs="*", default=["zarrlite"], help=f"{', '.join(SHIPPED)}, all, a file or a command")
    _add_case_filter(run)
    run.add_argument(
        "--timeout", type=float, default=runner.LIMIT, metavar="S", help="seconds per request (default: 10)"
    )
    run.add_argument("--jobs", type=int, metavar="N", help="processes per implementation (default: one per processor)")
    run.add_argument(
        "--json", nargs="?", const=True, default=argparse.SUPPRESS, metavar="FILE", help="print or write all results"
    )
    run.add_argument("--junit", metavar="FILE", help="write a report as JUnit XML")
    run.add_argument("--markdown", metavar="FILE", help="write a report as Markdown")
    run.add_argument("--html", metavar="FILE", help="write a report as a single HTML page")
    run.add_argument(
        "--materialize", metavar="DIR", help="write the cases to DIR as directories instead of running them"
    )
    compare = subcommands.add_parser(
        "diff",
        help="compare two runs",
        description="Compare two JSON reports.",
        epilog="example: zarrlite conformance diff old.json new.json",
    )
    compare.add_argument("before", help="a file written by `run --json FILE`")
    compare.add_argument("after", help="the file to compare it with")
    show = subcommands.add_parser(
        "show",
        help="show a case",
        description="Show everything about a case.",
        epilog="example: zarrlite conformance show core/arrays/edge-chunk",
    )
    show.add_argument("id", help="the id of the case")
    _add_corpus(show)
    listing = subcommands.add_parser(
        "list",
        help="list cases",
        description="List cases.",
        epilog="example: zarrlite conformance list --filter extension=pad",
    )
    _add_case_filter(listing)
    for subcommand in (compare, show, listing):
        subcommand.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def _add_case_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="F",
        help="only cases with this id, prefix or pattern, or with feature=, level=, since=, kind= or extension=; "
        "a case must match every --filter",
    )
    _add_corpus(parser)


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", metavar="DIR", help="use the corpus in DIR instead of the installed one")


def run(args: argparse.Namespace, console: Console) -> int:
    subcommands: dict[str, Callable[[argparse.Namespace, Console], int]] = {
        "run": _run,
        "diff": _diff,
        "show": _show,
        "list": _list,
    }
    return subcommands[args.subcommand](args, console)


def _run(args: argparse.Namespace, console: Console) -> int:
    corpus, cases = _select_cases(args)
    if args.materialize:
        return _materialize(cases, args.materialize, console)
    _check_reports(args)
    if args.timeout <= 0 or (args.jobs is not None and args.jobs < 1):
        raise ArgumentError("--timeout and --jobs must be greater than 0")
    commands = commands_of(args.harness)
    implementations = []
    for command in commands:
        with console.progress(Path(command[-1]).name, len(cases)) as progress:
            try:
                implementations.append(
                    runner.run(cases, command, limit=args.timeout, jobs=args.jobs, progress=progress.advance)
                )
            except runner.HarnessError as error:
                console.error(f"zarrlite conformance: {error}")
    result = Run(corpus.name, corpus.version, implementations)
    _write_reports(args, result, corpus)
    if console.as_json:
        console.json(result.to_json())
    elif implementations:
        _print(result, console)
    failed = any(_is_failure(implementation, case) for implementation in implementations for case in cases)
    return 1 if failed or len(implementations) < len(commands) else 0


def _check_reports(args: argparse.Namespace) -> None:
    """Refuse to overwrite anything that is not a report, such as the harness. Called before any case is run."""
    for name in ("json", "junit", "markdown", "html"):
        target = getattr(args, name, None)
        if not isinstance(target, str):
            continue
        path = Path(target)
        if path.suffix in (".py", ".js", ".mjs") or (path.exists() and not path.is_file()):
            raise ArgumentError(
                f"--{name} must name a file for a report, not {target}; put the harness before the options"
            )
        if not path.parent.is_dir():
            raise ArgumentError(f"--{name} {target}: the directory {str(path.parent)!r} must exist")


def _is_failure(implementation: Implementation, case: Case) -> bool:
    """Whether a case of level `must` did not pass, or any case crashed the harness."""
    result = implementation.results[case.id].result
    return result in ("crash", "timeout", "garbage") or (result not in FINE and case.level == "must")


def _select_cases(args: argparse.Namespace) -> tuple[Corpus, list[Case]]:
    corpus = load(args.corpus)
    cases = corpus.select(args.filter)
    if not cases:
        raise ArgumentError(f"no case matches {' '.join(args.filter)!r}; `zarrlite conformance list` shows all")
    return corpus, cases


def _write_reports(args: argparse.Namespace, result: Run, corpus: Corpus) -> None:
    reports: list[tuple[Any, Callable[[], str]]] = [
        (args.json, lambda: json.dumps(result.to_json(), indent=1) + "\n"),
        (args.junit, lambda: to_junit(result)),
        (args.markdown, lambda: to_markdown(result, corpus)),
        (args.html, lambda: to_html(result, corpus)),
    ]
    for file, render in reports:
        if isinstance(file, str):
            # messages of a harness may contain surrogates, which UTF-8 cannot encode
            Path(file).write_text(render(), "utf-8", "backslashreplace")


def _print(result: Run, console: Console) -> None:
    present = [r for r in RESULTS if any(implementation.count()[r] for implementation in result.implementations)]
    rows = []
    for implementation in result.implementations:
        _print_failures(implementation, console)
        counts = implementation.count()
        rows.append(
            [implementation.name, implementation.version, *(counts[r] for r in present), *_times(implementation)]
        )
    console.table(["implementation", "version", *present, "seconds", "ms per case"], rows)


def _print_failures(implementation: Implementation, console: Console) -> None:
    failures = [(name, case) for name, case in implementation.results.items() if case.result not in FINE]
    for name, case in failures[:_MAX_PRINTED]:
        detail = clean(case.detail)[:120]
        result = console.style(case.result, "bad")
        console.print(f"{implementation.name}: {result} {console.style(name, 'name')} {detail}")
    omitted = len(failures) - _MAX_PRINTED
    if omitted > 0:
        console.print(console.style(f"{implementation.name}: {omitted} more; the reports contain all of them", "dim"))


def _times(implementation: Implementation) -> Sequence[float]:
    """Return the duration of the run in seconds, and the median duration of its cases in milliseconds."""
    milliseconds = statistics.median(case.ms for case in implementation.results.values())
    return round(implementation.seconds, 1), round(milliseconds, 2)


def _materialize(cases: list[Case], folder: str, console: Console) -> int:
    count, incomplete = materialize.materialize(cases, folder)
    if console.as_json:
        console.json({"folder": folder, "cases": count, "incomplete": incomplete})
    else:
        console.print(f"{count} cases in {clean(folder)}")
        for name in incomplete:
            console.warn(f"{name} contains keys that cannot be stored as files")
    return 0


def _diff(args: argparse.Namespace, console: Console) -> int:
    changes = diff(load_run(args.before), load_run(args.after))
    if console.as_json:
        console.json([{**vars(change), "worse": change.worse} for change in changes])
    for change in () if console.as_json else changes:
        before, after = (
            console.style(result or "not run", _STYLES.get(result or "unsupported", "bad"))
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
    _, cases = _select_cases(args)
    if console.as_json:
        console.json([{**case.tags, "id": case.id, "kind": case.kind} for case in cases])
    else:
        rows = [[case.id, case.kind, case.feature, case.level, case.data["description"]] for case in cases]
        console.table(["id", "kind", "feature", "level", "description"], rows)
    return 0

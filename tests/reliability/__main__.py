"""`python -m tests.reliability [NAME ...]`: run trials and print the results.

Without names, every kind of trial runs. Options: `--full` runs all trials instead of a sample, `--trials N` sets the
size of the sample, `--seed N` selects another sample, and `--only TEXT` selects the operations (scenes) or bombs whose
names contain the text. `--replay TEXT` repeats a failed trial; the text is printed when the trial fails. `--planted
[TEXT ...]` plants faults in a copy of the package and reports which ones are caught. The exit code is 1 if a trial
fails or a fault is not caught.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time

from tests.reliability.report import Figures
from tests.reliability.scenes import SCENES

KINDS = (
    "crash",
    "power",
    "interrupts",
    "faults",
    "races",
    "machine",
    "flips",
    "bombs",
    "conditions",
    "soak",
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(KINDS))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--outcomes", action="store_true", help="print nothing but the outcomes of failures, as JSON")
    parser.add_argument("--replay")
    parser.add_argument("--planted", action="store_true")
    args = parser.parse_args(arguments)
    if args.planted:
        from tests.reliability import planted

        return planted.main(args.names)
    if args.replay:
        name, spec = args.replay.split(":", 1)
        return _print(_module(name).replay(spec))
    code = 0
    for name in args.names or KINDS:
        module = _module(name)
        cases = getattr(module, "BOMBS", SCENES)
        for case in [case for case in cases if args.only not in case]:
            del cases[case]
        start = time.monotonic()
        figures = module.run(None if args.full else args.trials or module.SAMPLE, args.seed)
        if args.outcomes:
            print(json.dumps(sorted({failure.outcome for failure in figures.failures})))
            continue
        code |= _print(figures)
        print(f"  {time.monotonic() - start:.0f} s", flush=True)
    return code


def _module(name: str):
    if name not in KINDS:
        raise SystemExit(f"{name!r} is not a kind of trial; there are {', '.join(KINDS)}")
    return importlib.import_module(f"tests.reliability.{name}")


def _print(figures: Figures) -> int:
    print(figures.summary())
    if figures.failures:
        print(figures.table(), flush=True)
    return bool(figures.failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

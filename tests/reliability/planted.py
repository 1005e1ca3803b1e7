"""Plant faults one by one in a copy of the package, and run the trials that must catch them.

Rules
- `planted.json` lists the faults: a text in a file of the package and its replacement, as in tests/mutations. The text
  occurs exactly once in its file.
- `trial` is the kind of trial that must catch the fault; `only` selects scenes or bombs by part of their names;
  `trials` is the number of trials to run, None for all.
- A fault is caught if trials fail with `outcome` when it is planted, but not without it. Trials that take too long
  count as failed with this outcome.
- Each kind of trial catches at least one fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.mutations.run import ROOT, copied

LIMIT = 900.0  # seconds; the trials for one fault normally take a small fraction of this time


class Planted(NamedTuple):
    """One fault, and the trial that must catch it."""

    file: str  # relative to the package
    old: str
    new: str
    trial: str
    outcome: str
    only: str = ""
    trials: int | None = None


PLANTED = [Planted(**fault) for fault in json.loads((Path(__file__).parent / "planted.json").read_text("utf-8"))]


def main(words: list[str]) -> int:
    """Plant the faults that match one of the words (all faults if there are no words), and print which are caught."""
    chosen = [fault for fault in PLANTED if not words or any(word in " ".join(map(str, fault)) for word in words)]
    caught = 0
    with copied() as directory:
        for fault in chosen:
            before = _failures(fault, directory)
            path = directory / "zarrlite" / fault.file
            text = path.read_text("utf-8")
            path.write_text(text.replace(fault.old, fault.new), "utf-8")
            after = _failures(fault, directory)
            path.write_text(text, "utf-8")
            is_caught = fault.outcome in after and fault.outcome not in before
            caught += is_caught
            verdict = f"caught by {fault.trial}" if is_caught else "NOT CAUGHT"
            print(f"{fault.file}: {fault.old.strip().splitlines()[0]}\n    {verdict}: {fault.outcome}", end="")
            print(f" of {sorted(after)}, without the fault {sorted(before)}", flush=True)
    print(f"{caught} of {len(chosen)} planted faults are caught")
    return int(caught < len(chosen))


def _failures(fault: Planted, directory: Path) -> set[str]:
    """Run the trials on the package in a directory, and return the outcomes of those that fail."""
    # no bytecode is written, because Python does not notice that a file has changed twice within a second
    paths = os.pathsep.join([str(directory), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    count = ["--full"] if fault.trials is None else ["--trials", str(fault.trials)]
    only = ["--only", fault.only] if fault.only else []
    command = [sys.executable, "-P", "-m", "tests.reliability", fault.trial, *count, *only, "--outcomes"]
    try:
        done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {fault.outcome}
    if done.returncode > 1 or not done.stdout:
        raise RuntimeError(f"the trials cannot be run: {done.stderr}")
    return set(json.loads(done.stdout))

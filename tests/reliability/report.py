"""Results of trials: how many were run, with which outcome, and how to repeat those that failed.

To add a kind of trial, write a module in this folder, list its name in `KINDS` in `__main__.py`, and define in it

    SAMPLE = 500                                   # trials of the sample that pytest runs
    def run(trials: int | None, seed: int) -> Figures: ...   # None: all of them
    def replay(spec: str) -> Figures: ...          # one trial, from the text after "NAME:" of a failure

Also write a test module whose tests state what the sample shows about the library (`figures.check()` fails with the
list of failures). `python -m tests.reliability NAME --full --seed 7` prints the figures; `--replay NAME:SPEC` repeats a
trial.

Rules
- The same seed and number of trials select the same trials on every machine.
- A replay text contains everything that defines a trial; the seed is not needed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Failure(NamedTuple):
    """A trial that failed."""

    scene: str
    outcome: str
    replay: str  # text for --replay
    description: str


@dataclass
class Figures:
    """Counts of trials by scene and outcome."""

    name: str  # the kind of trial
    seed: int
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # remarks for the summary, such as skipped conditions or memory use

    @property
    def trials(self) -> int:
        return self.outcomes.total()

    def passed(self, scene: str, outcome: str, count: int = 1) -> None:
        """Count trials that passed."""
        self.outcomes[scene, outcome] += count

    def failed(self, scene: str, outcome: str, spec: str, description: str) -> None:
        """Count a trial that failed."""
        self.outcomes[scene, outcome] += 1
        self.failures.append(Failure(scene, outcome, f"{self.name}:{spec}", description))

    def summary(self) -> str:
        """Return the figures in one line."""
        totals: Counter[str] = Counter()
        for (_, outcome), count in self.outcomes.items():
            totals[outcome] += count
        counts = ", ".join(f"{outcome} {count}" for outcome, count in sorted(totals.items()))
        text = f"{self.name}: {self.trials} trials, {len(self.failures)} failed (seed {self.seed}): {counts}"
        return "; ".join([text, *self.notes])

    def table(self) -> str:
        """Return the scenes that failed, with the counts of their failures by outcome."""
        scenes = dict.fromkeys(failure.scene for failure in self.failures)
        lines = []
        for scene in scenes:
            counts = {outcome: count for (name, outcome), count in self.outcomes.items() if name == scene}
            bad = Counter(failure.outcome for failure in self.failures if failure.scene == scene)
            text = ", ".join(f"{outcome} {count}" for outcome, count in sorted(bad.items()))
            lines.append(f"  {scene}: {text} of {sum(counts.values())}")
            first = next(failure for failure in self.failures if failure.scene == scene)
            lines.append(f"      --replay {first.replay!r}: {first.description[:200]}")
        return "\n".join(lines)

    def check(self) -> None:
        """Fail with a list of the failures, if there are any."""
        assert self.trials, f"{self.name}: no trial was run"
        assert not self.failures, f"{self.summary()}\n{self.table()}"

"""`python -m tests.mutations [TEXT ...]`: plant bugs one by one and print which the corpus catches.

If texts are passed, only bugs whose file name or replaced text contains one of them are planted. The exit code is 1 if
fewer than 95 % of the bugs are caught.
"""

from __future__ import annotations

import sys

from tests.mutations.run import PLANTED, copied, plant, run_corpus


def main(words: list[str]) -> int:
    chosen = [bug for bug in PLANTED if not words or any(word in f"{bug.file} {bug.old}" for word in words)]
    caught = 0
    with copied() as directory:
        failing_case = run_corpus(directory)
        if failing_case:
            print(f"the corpus fails without any bug: {failing_case}")
            return 1
        for bug in chosen:
            failing_case = plant(bug, directory)
            caught += bool(failing_case)
            verdict = f"caught by {failing_case}" if failing_case else "SURVIVED"
            print(f"{bug.file}: {bug.old.strip().splitlines()[0]}\n    {verdict}", flush=True)
    print(f"{caught} of {len(chosen)} planted bugs are caught, {caught / max(1, len(chosen)):.0%}")
    return 0 if caught >= 0.95 * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m tests.mutations [TEXT ...]`: plant all bugs, or those whose file or text has one of these; the score."""

from __future__ import annotations

import sys

from tests.mutations.run import PLANTED, copied, plant, run_corpus


def main(words: list[str]) -> int:
    chosen = [bug for bug in PLANTED if not words or any(word in f"{bug.file} {bug.old}" for word in words)]
    caught = 0
    with copied() as directory:
        fault = run_corpus(directory)
        if fault:
            print(f"the corpus fails without any bug: {fault}")
            return 1
        for bug in chosen:
            found = plant(bug, directory)
            caught += bool(found)
            verdict = f"caught by {found}" if found else "SURVIVED"
            print(f"{bug.file}: {bug.old.strip().splitlines()[0]}\n    {verdict}", flush=True)
    print(f"{caught} of {len(chosen)} planted bugs are caught, {caught / max(1, len(chosen)):.0%}")
    return 0 if caught >= 0.95 * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

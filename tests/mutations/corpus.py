"""Run the cases of spec_fixtures/ against the zarrlite that is imported, up to the first one that fails.

Prints the id of that case, or nothing. Arguments are beginnings of ids: those cases come first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import test_fixture_stores as stores
import test_fixtures as fixtures
from fixture_files import CASES

RUNNERS: dict[str, tuple[Callable[[dict[str, Any]], None], ...]] = {
    "metadata": (
        fixtures.test_documents_have_their_verdict,
        fixtures.test_documents_have_their_verdict_in_lenient_mode,
    ),
    "keys": (fixtures.test_chunk_keys_go_both_ways,),
    "codecs": (fixtures.test_chunks_are_decoded_and_encoded,),
    "array": (fixtures.test_arrays_are_read,),
    "damage": (fixtures.test_damage_is_refused,),
    "reads": (stores.test_exactly_these_bytes_are_read,),
    "store": (stores.test_transformers_do_what_they_say,),
}


def first_failure(first: tuple[str, ...]) -> str | None:
    """The id of the first case that fails."""
    warnings.simplefilter("error")
    for case in sorted(CASES, key=lambda case: not case["id"].startswith(first)):
        for run in RUNNERS[case["kind"]]:
            try:
                run(case)
            except BaseException:  # what pytest raises is no Exception
                return str(case["id"])
    return None


if __name__ == "__main__":
    print(first_failure(tuple(sys.argv[1:]) or ("",)) or "")

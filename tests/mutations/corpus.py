"""Run the cases in spec_fixtures/ against the zarrlite on `sys.path`, and stop at the first failure.

Prints the id of the failing case, or nothing. Arguments are prefixes of case ids; cases with these prefixes run first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "conformance"))

import test_fixture_stores as stores
import test_fixtures as fixtures
from fixture_files import CASES

RUNNERS: dict[str, tuple[Callable[[dict[str, Any]], None], ...]] = {
    "metadata": (
        fixtures.test_strict_parser_gives_the_verdict_of_the_case,
        fixtures.test_lenient_parser_gives_the_verdict_of_the_case,
        fixtures.test_validate_lists_the_fault_of_the_case_first,
    ),
    "keys": (fixtures.test_chunk_keys_are_encoded_and_decoded,),
    "codecs": (fixtures.test_chunks_are_decoded_and_encoded,),
    "array": (fixtures.test_selections_are_read,),
    "damage": (fixtures.test_damage_is_refused,),
    "refusal": (fixtures.test_documents_of_other_versions_are_refused,),
    "reads": (stores.test_reads_request_exactly_the_expected_ranges,),
    "store": (stores.test_operations_above_transformers_have_the_results_of_the_case,),
}


def first_failure(first: tuple[str, ...]) -> str | None:
    """Return the id of the first case that fails. Returns None if all pass."""
    warnings.simplefilter("error")
    for case in sorted(CASES, key=lambda case: not case["id"].startswith(first)):
        for run in RUNNERS[case["kind"]]:
            try:
                run(case)
            except BaseException:  # pytest's failures do not derive from Exception
                return str(case["id"])
    return None


if __name__ == "__main__":
    print(first_failure(tuple(sys.argv[1:]) or ("",)) or "")

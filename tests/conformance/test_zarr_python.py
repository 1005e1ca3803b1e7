"""zarr-python passes the cases of the core specification that concern data, except for those listed here.

The cases were written from the specification. If a new release of zarr-python fails further cases, either that
release or those cases are wrong.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from zarrlite.tools.conformance import runner
from zarrlite.tools.conformance.cases import Corpus
from zarrlite.tools.conformance.implementations import command_of
from zarrlite.tools.conformance.results import Implementation

MISREAD = {"core/arrays/fill-rounded-once"}  # zarr-python rounds the number to float64 first
REFUSED = {
    "core/arrays/ignored-codec",  # has a codec with must_understand: false
    "core/extensions/must-understand/ignored-before-bytes",
    "core/arrays/no-dimensions-v2",  # has a short-hand name
    "core/arrays/transposed-shard-of-three-dimensions",
    "core/codec_data/sharding/no-dimensions",  # refused by zarr-python 3.1
    "core/other_writers/endian-codec/data",
}


@pytest.fixture(scope="module")
def results(suite: Corpus, zarr: ModuleType) -> dict[str, str]:
    kinds = ("array", "codecs", "reads", "damage")
    cases = [case for case in suite.select(["core/"]) if case.data["kind"] in kinds]
    implementation: Implementation = runner.run(cases, command_of("zarr-python"))
    return {name: result.result for name, result in implementation.results.items()}


def with_result(results: dict[str, str], *wanted: str) -> set[str]:
    return {name for name, result in results.items() if result in wanted}


def test_the_harness_answers_every_request(results: dict[str, str]) -> None:
    assert with_result(results, "garbage", "timeout", "crash", "ignored-extension") == set()
    assert len(with_result(results, "pass")) > 150


def test_data_is_read_and_written_as_the_cases_expect_with_known_exceptions(results: dict[str, str]) -> None:
    assert with_result(results, "wrong-data") == MISREAD
    assert with_result(results, "refused-valid") <= REFUSED


def test_extensions_that_zarrlite_adds_to_zarr_python_are_left_out(suite: Corpus, zarr: ModuleType) -> None:
    case = suite.find("proposals/pad/data/zeros")
    assert runner.run([case], command_of("zarr-python")).results[case.id].result == "unsupported"

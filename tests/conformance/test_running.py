"""Every result is told apart, whatever a harness does; zarrlite passes all cases."""

from __future__ import annotations

import sys

import pytest

from zarrlite.errors import ArgumentError
from zarrlite.tools.conformance import process, runner
from zarrlite.tools.conformance.implementations import command_of

VALID = "core/array/dimension_names/same"  # opens
INVALID = "core/array/shape/missing"
READ = "core/arrays/edge-chunk"
DAMAGE = "core/damage/bytes/short"
PAD = "proposals/pad/data/zeros"
PAD_WRONG = "proposals/pad/configuration/nbytes-missing"
NOBODY = "core/extensions/codec/unknown-name"


def test_zarrlite_passes_every_case(itself, suite):
    assert {name: r.detail for name, r in itself.results.items() if r.result != "pass"} == {}
    assert list(itself.results) == [case.id for case in suite.cases]
    assert all(step.result == "pass" for r in itself.results.values() for step in r.steps)


@pytest.mark.parametrize(
    ("way", "case", "result", "detail"),
    [
        ("crash", VALID, "crash", "ended with code 7: Error: the floor gave way"),
        ("abort", VALID, "crash", "ended by SIGABRT"),
        ("garbage", VALID, "garbage", "is not JSON: debug: entering run"),
        ("other-id", VALID, "garbage", 'is not the answer to id 1: {"id": -1, "refused": "of another one"}'),
        ("accept", VALID, "pass", ""),
        ("accept", INVALID, "accepted-invalid", "was not refused"),
        ("accept", DAMAGE, "accepted-invalid", "was not refused"),
        ("accept", PAD, "ignored-extension", "needs pad (codecs), which is not among the capabilities"),
        ("accept", PAD_WRONG, "ignored-extension", "needs pad (codecs), which is not among the capabilities"),
        ("accept", READ, "wrong-data", "has shape [1], not [3]"),
        ("wrong", VALID, "wrong-data", "is written back as another document"),
        ("refuse", VALID, "refused-valid", "no"),
        ("refuse", INVALID, "pass", ""),
        ("refuse", DAMAGE, "pass", ""),
        ("refuse", PAD, "unsupported", "no"),
        ("refuse", PAD_WRONG, "unsupported", "no"),
        ("refuse", NOBODY, "pass", ""),
        ("accept", NOBODY, "ignored-extension", "needs nobody.knows (codecs), which is not among the capabilities"),
        ("unsupported", VALID, "unsupported", "cannot"),
        ("unsupported", INVALID, "unsupported", "cannot"),
        ("pointer", INVALID, "wrong-data", "refused with pointer '/elsewhere', not '/shape'"),
        ("open-only", READ, "unsupported", "is not among the operations"),
    ],
)
def test_a_result_for_everything_that_a_harness_can_do(toy, way, case, result, detail):
    found = toy(way, case).results[case]
    assert (found.result, found.detail) == (result, detail)


def test_a_harness_that_does_not_answer_in_time_is_ended(toy):
    found = toy("hang", VALID, limit=0.5).results[VALID]
    assert (found.result, found.detail) == ("timeout", "no answer within 0.5 s")


def test_a_harness_that_lives_on_without_an_output_is_ended(toy, monkeypatch):
    monkeypatch.setattr(process, "STOP_LIMIT", 0.2)
    found = toy("silent", VALID).results[VALID]
    assert (found.result, found.detail) == ("crash", "closed its output")


def test_a_line_without_an_end_is_cut(toy, monkeypatch):
    monkeypatch.setattr(process, "LONGEST_LINE", 2000)
    assert toy("long", VALID).results[VALID].detail == f"is not JSON: {'x' * 200}"


def test_an_answer_that_is_too_deep_is_garbage(toy):
    found = toy("deep", VALID).results[VALID]
    assert (found.result, found.detail[:20]) == ("garbage", 'is not JSON: {"id": ')


def test_of_long_answers_only_the_beginning_is_kept(toy):
    assert len(toy("odd", VALID).results[VALID].detail) == runner.LONGEST_DETAIL


def test_after_a_fault_the_harness_is_started_again(toy):
    found = toy("crash", INVALID, VALID, INVALID, DAMAGE, fine=VALID)  # crashes in the second case only
    assert [r.result for r in found.results.values()] == ["pass", "crash", "pass"]
    assert list(found.results) == [INVALID, VALID, DAMAGE]


def test_a_harness_that_fails_to_start_again_is_left_alone(toy, tmp_path):
    cases = [VALID, INVALID, READ, DAMAGE, PAD]
    details = [r.detail for r in toy("late-crash", *cases, fine=str(tmp_path / "started")).results.values()]
    assert details == [
        "ended with code 1",
        *["ended with code 1: Error: not again"] * 3,
        "failed to start 3 times in a row and was not started again",
    ]


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("no-start", "ended with code 1: ModuleNotFoundError: No module named 'toy'"),
        ("old", "speaks protocol 2; this is 1: "),
    ],
)
def test_a_harness_that_does_not_start_is_an_error(toy, way, message):
    with pytest.raises(runner.HarnessError) as error:
        toy(way, VALID)
    assert message in str(error.value)


def test_a_command_that_does_not_exist_is_an_error():
    with pytest.raises(runner.HarnessError, match="cannot be started"):
        runner.run([], ["./nothing-here"])


def test_many_cases_are_shared_by_several_processes(suite):
    found = runner.run(suite.select(["proposals/pad/"]), command_of("zarrlite"), jobs=2)
    assert set(found.count()) == {"pass"}


@pytest.mark.parametrize(
    ("name", "end"),
    [("zarrlite", ["zarrlite_itself.py"]), (f"{sys.executable} -m x", ["-m", "x"])],
)
def test_a_harness_is_a_name_a_file_or_a_command(name, end, tmp_path):
    assert command_of(name)[0] == sys.executable
    assert [word.rpartition("/")[2] for word in command_of(name)[1:]] == end


def test_a_harness_that_is_nothing_of_that_is_refused(tmp_path):
    with pytest.raises(ArgumentError) as error:
        command_of("my-harness")
    assert str(error.value) == (
        "'my-harness' is neither a file nor a command nor one of: "
        "zarrlite, zarr-python, zarrs, tensorstore, zarrita, all"
    )
    (tmp_path / "plain.txt").touch()
    with pytest.raises(ArgumentError, match="is not executable"):
        command_of(str(tmp_path / "plain.txt"))

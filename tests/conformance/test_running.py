"""Running cases: each kind of misbehaviour of a harness leads to the right result, and zarrlite passes all cases."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from conformance.conftest import TOY

from zarrlite.errors import ArgumentError
from zarrlite.tools.conformance import process, runner
from zarrlite.tools.conformance.implementations import command_of

VALID = "core/array/dimension_names/same"
INVALID = "core/array/shape/missing"
READ = "core/arrays/edge-chunk"
DAMAGE = "core/damage/bytes/short"
PAD = "proposals/pad/data/zeros"
INVALID_PAD = "proposals/pad/configuration/nbytes-missing"
UNKNOWN = "core/extensions/codec/unknown-name"


def test_zarrlite_passes_every_case(itself, suite):
    assert {name: r.detail for name, r in itself.results.items() if r.result != "pass"} == {}
    assert list(itself.results) == [case.id for case in suite.cases]
    assert all(step.result == "pass" for r in itself.results.values() for step in r.steps)


@pytest.mark.parametrize(
    ("mode", "case", "result", "detail"),
    [
        ("crash", VALID, "crash", "exited with code 7: Error: out of order"),
        ("abort", VALID, "crash", "killed by SIGABRT"),
        ("garbage", VALID, "garbage", "is not JSON: debug: entering run"),
        ("other-id", VALID, "garbage", 'id must be 1: {"id": -1, "refused": "another request"}'),
        ("accept", VALID, "pass", ""),
        ("accept", INVALID, "accepted-invalid", "was not refused"),
        ("accept", DAMAGE, "accepted-invalid", "was not refused"),
        ("accept", PAD, "ignored-extension", "accepted a document that requires pad (codecs), which is not claimed"),
        (
            "accept",
            INVALID_PAD,
            "ignored-extension",
            "accepted a document that requires pad (codecs), which is not claimed",
        ),
        ("accept", READ, "wrong-data", "has shape [1], not [3]"),
        ("wrong", VALID, "wrong-data", "writes back a different document"),
        ("refuse", VALID, "refused-valid", "no"),
        ("refuse", INVALID, "pass", ""),
        ("refuse", DAMAGE, "pass", ""),
        ("refuse", PAD, "unsupported", "no"),
        ("refuse", INVALID_PAD, "unsupported", "no"),
        ("refuse", UNKNOWN, "pass", ""),
        (
            "accept",
            UNKNOWN,
            "ignored-extension",
            "accepted a document that requires nobody.knows (codecs), which is not claimed",
        ),
        ("unsupported", VALID, "unsupported", "cannot"),
        ("unsupported", INVALID, "unsupported", "cannot"),
        ("pointer", INVALID, "wrong-data", "refused with pointer '/elsewhere', not '/shape'"),
        ("open-only", READ, "unsupported", "the harness does not claim this operation"),
    ],
)
def test_each_behaviour_of_a_harness_gets_the_expected_result(toy, mode, case, result, detail):
    actual = toy(mode, case).results[case]
    assert (actual.result, actual.detail) == (result, detail)


def test_harness_that_does_not_answer_in_time_is_a_timeout(toy):
    actual = toy("hang", VALID, limit=0.5).results[VALID]
    assert (actual.result, actual.detail) == ("timeout", "no answer within 0.5 s")


def test_harness_that_answers_without_reading_its_input_is_a_timeout(suite, monkeypatch):
    monkeypatch.setattr(process, "STOP_LIMIT", 0.2)
    actual = runner.run(suite.cases[:300], [sys.executable, str(TOY), "deaf"], limit=1, jobs=1)
    assert "did not read its input within 1 s" in {r.detail for r in actual.results.values()}


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="environments of processes need /proc")
def test_children_that_leave_the_process_group_of_a_harness_end_with_it(toy, tmp_path):
    toy("leave-a-child", VALID, option=str(tmp_path / "pid"))
    child = Path("/proc", (tmp_path / "pid").read_text(), "stat")

    def has_ended() -> bool:
        try:
            return child.read_text().split()[2] in "ZX"  # a zombie has ended, too
        except OSError:
            return True

    deadline = time.monotonic() + 60  # the child was killed, but may take some time to end
    while not has_ended() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert has_ended()


def test_harness_that_closes_its_output_is_a_crash(toy, monkeypatch):
    monkeypatch.setattr(process, "STOP_LIMIT", 0.2)
    actual = toy("silent", VALID).results[VALID]
    assert (actual.result, actual.detail) == ("crash", "closed its output")


def test_line_that_is_too_long_is_cut(toy, monkeypatch):
    monkeypatch.setattr(process, "MAX_LINE", 2000)
    assert toy("long", VALID).results[VALID].detail == f"is not JSON: {'x' * 200}"


def test_answer_that_is_nested_too_deeply_is_garbage(toy):
    actual = toy("deep", VALID).results[VALID]
    assert (actual.result, actual.detail[:20]) == ("garbage", 'is not JSON: {"id": ')


def test_long_detail_is_cut(toy):
    assert len(toy("odd", VALID).results[VALID].detail) == runner.MAX_DETAIL


def test_harness_is_restarted_after_a_crash(toy):
    actual = toy("crash", INVALID, VALID, INVALID, DAMAGE, option=VALID)  # crashes in the second case only
    assert [r.result for r in actual.results.values()] == ["pass", "crash", "pass"]
    assert list(actual.results) == [INVALID, VALID, DAMAGE]


def test_harness_that_fails_to_start_repeatedly_is_not_started_again(toy, tmp_path):
    cases = [VALID, INVALID, READ, DAMAGE, PAD]
    details = [r.detail for r in toy("late-crash", *cases, option=str(tmp_path / "started")).results.values()]
    assert details == [
        "exited with code 1",
        *["exited with code 1: Error: not again"] * 3,
        "failed to start 3 times in a row and was not started again",
    ]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("no-start", "exited with code 1: ModuleNotFoundError: No module named 'toy'"),
        ("old", "protocol must be 1, not 2: "),
    ],
)
def test_harness_that_does_not_start_is_an_error(toy, mode, message):
    with pytest.raises(runner.HarnessError) as error:
        toy(mode, VALID)
    assert message in str(error.value)


def test_command_that_does_not_exist_is_an_error():
    with pytest.raises(runner.HarnessError, match="cannot be started"):
        runner.run([], ["./nothing-here"])


def test_several_processes_share_the_cases(suite):
    actual = runner.run(suite.select(["proposals/pad/"]), command_of("zarrlite"), jobs=2)
    assert set(actual.count()) == {"pass"}


@pytest.mark.parametrize(
    ("name", "end"),
    [("zarrlite", ["zarrlite_itself.py"]), (f"{sys.executable} -m x", ["-m", "x"])],
)
def test_a_harness_can_be_a_name_a_file_or_a_command(name, end, tmp_path):
    assert command_of(name)[0] == sys.executable
    assert [word.rpartition("/")[2] for word in command_of(name)[1:]] == end


def test_unknown_harness_is_refused(tmp_path):
    with pytest.raises(ArgumentError) as error:
        command_of("my-harness")
    shipped = "zarrlite, zarr-python, zarrs, zarrista, tensorstore, zarrita"
    assert str(error.value) == f"'my-harness' must be a file, a command or one of: {shipped}, all"
    (tmp_path / "plain.txt").touch()
    with pytest.raises(ArgumentError, match="must be executable"):
        command_of(str(tmp_path / "plain.txt"))

"""The command `zarrlite conformance`, and the corpus: loading, filtering and writing it to directories."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import zarrlite
from zarrlite.errors import ArgumentError, DependencyError
from zarrlite.tools.cli.main import main
from zarrlite.tools.conformance import cases
from zarrlite.tools.conformance.materialize import materialize

TOY = str(Path(__file__).with_name("toy.py"))


@pytest.fixture
def command(capfd):
    """Return a function that runs the command in this process, and returns the exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(["conformance", *map(str, words)])
        return (code, *capfd.readouterr())

    return run


# running


def test_run_prints_a_table_and_writes_reports(command, tmp_path):
    names = {option: tmp_path / option.strip("-") for option in ("--json", "--junit", "--markdown", "--html")}
    words = [word for pair in names.items() for word in pair]
    code, out, err = command("run", "--filter", "core/crc32c", "--filter", "feature=crc32c", *words)
    assert (code, err) == (
        2,
        "zarrlite conformance: no case matches 'core/crc32c feature=crc32c'; `zarrlite conformance list` shows all\n",
    )
    code, out, err = command("run", "--filter", "feature=crc32c", *words)
    assert (code, err) == (0, "")
    header, row = out.splitlines()
    assert header.split() == ["implementation", "version", "pass", "seconds", "ms", "per", "case"]
    assert row.split()[:2] == ["zarrlite", zarrlite.__version__]
    assert json.loads(names["--json"].read_text())["suite"]["version"] == cases.load().version
    assert names["--junit"].read_text().startswith("<?xml")
    assert "| crc32c |" in names["--markdown"].read_text()
    assert names["--html"].read_text().startswith("<!doctype html>")


def test_json_without_a_file_is_printed(command):
    code, out, _ = command("run", "--filter", "core/arrays/", "--json")
    assert code == 0
    assert json.loads(out)["implementations"][0]["name"] == "zarrlite"


def test_exit_code_is_1_if_a_case_of_level_must_fails(command):
    words = ("run", f"{sys.executable} {TOY} refuse", "--filter")
    code, out, _ = command(*words, "core/array/dimension_names/same")
    assert code == 1
    assert out.startswith("toy: refused-valid core/array/dimension_names/same no\n")
    assert command(*words, "core/array/shape/missing")[0] == 0  # a refusal is expected
    assert command(*words, "optional/zstd/data/plain")[0] == 0  # the toy harness does not claim zstd


def test_harness_that_does_not_start_is_reported_and_the_others_run(command):
    code, out, err = command("run", f"{sys.executable} {TOY} no-start", "zarrlite", "--filter", "core/arrays/")
    assert code == 1
    assert err.endswith("exited with code 1: ModuleNotFoundError: No module named 'toy'\n")
    assert out.splitlines()[1].split()[0] == "zarrlite"


def test_reports_escape_text_that_cannot_be_encoded(command, tmp_path):
    names = [word for o in ("--json", "--junit", "--markdown", "--html") for word in (o, tmp_path / o.strip("-"))]
    code, out, err = command("run", f"{sys.executable} {TOY} odd", "--filter", "core/array/shape/", *names)
    assert (code, err) == (1, "")
    assert "<b>\\ud800\\x00\\nxxx" in out
    assert ElementTree.parse(tmp_path / "junit").getroot().tag == "testsuites"
    assert "&lt;b>\\ud800" in (tmp_path / "markdown").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "--filter", "color=red"],
            "'color=red' must not filter by 'color'; use one of feature, level, since, kind, extension",
        ),
        (["run", "--timeout", "0"], "--timeout and --jobs must be greater than 0"),
        (["run", "--corpus", "nowhere"], "nowhere is not a corpus: "),
        (
            ["show", "core/arrays/edge-chunks"],
            "no case has the id 'core/arrays/edge-chunks'; did you mean 'core/arrays/edge-chunk'?",
        ),
        (["diff", "nowhere", "nowhere"], "nowhere: "),
    ],
)
def test_usage_error_is_one_line(command, words, message):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"zarrlite conformance: {message}")
    assert err.count("\n") == 1


def test_help_has_an_example(command):
    code, out, _ = command("--help")
    assert code == 0
    assert "zarrlite conformance run my_harness.py" in out


def test_command_runs_as_a_process():
    words = [sys.executable, "-m", "zarrlite", "conformance", "run", "--filter", "core/arrays/"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[0] == "zarrlite"


# diff, show, list


def test_diff_lists_the_cases_whose_results_differ(command, tmp_path):
    for mode in ("accept", "refuse"):
        words = ["--filter", "core/array/shape/", "--json", tmp_path / mode]
        command("run", f"{sys.executable} {TOY} {mode}", *words)
    code, out, _ = command("diff", tmp_path / "accept", tmp_path / "refuse")
    assert "toy: core/array/shape/missing accepted-invalid -> pass\n" in out
    assert code == 1  # because some cases that passed in the first run are refused in the second
    assert command("diff", tmp_path / "accept", tmp_path / "accept") == (0, "", "")
    changes = json.loads(command("diff", tmp_path / "accept", tmp_path / "refuse", "--json")[1])
    assert {"implementation", "case", "before", "after", "worse"} == set(changes[0])


def test_show_prints_quote_bytes_and_expected_answers(command):
    code, out, _ = command("show", "core/arrays/edge-chunk")
    assert code == 0
    for text in (
        "elements of a chunk beyond the edge of the array are not read",
        "zarr-specs: docs/v3/chunk-grids/regular-grid/index.rst, Description",
        "“the border of an array always have the full chunk size”",
        '"chunk_shape": [',
        "c/1\n000000  03 ff ",
        'read {"path": "", "selection": [[2, 3, 1]]}\nexpected {"shape": [1], "data": "Aw=="}',
    ):
        assert text in out
    assert json.loads(command("show", "core/arrays/edge-chunk", "--json")[1])["kind"] == "array"


def test_list_prints_cases(command):
    code, out, _ = command("list", "--filter", "core/arrays/edge*")
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["core/arrays/edge-chunk", "array"]
    listed = json.loads(command("list", "--filter", "extension=suffix", "--json")[1])
    assert {"feature", "level", "since", "id", "kind"} == set(listed[0])


# corpus


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        (["core/arrays/"], lambda case: case.id.startswith("core/arrays/")),
        (["*-chunk"], lambda case: case.id.endswith("-chunk")),
        (["kind=damage", "core/"], lambda case: case.kind == "damage" and case.section == "core"),
        (["level=may"], lambda case: case.level == "may"),
        (["feature=sharding*"], lambda case: case.feature in ("sharding", "sharding-indexed")),
        (["extension=pad"], lambda case: "pad" in json.dumps(case.data)),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_filters_select_cases(suite, filters, matches):
    selected = suite.select(filters)
    assert selected
    assert all(map(matches, selected))
    if filters != ["extension=pad"]:
        assert len(selected) == sum(map(matches, suite.cases))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "odd"},
        {"tags": None},
        {"tags": {"feature": "x", "level": "odd"}},
        {"id": "odd/a/b"},
        {"reads": [1]},
        {"description": 1},
    ],
    ids=str,
)
def test_corpus_with_an_invalid_case_is_refused(suite, change, tmp_path):
    case = suite.find("core/arrays/edge-chunk").data
    (tmp_path / "core").mkdir()
    (tmp_path / "suite.json").write_text('{"name": "x", "version": "1"}')
    path = tmp_path / "core" / "arrays.json"
    path.write_text(json.dumps({"topic": "x", "cases": [case]}))
    assert [loaded.data for loaded in cases.load(tmp_path).cases] == [case]
    path.write_text(json.dumps({"topic": "x", "cases": [{**case, **change}]}))
    with pytest.raises(ArgumentError, match="is not a case"):
        cases.load(tmp_path)


def test_the_corpus_is_the_installed_package_outside_of_a_checkout(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "_CHECKOUT", tmp_path / "nothing")
    message = "the cases are not installed: pip install zarrlite-conformance, or pass their folder with --corpus"
    with pytest.raises(DependencyError, match=f"^{re.escape(message)}$"):
        cases.load()
    (tmp_path / "zarrlite_conformance").symlink_to(Path(__file__).parents[2] / "spec_fixtures")
    monkeypatch.syspath_prepend(tmp_path)
    assert [case.id for case in cases.load().cases] == [case.id for case in suite.cases]


def test_every_case_has_steps_and_is_found_by_its_id(suite):
    for case in suite.cases[::100]:
        assert suite.find(case.id) is case
    assert all(case.steps for case in suite.cases)
    assert suite.find(suite.cases[-1].id) is suite.cases[-1]


def test_materialized_cases_are_stores_that_open(suite, tmp_path):
    count, incomplete = materialize(suite.select(["core/arrays/"]), tmp_path / "cases")
    assert (count, incomplete) == (len(suite.select(["core/arrays/"])), [])
    folder = tmp_path / "cases/core/arrays/edge-chunk"
    assert zarrlite.open(str(folder / "store"), mode="r")[...].tolist() == [1, 2, 3]
    assert json.loads((folder / "case.json").read_text()) == suite.find("core/arrays/edge-chunk").data
    with pytest.raises(ArgumentError, match="must be empty or not exist; pass another folder"):
        materialize(suite.cases[:1], tmp_path / "cases")


def test_nearly_all_cases_can_be_materialized_completely(suite, tmp_path):
    count, incomplete = materialize(suite.cases, tmp_path)
    assert count == len(suite.cases)
    assert len(incomplete) < 5


def test_option_materialize_writes_directories(command, tmp_path):
    code, out, _ = command("run", "--filter", "core/arrays/", "--materialize", tmp_path / "cases")
    assert (code, out.split()[1:3]) == (0, ["cases", "in"])
    assert (tmp_path / "cases/core/arrays/edge-chunk/store/c/0").read_bytes() == b"\x01\x02"


# reports


@pytest.mark.parametrize("option", ["--json", "--html", "--junit", "--markdown"])
def test_report_never_overwrites_a_harness(command, tmp_path, option):
    harness = tmp_path / "mine.py"
    harness.write_text("precious")
    chosen = ("--filter", "core/arrays/edge-chunk")
    wrong = f"{option} must name a file for a report, not {harness}; put the harness before the options"
    assert command("run", *chosen, option, harness) == (2, "", f"zarrlite conformance: {wrong}\n")
    assert harness.read_text() == "precious"
    wrong = f"{option} {tmp_path}/no/x: the directory '{tmp_path}/no' must exist"
    assert command("run", *chosen, option, tmp_path / "no" / "x") == (2, "", f"zarrlite conformance: {wrong}\n")

"""`zarrlite conformance` as a process, and the corpus: found, filtered, written as directories."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import hatchling.build
import pytest

import zarrlite
from zarrlite.errors import ArgumentError
from zarrlite.tools.cli.main import main
from zarrlite.tools.conformance import cases
from zarrlite.tools.conformance.materialize import materialize

TOY = str(Path(__file__).with_name("toy.py"))


@pytest.fixture
def command(capfd):
    """Runs a command in this process: its exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(["conformance", *map(str, words)])
        return (code, *capfd.readouterr())

    return run


# running


def test_a_run_prints_a_table_and_writes_reports(command, tmp_path):
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
    assert header.split() == ["implementation", "version", "pass", "seconds", "ms", "a", "case"]
    assert row.split()[:2] == ["zarrlite", zarrlite.__version__]
    assert json.loads(names["--json"].read_text())["suite"]["version"] == cases.load().version
    assert names["--junit"].read_text().startswith("<?xml")
    assert "| crc32c |" in names["--markdown"].read_text()
    assert names["--html"].read_text().startswith("<!doctype html>")


def test_json_without_a_file_is_printed(command):
    code, out, _ = command("run", "--filter", "core/arrays/", "--json")
    assert code == 0
    assert json.loads(out)["implementations"][0]["name"] == "zarrlite"


def test_what_must_pass_and_does_not_is_a_problem(command):
    words = ("run", f"{sys.executable} {TOY} refuse", "--filter")
    code, out, _ = command(*words, "core/array/dimension_names/same")
    assert code == 1
    assert out.startswith("toy: refused-valid core/array/dimension_names/same no\n")
    assert command(*words, "core/array/shape/missing")[0] == 0  # refusing is right
    assert command(*words, "optional/zstd/data/plain")[0] == 0  # not claimed


def test_a_harness_that_does_not_start_is_said_and_the_others_run(command):
    code, out, err = command("run", f"{sys.executable} {TOY} no-start", "zarrlite", "--filter", "core/arrays/")
    assert code == 1
    assert err.endswith("ended with code 1: ModuleNotFoundError: No module named 'toy'\n")
    assert out.splitlines()[1].split()[0] == "zarrlite"


def test_what_a_harness_says_need_not_be_text_that_can_be_written(command, tmp_path):
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
            "'color=red' filters by 'color'; there are feature, level, since, kind and extension",
        ),
        (["run", "--timeout", "0"], "--timeout and --jobs must be greater than 0"),
        (["run", "--corpus", "nowhere"], "nowhere is not a corpus: "),
        (
            ["show", "core/arrays/edge-chunks"],
            "there is no case 'core/arrays/edge-chunks'; 'core/arrays/edge-chunk' is one",
        ),
        (["diff", "nowhere", "nowhere"], "nowhere: "),
    ],
)
def test_wrong_usage_is_one_line(command, words, message):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"zarrlite conformance: {message}")
    assert err.count("\n") == 1


def test_the_help_has_an_example(command):
    code, out, _ = command("--help")
    assert code == 0
    assert "zarrlite conformance run my_harness.py" in out


def test_the_command_is_a_process_too():
    words = [sys.executable, "-m", "zarrlite", "conformance", "run", "--filter", "core/arrays/"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[0] == "zarrlite"


# diff, show, list


def test_the_difference_of_two_runs(command, tmp_path):
    for way in ("accept", "refuse"):
        words = ["--filter", "core/array/shape/", "--json", tmp_path / way]
        command("run", f"{sys.executable} {TOY} {way}", *words)
    code, out, _ = command("diff", tmp_path / "accept", tmp_path / "refuse")
    assert "toy: core/array/shape/missing accepted-invalid -> pass\n" in out
    assert code == 1  # those that passed are refused now
    assert command("diff", tmp_path / "accept", tmp_path / "accept") == (0, "", "")
    changes = json.loads(command("diff", tmp_path / "accept", tmp_path / "refuse", "--json")[1])
    assert {"implementation", "case", "before", "after", "worse"} == set(changes[0])


def test_a_case_is_shown_with_its_quote_bytes_and_what_is_expected(command):
    code, out, _ = command("show", "core/arrays/edge-chunk")
    assert code == 0
    for text in (
        "what a chunk has beyond the edge is not read",
        "zarr-specs: docs/v3/chunk-grids/regular-grid/index.rst, Description",
        "“the border of an array always have the full chunk size”",
        '"chunk_shape": [',
        "c/1\n000000  03 ff ",
        'read {"path": "", "selection": [[2, 3, 1]]}\nexpected {"shape": [1], "data": "Aw=="}',
    ):
        assert text in out
    assert json.loads(command("show", "core/arrays/edge-chunk", "--json")[1])["kind"] == "array"


def test_cases_are_listed(command):
    code, out, _ = command("list", "--filter", "core/arrays/edge*")
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["core/arrays/edge-chunk", "array"]
    listed = json.loads(command("list", "--filter", "extension=suffix", "--json")[1])
    assert {"feature", "level", "since", "id", "kind"} == set(listed[0])


# the corpus


@pytest.mark.parametrize(
    ("filters", "holds"),
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
def test_filters(suite, filters, holds):
    found = suite.select(filters)
    assert found
    assert all(map(holds, found))
    if filters != ["extension=pad"]:
        assert len(found) == sum(map(holds, suite.cases))


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
def test_a_corpus_with_a_case_that_is_none_is_refused(suite, change, tmp_path):
    case = suite.find("core/arrays/edge-chunk").data
    (tmp_path / "core").mkdir()
    (tmp_path / "suite.json").write_text('{"name": "x", "version": "1"}')
    path = tmp_path / "core" / "arrays.json"
    path.write_text(json.dumps({"topic": "x", "cases": [case]}))
    assert [found.data for found in cases.load(tmp_path).cases] == [case]
    path.write_text(json.dumps({"topic": "x", "cases": [{**case, **change}]}))
    with pytest.raises(ArgumentError, match="is not a case"):
        cases.load(tmp_path)


def test_a_wheel_has_the_corpus_and_the_harnesses(suite, tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    with zipfile.ZipFile(tmp_path / hatchling.build.build_wheel(str(tmp_path))) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("zarrlite/tools/conformance/")}
        wheel.extractall(tmp_path / "wheel", [name for name in names if "/corpus/" in name])
    package = root / "zarrlite" / "tools" / "conformance"
    shipped = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(root).as_posix() for path in shipped} <= names
    packed = cases.load(tmp_path / "wheel" / "zarrlite" / "tools" / "conformance" / "corpus")
    assert [case.id for case in packed.cases] == [case.id for case in suite.cases]


def test_every_case_asks_for_something_and_can_be_found(suite):
    for case in suite.cases:
        assert case.steps
    assert suite.find(suite.cases[-1].id) is suite.cases[-1]


def test_cases_are_written_as_directories_that_open(suite, tmp_path):
    count, left_out = materialize(suite.select(["core/arrays/"]), tmp_path / "cases")
    assert (count, left_out) == (len(suite.select(["core/arrays/"])), [])
    folder = tmp_path / "cases/core/arrays/edge-chunk"
    assert zarrlite.open(str(folder / "store"), mode="r")[...].tolist() == [1, 2, 3]
    assert json.loads((folder / "case.json").read_text()) == suite.find("core/arrays/edge-chunk").data
    with pytest.raises(ArgumentError, match="is not empty; give a new folder"):
        materialize(suite.cases[:1], tmp_path / "cases")


def test_all_cases_can_be_written_as_directories(suite, tmp_path):
    count, left_out = materialize(suite.cases, tmp_path)
    assert count == len(suite.cases)
    assert len(left_out) < 5


def test_the_command_writes_directories(command, tmp_path):
    code, out, _ = command("run", "--filter", "core/arrays/", "--materialize", tmp_path / "cases")
    assert (code, out.split()[1:3]) == (0, ["cases", "in"])
    assert (tmp_path / "cases/core/arrays/edge-chunk/store/c/0").read_bytes() == b"\x01\x02"


# reports


@pytest.mark.parametrize("option", ["--json", "--html", "--junit", "--markdown"])
def test_no_report_is_written_over_a_harness(command, tmp_path, option):
    harness = tmp_path / "mine.py"
    harness.write_text("precious")
    chosen = ("--filter", "core/arrays/edge-chunk")
    wrong = f"{option} must name a file for a report, not {harness}; put the harness before the options"
    assert command("run", *chosen, option, harness) == (2, "", f"zarrlite conformance: {wrong}\n")
    assert harness.read_text() == "precious"
    wrong = f"{option} {tmp_path}/no/x: the directory '{tmp_path}/no' must exist"
    assert command("run", *chosen, option, tmp_path / "no" / "x") == (2, "", f"zarrlite conformance: {wrong}\n")

"""Every workload of the benchmark runs once on tiny data, with the same results for all contestants."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import chart, short
from benchmarks.__main__ import available, main
from benchmarks.catalogue import catalogue
from benchmarks.contestants import NAMES, Contestant
from benchmarks.data import CHUNKS, TINY, image, ratio
from benchmarks.measure import Entry, measure, settled
from benchmarks.report import ahead, best_peer, duration
from benchmarks.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of peers

# These workloads are left out, because they start a process for each contestant, and other workloads read and write the
# same layouts in this process.
SLOW = re.compile("peak/.*/(1M|shard/64K)/")
WORKLOADS = {workload.name: workload for workload in catalogue(TINY) if not SLOW.match(workload.name)}
UNSUPPORTED = {
    "zarrs": re.compile("(read|write)/memory/|rows/|strided/|orthogonal/"),
    "tensorstore": re.compile("list"),
    "zarrista": re.compile("(read|write)/memory/|strided/|orthogonal/"),
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace(str(tmp_path_factory.mktemp("bench")), TINY)
    yield workspace
    workspace.keep(())


@pytest.fixture(scope="module")
def contestants() -> Iterator[dict[str, Contestant]]:
    installed = available()
    if os.environ.get("ZARRLITE_REQUIRE_PEERS") and set(installed) != set(NAMES):
        pytest.fail("ZARRLITE_REQUIRE_PEERS is set, and not all peers are installed")
    gc.freeze()
    yield installed
    gc.unfreeze()


@pytest.mark.parametrize("name", WORKLOADS)
def test_all_contestants_have_the_same_result(name: str, space: Workspace, contestants: dict[str, Contestant]) -> None:
    workload = WORKLOADS[name]
    result = measure(workload, space, contestants, 1, lambda text: None)
    for entrant, entry in result.items():
        if workload.contestant(entrant) not in contestants:
            expected = "absent"
        else:
            expected = "-" if entrant in UNSUPPORTED and UNSUPPORTED[entrant].match(name) else "ok"
        assert (entry.status, entry.note if entry.status != "-" else "") == (expected, ""), entrant


def test_another_checkout_takes_part_as_the_baseline(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--only", "elements/64K/raw", "--out", str(tmp_path)]
    environment = os.environ | {"ZARRLITE_BASELINE": str(root)}
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
    (workload, *_) = json.loads((tmp_path / "RESULTS.json").read_text())["workloads"]
    assert workload["entries"]["baseline"]["status"] == "ok"
    assert workload["best_peer"] != "baseline"


def test_wrong_result_is_detected(space: Workspace, contestants: dict[str, Contestant]) -> None:
    class Wrong(type(contestants["limit"])):
        def get(self, array, selections):
            (elements,) = super().get(array, selections)
            elements[-1, -1] += 1
            return [elements]

    only = {"limit": Wrong(), "zarrlite": contestants["zarrlite"]}
    result = measure(WORKLOADS["read/disk/1M/zstd"], space, only, 1, lambda text: None)
    assert [result[name].status for name in ("limit", "zarrlite", "tensorstore")] == ["wrong", "ok", "absent"]


def test_later_rounds_are_added_to_earlier_ones(space: Workspace, contestants: dict[str, Contestant]) -> None:
    only = {"limit": contestants["limit"]}
    result = measure(WORKLOADS["read/disk/1M/zstd"], space, only, 2, lambda text: None)
    again = measure(WORKLOADS["read/disk/1M/zstd"], space, only, 3, lambda text: None, result)
    assert len(again["limit"].times) == 5
    assert again["zarrlite"].status == "absent"


@pytest.mark.parametrize(
    ("limit", "zarrlite", "expected"),
    [
        ([1.0, 1.01, 1.5], [1.2, 1.21], True),
        ([1.0, 1.01], [1.2, 1.25], False),
        ([1.0, 1.25], [1.2, 1.21], False),
        ([1.0], [1.2, 1.21], False),
        ([1.0, 1.01], [1.6, 1.9], True),
        ([], [1.0, 1.01], True),
    ],
    ids=["twice", "zarrlite once", "limit once", "one turn", "far from the fastest", "zarrlite alone"],
)
def test_rounds_suffice_when_contestants_near_the_fastest_reached_their_best_twice(
    limit: list[float], zarrlite: list[float], expected: bool
) -> None:
    result = {"limit": Entry(limit), "zarrlite": Entry(zarrlite)}
    assert settled(WORKLOADS["read/disk/1M/zstd"], result) is expected
    assert settled(WORKLOADS["peak/read/shard/8K/zstd"], result)  # peak memory never needs more rounds


def test_compression_ratio_of_the_image_is_between_two_and_three() -> None:
    data = image((2048, 4096))
    assert {size: 2 < ratio(data, chunk, 8) < 3 for size, chunk in CHUNKS.items()} == dict.fromkeys(CHUNKS, True)


def test_report_has_tables_figures_and_a_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tiny", "--only", "read/*/1M/raw", "--out", str(tmp_path), "--dir", str(tmp_path)]) == 0
    text = (tmp_path / "RESULTS.md").read_text()
    assert capsys.readouterr().out == text + "\n"
    assert "| `read/disk/1M/raw` |" in text
    results = json.loads((tmp_path / "RESULTS.json").read_text())
    assert [workload["name"] for workload in results["workloads"]] == ["read/disk/1M/raw", "read/memory/1M/raw"]
    assert results["workloads"][0]["ratios"]["limit"] == 1
    assert ElementTree.parse(tmp_path / "RESULTS.svg").getroot().tag.endswith("svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RESULTS.json", "RESULTS.md", "RESULTS.svg"]


def test_list_has_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--quick"]) == 0
    assert capsys.readouterr().out.split() == [workload.name for workload in catalogue(TINY)]
    assert main(["--only", "nothing"]) == 2


def test_best_peer_is_the_fastest_with_a_correct_result() -> None:
    times = {"limit": [1.0], "zarrlite": [2.0, 3.0], "zarr-python": [9.0], "zarrs": [1.5], "tensorstore": [6.0, 4.0]}
    result = {name: Entry(turns) for name, turns in times.items()}
    result["zarrs"].status = "wrong"
    assert (best_peer(result), ahead(result)) == ("tensorstore", 2.0)


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0125, "12.5 ms"), (1.5e-05, "15 µs")])
def test_durations_have_a_readable_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_image_is_deterministic() -> None:
    assert np.array_equal(image((300, 64)), image((300, 64)))


def test_tables_and_chart_of_the_readmes_match_the_results() -> None:
    results = json.loads(short.RESULTS.read_text())
    root = short.RESULTS.parents[1]
    assert short.short_table(results) in (root / "README.md").read_text()
    assert short.goals_table(results) in (root / "benchmarks" / "README.md").read_text()
    assert chart.to_svg(results) == chart.CHART.read_text()
    assert results["environment"]["scale"] == "full"

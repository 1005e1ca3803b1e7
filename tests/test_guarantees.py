"""Every guarantee in docs/guarantees.md has a test; guarantees that no other file tests are tested here."""

from __future__ import annotations

import ast
import queue
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import zarrlite
from tests.reliability import crash, races
from tests.reliability.scenes import KINDS, SCENES
from tests.user_store import UserStore
from zarrlite import LocalStore, MemoryStore, Store

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
TABLES = ("Stores", "Operations", "Stores and operations", "Other failures")  # sections with tables of guarantees
NO_PROMISE = "-"

Row = dict[str, str]  # title of the column -> cell


def rows(section: str) -> list[Row]:
    """Return the rows of the table in a section of the page."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert text, section
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text[1].splitlines() if line.startswith("|")]
    head, _, *body = [[cell.strip() for cell in line] for line in lines]
    return [dict(zip(head, cells, strict=True)) for cells in body]


def labels(text: str) -> list[str]:
    """Return the test labels in a text: each `[label]` that is not the text of an inline link."""
    return re.findall(r"\[([^\]]+)\](?!\()", text)


GUARANTEES = [row for section in TABLES for row in rows(section)]
TESTS = {labels(row["label"])[0]: re.findall(r"`(\w+)`", row["tests"]) for row in rows("Tests")}
FILES = dict(re.findall(r"^\[([^\]]+)\]: \.\./(tests/[\w/]+\.py)$", PAGE, re.MULTILINE))


def first(row: Row) -> str:
    return next(iter(row.values()))


@pytest.mark.parametrize("row", GUARANTEES, ids=first)
def test_every_guarantee_names_its_test(row: Row) -> None:
    _, *cells = [cell for title, cell in row.items() if title != "scenes"]
    for cell in cells:
        assert cell == NO_PROMISE or labels(cell), cell
        assert set(labels(cell)) <= TESTS.keys()
    assert set(cells) != {NO_PROMISE}


def test_every_label_of_a_test_is_used_and_leads_to_its_file() -> None:
    used = {label for row in GUARANTEES for cell in row.values() for label in labels(cell)}
    assert used == TESTS.keys() == FILES.keys()


def defined(path: str) -> Iterator[str]:
    """Yield the names of the tests, and of the classes of tests, in a file."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name.lower().startswith("test"):
            yield node.name


@pytest.mark.parametrize("label", TESTS)
def test_every_named_test_exists(label: str) -> None:
    assert TESTS[label]
    assert set(TESTS[label]) <= set(defined(FILES[label]))


@pytest.mark.parametrize("row", rows("Operations"), ids=first)
def test_every_named_scene_exists(row: Row) -> None:
    for name in re.findall(r"`([^`]+)`", row["scenes"]):
        assert any(name in scene for scene in SCENES), name


# Guarantees that have no test elsewhere


READS = 200
# kinds of arrays whose chunks are read with a single `get`
CHUNKS = ["raw", "zstd", "crc32c", "pad, offset and suffix", "strings", "structs"]
SHARDS = ["shards rewritten", "shards in place", "shards appended", "shards, index first"]
PARTS = ["parts", "parts, all sized", "parts, last empty", "parts, index apart", "parts, index apart, appended"]


@pytest.mark.parametrize(
    ("make", "kind"),
    [*((MemoryStore, kind) for kind in CHUNKS + SHARDS + PARTS), *((UserStore, kind) for kind in CHUNKS)],
)
def test_threads_read_the_chunks_of_one_write_while_another_thread_writes(make: Callable[[], Store], kind: str) -> None:
    store: Any = make()
    races.create(kind, store)
    stop, found, failed = threading.Event(), queue.Queue[Any](), queue.Queue[Any]()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(1) as pool:
            writer = pool.submit(races.write, store, kind, stop, failed, 0)
            try:
                races.read(store, kind, READS, 1, found)
            finally:
                stop.set()
            writer.result()
    finally:
        sys.setswitchinterval(interval)
    assert found.get()[0] == {"right": READS, "mixed": 0, "error": 0, "foreign": 0}
    assert failed.empty()


CHANGED = [*SHARDS, "raw", "parts", "parts, all sized", "parts, index apart, in place", "parts, index apart, appended"]


def change_one_element(store: Any, kind: str, worker: int) -> None:
    array = zarrlite.open_array(store, mode="r+", path="a", options=KINDS[kind].options)
    for value in range(1, 21):
        array[worker] = value


@pytest.mark.parametrize("kind", CHANGED)
@pytest.mark.parametrize("make", [LocalStore, MemoryStore, UserStore])
def test_threads_that_change_parts_of_one_chunk_lose_nothing(make: Any, kind: str, tmp_path: Path) -> None:
    store = make(tmp_path) if make is LocalStore else make()
    array = races.create(kind, store)
    with ThreadPoolExecutor(races.LENGTH) as pool:
        list(pool.map(partial(change_one_element, store, kind), range(races.LENGTH)))
    assert array[...].tolist() == [20] * races.LENGTH


@pytest.mark.parametrize("kind", CHANGED)
def test_processes_that_change_parts_of_one_chunk_lose_nothing(kind: str, tmp_path: Path) -> None:
    array = races.create(kind, LocalStore(tmp_path))
    workers = [races.FORK.Process(target=change_one_element, args=(tmp_path, kind, i)) for i in range(races.LENGTH)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert array[...].tolist() == [20] * races.LENGTH


@pytest.mark.parametrize(
    "name",
    [
        "raw: first write",
        "raw: change a part",
        "shards rewritten: replace",
        "parts: replace",
        "parts: erase",
        "node: attributes of a group",
        "node: overwrite an array",
        "node: delete an array",
        "node: copy a group",
        "consolidated: create",
        "resize: cut raw",
    ],
)
def test_a_killed_writer_with_lock_files_leaves_an_acceptable_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "LocalStore", partial(LocalStore, lock_method="file", lock_timeout=1))
    figures = crash.run_scene(SCENES[name], 6, seed=0)
    # the lock file of a process that has ended remains until the same key is locked again
    stale = [failure for failure in figures.failures if failure.outcome == "left" and "lock." in failure.description]
    assert [failure for failure in figures.failures if failure not in stale] == []
    assert figures.trials

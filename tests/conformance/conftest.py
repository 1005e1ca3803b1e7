"""Fixtures for the conformance tests: the corpus, zarrlite's own results for it, a toy harness and a browser."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import chromium
import pytest
from required import lacking

from zarrlite.tools.conformance import cases, runner
from zarrlite.tools.conformance.cases import Corpus
from zarrlite.tools.conformance.implementations import command_of
from zarrlite.tools.conformance.results import Implementation

TOY = Path(__file__).with_name("toy.py")


@pytest.fixture(scope="session")
def suite() -> Corpus:
    return cases.load()


@pytest.fixture(scope="session")
def itself(suite: Corpus) -> Implementation:
    """Run the whole corpus with zarrlite, and return its results."""
    return runner.run(suite.cases, command_of("zarrlite"))


@pytest.fixture
def toy(suite: Corpus) -> Callable[..., Implementation]:
    """Return a function that runs cases with the toy harness."""

    def run(mode: str, *ids: str, limit: float = 30, option: str = "") -> Implementation:
        chosen = [suite.find(case_id) for case_id in ids]
        return runner.run(chosen, [sys.executable, str(TOY), mode, option], limit=limit)

    return run


@pytest.fixture(scope="session")
def zarrita() -> None:
    """Skip the test unless zarrita.js is installed in the folder that the environment variable ZARRITA names."""
    if shutil.which("node") is None:
        lacking("node is not installed")
    if not Path(os.environ.get("ZARRITA", "."), "node_modules", "zarrita").is_dir():
        lacking("zarrita is not installed in the folder that ZARRITA names")


@pytest.fixture
def page() -> Iterator[chromium.Page]:
    """Open a tab in headless Chromium."""
    program = chromium.find()
    if program is None:
        lacking("chromium is not installed")
    with chromium.browser(program) as tab:
        yield tab

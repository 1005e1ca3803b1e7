"""What the tests of the kit share: the corpus, a toy that misbehaves, and one run of zarrlite itself."""

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
    """zarrlite over all of the corpus."""
    return runner.run(suite.cases, command_of("zarrlite"))


@pytest.fixture
def toy(suite: Corpus) -> Callable[..., Implementation]:
    """Runs some cases over the toy."""

    def run(way: str, *cases: str, limit: float = 30, fine: str = "") -> Implementation:
        chosen = [suite.find(name) for name in cases]
        return runner.run(chosen, [sys.executable, str(TOY), way, fine], limit=limit)

    return run


@pytest.fixture(scope="session")
def zarrita() -> None:
    """zarrita.js, where ZARRITA says that npm has put it."""
    if shutil.which("node") is None:
        lacking("node is not installed")
    if not Path(os.environ.get("ZARRITA", "."), "node_modules", "zarrita").is_dir():
        lacking("zarrita is not installed in the folder that ZARRITA names")


@pytest.fixture
def page() -> Iterator[chromium.Page]:
    """A tab of a real browser."""
    program = chromium.find()
    if program is None:
        lacking("chromium is not installed")
    with chromium.browser(program) as tab:
        yield tab

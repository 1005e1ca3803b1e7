"""Optional requirements of tests: packages and programs that may not be installed."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacking(reason: str) -> NoReturn:
    """Skip the test, or fail it if ZARRLITE_REQUIRE_PEERS is set."""
    if os.environ.get("ZARRLITE_REQUIRE_PEERS"):
        pytest.fail(f"{reason}, and ZARRLITE_REQUIRE_PEERS is set")
    pytest.skip(reason)

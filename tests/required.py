"""What tests need beside the library, and may not be there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Something that a test needs is not there: a failure where peers are required, elsewhere a skip."""
    if os.environ.get("ZARRLITE_REQUIRE_PEERS"):
        pytest.fail(f"{what}, and peers are required")
    pytest.skip(what)

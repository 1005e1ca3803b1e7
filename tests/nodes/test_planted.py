"""Planted faults in operations on nodes: each fault in the list matches the code, and the tests catch one of them.

`python -m tests.nodes.planted` plants them all.
"""

from __future__ import annotations

import pytest
from nodes.planted import FAULTS, ROOT, Fault, copied, is_caught

FUTURE = "from __future__ import annotations"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.old}")
def test_every_fault_can_be_planted(fault: Fault) -> None:
    assert (ROOT / "zarrlite" / fault.file).read_text("utf-8").count(fault.old) == 1
    assert fault.new != fault.old
    assert (ROOT / fault.test.split("::")[0]).is_file()


def test_the_tests_find_a_planted_fault_but_not_a_harmless_change() -> None:
    fault = next(fault for fault in FAULTS if fault.file == "nodes/array.py")
    with copied() as directory:
        assert is_caught(fault, directory)
        assert not is_caught(fault._replace(old=FUTURE, new=f"{FUTURE}  # harmless"), directory)

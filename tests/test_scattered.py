"""The cost of sparse selections, in calls per chunk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import zarrlite
from tests.test_costs import count_calls
from zarrlite.codecs import Bytes

DATA = np.arange(90 * 70, dtype="u2").reshape(90, 70) * 7


def test_sparse_selections_take_few_calls_for_each_chunk(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=(2, 2), codecs=[Bytes()])
    every = [*range(0, 70, 2)]
    array.oindex[every, every]
    python, c = count_calls(lambda: array.oindex[every, every])
    few_python, few_c = count_calls(lambda: array.oindex[every[:5], every[:5]])
    chunks = len(every) ** 2 - 25
    assert (python - few_python) / chunks < 6
    assert (c - few_c) / chunks < 12

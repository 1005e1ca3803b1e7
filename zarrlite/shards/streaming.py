"""Shards that are made bit by bit as they are written, so that no more than a few chunks of them need be in memory.

Rules
- They are made as often as they are asked for: whatever they are made of must not change until they are stored.
- Who asks for the length of what is still to be encoded has it encoded, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrlite.buffers.ranges import Buffer, Made, joined, size_of
from zarrlite.shards.format import ABSENT

if TYPE_CHECKING:
    from zarrlite.shards.writing import ShardWriter


class Encoded(Made):
    """Chunks in the order of the index, one after the other, encoded some at a time as they are written."""

    def __init__(self, runs: Callable[[], Iterator[list[Any]]]) -> None:
        self._runs = runs  # the chunks, None for absent ones
        self._kept: list[Buffer | list[Buffer]] | None = None  # once their length was asked for
        self.lengths: list[int] = []  # once they have been encoded

    def __len__(self) -> int:
        if self._kept is None:
            self._kept = [joined([*bit]) for bit in self._make()]
        return sum(map(len, self._kept))

    def __iter__(self) -> Iterator[Buffer | list[Buffer]]:
        return iter(self._make() if self._kept is None else self._kept)

    def _make(self) -> Iterator[list[Buffer]]:
        lengths: list[int] = []
        for run in self._runs():
            if {*map(type, run)} == {bytes}:  # all are there, each in one piece
                lengths += map(len, run)
                yield run
                continue
            lengths += [ABSENT if chunk is None else size_of(chunk) for chunk in run]
            stored: Any = (chunk for chunk in run if chunk is not None)
            yield [piece for chunk in stored for piece in (chunk if type(chunk) is list else (chunk,))]
        self.lengths = lengths


class IndexOf(Made):
    """The index of chunks that are encoded as they are written, behind them."""

    def __init__(self, chunks: Encoded, writer: ShardWriter) -> None:
        self._chunks = chunks
        self._writer = writer

    def __len__(self) -> int:
        return self._writer.form.index_size

    def __iter__(self) -> Iterator[Buffer]:
        if not self._chunks.lengths:
            len(self._chunks)  # which encodes them
        table = np.full((self._writer.form.count, 2), ABSENT, np.uint64)
        table[:, 1] = self._chunks.lengths
        present = table[:, 1] != ABSENT
        lengths = table[present, 1]
        table[present, 0] = np.cumsum(lengths) - lengths
        yield self._writer.index(table)

"""The scales and layouts of the remote benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.data import CHUNKS, Layout, Scale, Shape

SHARDS = 2  # shards along each axis
DELAYS = (0, 20, 50)  # milliseconds


@dataclass(frozen=True)
class RemoteScale(Scale):
    """The sizes and counts of a run."""

    edge: int  # number of chunks along each axis of an array
    delays: tuple[int, ...]  # milliseconds that the proxy adds to each round trip

    def layout(self, size: str, codec: str) -> Layout:
        """Return a layout with chunks of a named size, such as "64K", each stored under its own key."""
        return Layout(self._extent(size), self.chunks[size], codec)

    def sharded(self, size: str, codec: str) -> Layout:
        """Return a layout with four shards, which together contain as many inner chunks as `layout` has chunks."""
        return Layout(self._extent(size), self.chunks[size], codec, (self.edge // SHARDS, self.edge // SHARDS))

    def _extent(self, size: str) -> Shape:
        return self.chunks[size][0] * self.edge, self.chunks[size][1] * self.edge


_SIZES = {size: CHUNKS[size] for size in ("64K", "1M")}
# At the scale FULL, the image consists of 16 x 16 chunks of 1 MiB. The tuples after `*` contain, in this order: points,
# slow_points, nodes, patches, rounds, passes, settle, processes and budget.
FULL = RemoteScale("full", (8192, 16384), _SIZES, {}, *(100, 100, 200, 0, 3, 2, 0.3, 2, 3.0), 16, DELAYS)
QUICK = RemoteScale("quick", (4096, 8192), _SIZES, {}, *(100, 100, 200, 0, 2, 1, 0.0, 1, 0.5), 8, DELAYS[:2])
TINY = RemoteScale("tiny", (64, 128), {"64K": (8, 16), "1M": (16, 32)}, {}, *(10, 10, 5, 0, 1, 1, 0.0, 1, 0.0), 4, (1,))

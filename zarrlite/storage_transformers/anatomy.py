"""Descriptions of storage transformers, for tools that show stored objects.

Rules
- They describe only chunks. The keys of chunks and shards follow the array's chunk key encoding; every other key
  passes through unchanged.
"""

from __future__ import annotations

from typing import NamedTuple

from zarrlite.shards.format import ShardFormat
from zarrlite.storage_transformers.parts_source import Part


class Divided(NamedTuple):
    """Each chunk is stored in consecutive parts, each under the key of the chunk plus a suffix."""

    parts: tuple[Part, ...]


class Combined(NamedTuple):
    """The chunks of each box of the grid are stored in one shard, whose key is that of the box in the grid of boxes."""

    format: ShardFormat  # its grid is the number of chunks in a box along each dimension

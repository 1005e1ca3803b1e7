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
    """Each box of neighbouring chunks is stored in one shard; the coordinates of the box determine the shard's key."""

    format: ShardFormat  # `format.grid` is the number of chunks in a box along each dimension

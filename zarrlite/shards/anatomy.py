"""The description of a shard, for tools that show stored bytes."""

from __future__ import annotations

from zarrlite.pipeline.anatomy import Anatomy
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.shards.format import ShardFormat


class Indexed(Anatomy):
    """Inner chunks, each encoded by the codec chain `inner`, at the positions that an index of fixed size contains."""

    def __init__(self, form: ShardFormat, inner: Pipeline) -> None:
        self.format = form
        self.inner = inner

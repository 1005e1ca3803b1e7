"""The `sharding` storage transformer of 2022, which stores several chunks in one object without the array noticing.

Rules (draft "Sharding storage transformer", version 1.0)
- In the draft, the transformer acts on keys under `data/root`, which no longer exist in Zarr. Here, it acts on the
  chunk keys of the array.
- The transformer is written as
  `{"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [...]}}`. On reading, `name` may be a
  URI of the transformer, `type` may be missing, and the object that the draft itself defines is accepted as well.

shards_store.py reads and writes the shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zarrlite.chunk_grids import Regular
from zarrlite.codecs.sharding_indexed import ShardingIndexed
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config, Json, show
from zarrlite.extensions.extension import runtime
from zarrlite.extensions.registry import register
from zarrlite.shards.writing import Writing
from zarrlite.storage_transformers.anatomy import Combined
from zarrlite.storage_transformers.base import ArrayInStore, StorageTransformer, leading_bytes_after
from zarrlite.storage_transformers.shards_store import INDEX_CODECS, ShardsStore, shard_format
from zarrlite.stores.base import Store

_URIS = (
    "https://purl.org/zarr/spec/storage_transformers/sharding/1.0",
    "http://purl.org/zarr/spec/storage-transformers/sharding/1.0",
)


class ShardedChunks(ShardingIndexed):
    """The codec for the draft's shards: the inner chunks are the chunks of the array, and each may be missing."""

    inner_chunks_are_chunks = True


@register
@dataclass(frozen=True)
class Sharding(StorageTransformer):
    """Stores several chunks in one shard."""

    name = "sharding"
    aliases = _URIS
    chunks_per_shard: tuple[int, ...]
    strategy: str = runtime("rewrite")
    order: str = runtime("row-major")
    header: int | None = runtime(None)

    def __post_init__(self) -> None:
        self.writing.check("end")
        object.__setattr__(self, "chunks_per_shard", tuple(self.chunks_per_shard))

    @classmethod
    def from_legacy_json(cls, value: dict[str, Json]) -> dict[str, Json] | None:
        """Translate the draft's syntax, with `extension` instead of `name`, and with `type` next to `configuration`."""
        if value.get("extension") not in _URIS:
            return None
        rest = {k: v for k, v in value.items() if k not in ("extension", "type", "configuration")}
        configuration = value.get("configuration", {})
        if "type" in value and value["type"] != "indexed":
            message = f'must be "indexed", not {show(value["type"])}'
            raise MetadataError(message, pointer="/type", kind="value" if isinstance(value["type"], str) else "type")
        if isinstance(configuration, dict) and "type" in value:
            if configuration.get("type", "indexed") != "indexed":
                message = "must equal the type next to configuration, if it is present"
                raise MetadataError(message, pointer="/configuration/type", kind="conflict")
            configuration = {**configuration, "type": "indexed"}
        return {**rest, "name": cls.name, "configuration": configuration}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # draft sharding, Configuration: "the only binary format is the indexed format"
        config.string("type", ("indexed",), default="indexed")
        # draft sharding, Configuration: "An array of integers providing the number of chunks"
        return cls(config.integers("chunks_per_shard", 1))

    def to_config(self) -> dict[str, Json]:
        return {"type": "indexed", "chunks_per_shard": list(self.chunks_per_shard)}

    @property
    def writing(self) -> Writing:
        """How shards are written."""
        return Writing(self.strategy, self.order, self.header)

    def check(self, array: ArrayInStore) -> None:
        # draft sharding, Configuration: "The length of the array must match the length of the"
        if len(self.chunks_per_shard) != len(array.shape):
            message = f"must have {len(array.shape)} items, like shape, not {len(self.chunks_per_shard)}"
            raise MetadataError(message, pointer="/configuration/chunks_per_shard", kind="conflict")

    def fold(self, array: ArrayInStore) -> ArrayInStore | None:
        """Return an equivalent array with the codec `sharding_indexed`, whose shards have the format of the draft."""
        grid = array.chunk_grid
        if not isinstance(grid, Regular):
            return None
        shard = tuple(c * n for c, n in zip(grid.shape, self.chunks_per_shard, strict=True))
        codec = ShardedChunks(grid.shape, array.codecs, INDEX_CODECS, "end", *self.writing)
        rest = array.storage_transformers[1:]
        return array._replace(chunk_grid=Regular(shard), codecs=(codec,), storage_transformers=rest)

    def wrap(self, store: Store, array: ArrayInStore) -> Store:
        writing = self.writing
        if writing.header is None:
            writing = writing._replace(header=leading_bytes_after(array, self))
        return ShardsStore(store, self.chunks_per_shard, writing, array)

    def anatomy(self) -> Combined:
        return Combined(shard_format(self.chunks_per_shard))

"""The indexed shard format: the shard index, and reading and writing shards."""

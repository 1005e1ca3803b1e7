"""The indexed shard format: its index, reading and writing."""

"""Every size that was chosen by measurement: its unit, its effect, and the benchmark rows that show it."""

from __future__ import annotations

from typing import Final

# Reading and decoding
BATCH_BYTES: Final = 2**20  # decoded bytes; small chunks are decoded and encoded together up to this (shard/*/8K)
SMALL_CHUNK_BYTES: Final = 2**16  # decoded bytes; chunks up to this size are fetched and encoded in batches (*/64K)
DECODE_TOGETHER_BYTES: Final = 2**15  # decoded bytes; chunks up to this size are decoded many by one call (shard/*/8K)
READ_BATCH_BYTES: Final = 2**21  # decoded bytes; small chunks fetched by one request at most (read/*/64K)
WRITE_BATCH_BYTES: Final = 2**22  # bytes; small uncompressed chunks stored by one request at most (write/*/64K/raw)
MAX_BATCH_CHUNKS: Final = 2**10  # chunks in a batch at most, however small they are
COPY_BLOCK_BYTES: Final = 2**21  # bytes; uncompressed shards and arrays are copied in blocks of this size (shard/*/raw)
LAZY_PACKING_BYTES: Final = 2**18  # bytes; larger strided chunks are made contiguous block by block while written
PREFIX_BYTES: Final = (
    2**18
)  # decoded bytes; larger verified chunks are decoded only up to the last byte needed (elements/1M)

# Ranges
NEAR_BYTES: Final = 2**15  # bytes; elements closer than this are read as one range (strided, columns)
NEAR_CHUNK_BYTES: Final = 2**13  # bytes; inner chunks closer than this are read as one range (shard/chunks)
MAX_RANGES: Final = 2**10  # ranges of one chunk at most; more are read as one

# Sparse selections
SPARSE_ELEMENTS: Final = 16  # elements of a chunk on average; selections with more are not sparse (orthogonal)
MAX_SPARSE_ELEMENTS: Final = 2**17  # elements in all; larger selections are projected chunk by chunk

# Threads
MIN_SHARED_BYTES: Final = 2**19  # bytes; smaller work runs on one thread, as waking others costs more than it gains
THREADED_COPY_BYTES: Final = 2**18  # bytes of a chunk; smaller ones that are only copied are read by one thread
DEFERRED_SIZE: Final = 2**20  # bytes; larger replaced files are closed by another thread (shard/update)

# Memory
SCRATCH_BYTES: Final = 2**17  # bytes; more is read into scratch memory: malloc would map new pages for it each time
MAX_SCRATCH_BYTES: Final = 2**23  # bytes of a scratch buffer that a thread keeps for reuse
SCRATCH_ALIGNMENT: Final = 64  # bytes; alignment of scratch buffers
SCRATCH_BUFFERS: Final = 2  # scratch buffers that a thread keeps

# Codecs
ZSTD_ENCODE_TOGETHER_BYTES: Final = 2**17  # bytes of a value; smaller ones are encoded many by one call
MAX_CACHED_INDEX_BYTES: Final = 2**16  # bytes of a shard index that a writer remembers (shard/update, in place)

# Stores
MIN_TMPFILES: Final = 3  # values; fewer are renamed, which costs no more (write/disk/64K)
MAX_TMPFILES: Final = 64  # values; more are renamed, as each needs an open descriptor
MIN_LOCK_PAUSE: Final = 0.0002  # seconds before a lock of another process is tried for the second time
MAX_LOCK_PAUSE: Final = 0.01  # seconds between two attempts at most: pauses double up to this

# Metadata
MAX_REFRESHED_BYTES: Final = 2**22  # bytes; consolidated metadata of larger documents is dropped, not kept up to date

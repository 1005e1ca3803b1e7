"""All sizes that were chosen by measurement.

Each comment gives the unit of a size, its effect, and the benchmark rows that show this effect.
"""

from __future__ import annotations

from typing import Final

# Reading and decoding
BATCH_BYTES: Final = 2**20  # decoded bytes; small chunks are decoded and encoded in batches of this size (shard/*/8K)
SMALL_CHUNK_BYTES: Final = 2**16  # decoded bytes; chunks up to this size are fetched and encoded in batches (*/64K)
DECODE_TOGETHER_BYTES: Final = 2**15  # decoded bytes; several chunks up to this size are decoded per call (shard/*/8K)
READ_BATCH_BYTES: Final = 2**21  # decoded bytes; maximum total of small chunks fetched by one request (read/*/64K)
WRITE_BATCH_BYTES: Final = 2**22  # bytes; maximum total of uncompressed chunks stored by one request (write/*/64K/raw)
MAX_BATCH_CHUNKS: Final = 2**10  # chunks; maximum number in a batch, however small they are
COPY_BLOCK_BYTES: Final = 2**21  # bytes; uncompressed shards and arrays are copied in blocks of this size (shard/*/raw)
LAZY_PACKING_BYTES: Final = 2**18  # bytes; larger strided chunks are made contiguous block by block during the write
PREFIX_BYTES: Final = (
    2**18
)  # decoded bytes; larger chunks with a checksum are decoded only up to the last byte needed (elements/1M)

# Ranges
NEAR_BYTES: Final = 2**15  # bytes; elements that are closer together are read as one range (strided, columns)
NEAR_CHUNK_BYTES: Final = 2**13  # bytes; inner chunks that are closer together are read as one range (shard/chunks)
MAX_REQUEST_BYTES: Final = 2**24  # bytes; maximum length of a range that replaces several (remote)
MAX_RANGES: Final = 2**10  # ranges; a chunk that needs more is read as one range

# Sparse selections
SPARSE_ELEMENTS: Final = 16  # elements per chunk on average; selections with more do not count as sparse (orthogonal)
MAX_SPARSE_ELEMENTS: Final = 2**17  # elements in total; larger selections are split into chunks one by one

# Threads
MIN_SHARED_BYTES: Final = 2**19  # bytes; less work runs on one thread, because waking others costs more than it saves
THREADED_COPY_BYTES: Final = 2**18  # bytes; smaller chunks that are only copied are read by one thread
DEFERRED_SIZE: Final = 2**20  # bytes; replaced files that are larger are closed by another thread (shard/update)

# Requests to remote stores
REMOTE_GAP_BYTES: Final = 2**20  # bytes; ranges of a remote value are read as one if the gap is smaller (remote)
MAX_REQUESTS: Final = 128  # threads; at most this many in a process wait for requests at the same time (remote)
MAX_PLACES: Final = 2**10  # places (`threads.Place`); the cache of places is cleared at this size
REMOTE_CONCURRENCY: Final = 64  # requests; maximum number in flight to one bucket or server (remote)
MAX_PUT_BYTES: Final = 2**26  # bytes; longer values are stored by multipart uploads, which take 3 more round trips
MIN_CONFLICT_PAUSE: Final = 0.005  # seconds; maximum length of the first pause after a conflict with another writer
MAX_CONFLICT_PAUSE: Final = 1.0  # seconds; the maximum length of a pause doubles up to this limit
MAX_IN_FLIGHT_BYTES: Final = 2**28  # bytes; maximum total of the chunks that a process is transferring or decoding
MAX_IN_FLIGHT_WAIT: Final = 60.0  # seconds; a job that has waited this long for others to free memory starts anyway
IN_FLIGHT_PAUSE: Final = 0.001  # seconds; pause between two checks for free memory

# Memory
SCRATCH_BYTES: Final = 2**17  # bytes; larger reads use scratch memory, because malloc would map new pages each time
MAX_SCRATCH_BYTES: Final = 2**23  # bytes; maximum size of a scratch buffer
SCRATCH_ALIGNMENT: Final = 64  # bytes; alignment of scratch buffers
SCRATCH_BUFFERS: Final = 2  # scratch buffers that a thread keeps

# Codecs
ZSTD_ENCODE_TOGETHER_BYTES: Final = 2**17  # bytes; several values up to this size are encoded per call
MAX_CACHED_INDEX_BYTES: Final = 2**16  # bytes; a writer caches shard indices up to this size (shard/update, in place)

# Stores
MIN_TMPFILES: Final = 3  # values; fewer are stored by renaming files, which is as fast (write/disk/64K)
MAX_TMPFILES: Final = 64  # values; more are stored by renaming files, because each needs an open descriptor
MIN_LOCK_PAUSE: Final = 0.0002  # seconds; pause before the second attempt to get a lock that another process holds
MAX_LOCK_PAUSE: Final = 0.01  # seconds; the pauses between attempts double up to this limit

# Metadata
MAX_REFRESHED_BYTES: Final = 2**22  # bytes; consolidated metadata in larger documents is removed, not updated

"""Kinds of damage, each with a kind of array, a change to its store, and the problems that fsck must report."""

from __future__ import annotations

from typing import Any

from zarrlite import Store


def flip(store: Store, key: str, at: int, mask: int = 1) -> None:
    data = bytearray(store.get(key) or b"")
    data[at] ^= mask
    store.set(key, bytes(data))


def cut(store: Store, key: str, size: int) -> None:
    store.set(key, bytes(store.get(key) or b"")[:size])


DAMAGE: dict[str, tuple[str, Any, list[tuple[str, str, str]]]] = {
    "a flipped bit under a checksum": (
        "gzip and crc32c",
        lambda s: flip(s, "c/0/0", -1),
        [("c/0/0", "checksum", "chunk (0, 0): checksum: the stored checksum is ")],
    ),
    "a flipped bit in a frame": (
        "zstd",
        lambda s: flip(s, "c/0/1", 0),
        [("c/0/1", "data", "chunk (0, 1): zstd frame: cannot be decoded: ")],
    ),
    "a chunk cut short": (
        "raw",
        lambda s: cut(s, "c/0/0", 31),
        [("c/0/0", "size", "chunk (0, 0): elements: has 31 bytes, but a chunk of shape (4, 4) has 32")],
    ),
    "a chunk that is too long": (
        "raw",
        lambda s: s.set("c/0/0", bytes(33)),
        [("c/0/0", "size", "chunk (0, 0): too many bytes: has 33 bytes, but at most 32 are allowed")],
    ),
    "an empty object": (
        "shard",
        lambda s: s.set("c/0/0", b""),
        [("c/0/0", "index", "chunk (0, 0): too few bytes: the index has 68 bytes, but the shard has only 0")],
    ),
    "an index entry that leads nowhere": (
        "shard, transposed",
        lambda s: flip(s, "c/0/0", -68 + 7, 0x40),
        [
            ("c/0/0", "index", "chunk (0, 0): index of 4 chunks: entries: entry (0, 0): index entry 0 ends at "),
            ("c/0/0", "checksum", "chunk (0, 0): index of 4 chunks: checksum: the stored checksum is "),
        ],
    ),
    "an inner chunk": (
        "shard in a shard",
        lambda s: flip(s, "c/0/0", 2 * 2 * 16 + 4),
        [
            ("c/0/0", "data", "chunk (0, 0): inner chunk (0, 0): inner chunk (0, 0): gzip frame: cannot be decoded: "),
            ("c/0/0", "checksum", "chunk (0, 0): inner chunk (0, 0): checksum: the stored checksum is "),
        ],
    ),
    "a part that is missing": (
        "shard in parts",
        lambda s: s.erase("c/0/0.shard"),
        [
            (
                "c/0/0.shard.head",
                "part",
                "part 1 of 3 of c/0/0.shard: the part 'c/0/0.shard' is missing, but other parts exist",
            )
        ],
    ),
    "an orphan part": (
        "parts",
        lambda s: s.set("c/1/1.crc", bytes(4)),
        [("c/1/1.crc", "part", "part 2 of 2 of c/1/1: the part 'c/1/1' is missing, but other parts exist")],
    ),
    "a part of another size": (
        "parts",
        lambda s: s.set("c/0/0.crc", bytes(5)),
        [("c/0/0.crc", "part", "part 2 of 2 of c/0/0: has 5 bytes, not 4")],
    ),
    "a draft shard": (
        "draft shards",
        lambda s: cut(s, "c/0/0", 50),
        [("c/0/0", "index", "shard (0, 0): too few bytes: the index has 96 bytes, but the shard has only 50")],
    ),
    "a chunk outside of the grid": (
        "zstd",
        lambda s: s.set("c/3/0", s.get("c/0/0")),
        [("c/3/0", "outside", "chunk (3, 0) is outside of the grid, which has (3, 3) chunks")],
    ),
    "a file that nobody knows": (
        "zstd",
        lambda s: s.set("notes.txt", b"hello"),
        [("notes.txt", "unknown", "'notes.txt' is not the key of a chunk of this array")],
    ),
    "what another writer has left": (
        "zstd",
        lambda s: s.set("c/0/0.__lock", b""),
        [
            (
                "c/0/0.__lock",
                "unknown",
                "'c/0/0.__lock' is not the key of a chunk of this array; it looks like a lock file",
            )
        ],
    ),
    "a node in an array": (
        "zstd",
        lambda s: s.set("inner/zarr.json", b"{}"),
        [("inner/zarr.json", "unknown", "'inner/zarr.json' is not the key of a chunk of this array")],
    ),
    "a header of N5": (
        "n5",
        lambda s: flip(s, "c/0/0", 1),
        [
            (
                "c/0/0",
                "data",
                "chunk (0, 0): block: is a block of mode 1 (varlength); only mode 0 (default) is supported",
            )
        ],
    ),
    "metadata": (
        "raw",
        lambda s: s.set("zarr.json", bytes(s.get("zarr.json")).replace(b'"uint16"', b'"uint17"')),
        [("zarr.json", "unsupported", "/data_type: ")],
    ),
    "a document that is no JSON": (
        "raw",
        lambda s: s.set("zarr.json", b"{"),
        [("zarr.json", "metadata", "/: ")],
    ),
}

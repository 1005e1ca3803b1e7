"""`python -m zarrlite.tools.demo`: create arrays, write and read them, and show the stored files."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import zarrlite
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import Bytes, Crc32c, Offset, Pad, Zstd
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores import LocalStore


class RecordingStore(LocalStore):
    """A local store that records every read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.reads: list[str] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        value = super().get(key, byte_range)
        extent = "all bytes" if byte_range == ALL else f"bytes {byte_range.start}:{byte_range.stop}"
        self.reads.append(f"{key} {extent}")
        return value


def smooth_image(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return a smooth 16-bit image."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]] / shape[0]
    values: np.ndarray[Any, Any] = 30_000 * (1 + np.sin(6 * x) * np.cos(4 * y))
    return values.astype("uint16")


def show_extensions(root: zarrlite.Group, image: np.ndarray[Any, Any], show: Callable[[str], object]) -> None:
    """Use all five proposed extensions: offset, pad, suffix, sharding (the 2022 draft) and concat-parts."""
    show("\nThe five proposed extensions: offset, pad, suffix, sharding (the 2022 draft) and concat-parts:\n")
    extended = root.create_array(
        "extended",
        data=image,
        chunks=(64, 64),
        codecs=[Bytes(), Zstd(), Offset(16, b"MY_CUSTOM_HEADER"), Pad("end", 4)],
        chunk_key_encoding=SuffixKeys(".shard"),
        storage_transformers=[Sharding((4, 4)), ConcatParts((Part(""), Part(".index", 16 * 16)))],
    )
    for key in root.store.list_prefix("extended/"):
        show(f"{root.store.size(key):>8} {key}")
    show(f"first bytes of the shard   : {bytes(root.store.get('extended/c/0/0.shard', ByteRange(0, 16)) or b'')!r}")
    show(f"reads back as written      : {np.array_equal(extended[...], image)}")


def main(show: Callable[[str], object] = print) -> None:
    """Run the demo. Every piece of its output is passed to `show`."""
    with tempfile.TemporaryDirectory() as folder:
        image = smooth_image((512, 512))

        show("A group with two arrays, one of them sharded:\n")
        root = zarrlite.create_group(f"{folder}/demo.zarr", attributes={"title": "zarrlite demo"})
        plain = root.create_array("plain", shape=image.shape, dtype="uint16", chunks=(256, 256), fill_value=7)
        sharded = root.create_array(
            "deep/sharded",
            data=image,
            chunks=(64, 64),
            shards=(256, 256),
            compressors=[Zstd(level=3), Crc32c()],
            dimension_names=["y", "x"],
            attributes={"unit": "counts"},
        )
        plain[:256] = image[:256]
        show(f"{root.tree()}\n\n{sharded.info}\n")

        show("Written and read back:\n")
        same = np.array_equal(sharded[...], image)
        show(f"sharded[...] equals the written data : {same}")
        show(f"plain[300, 300], never written       : {plain[300, 300]} (the fill value)")
        show(f"sharded[::200, ::200]                :\n{sharded[::200, ::200]}\n")

        show("The stored objects, with their sizes in bytes:\n")
        for key in root.store.list():
            show(f"{root.store.size(key):>8} {key}")

        store = RecordingStore(f"{folder}/demo.zarr")
        array = zarrlite.open_array(store, mode="r", path="deep/sharded")
        store.reads.clear()
        value = array[100, 200]
        show(f"\nReading one element of a shard, {value}, reads the index and one inner chunk:\n")
        show("\n".join(store.reads))

        show_extensions(root, image[:256, :256], show)

        show("\nDamaged data raises an error instead of returning wrong values:\n")
        key = "deep/sharded/c/0/0"
        data = bytearray(root.store.get(key) or b"")
        data[1000] ^= 1
        root.store.set(key, data)
        try:
            sharded[...]
        except zarrlite.DataError as error:
            show(f"{type(error).__name__}: {error}")
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main()

"""The extensions `pad`, `offset` and `suffix` that zarrlite adds to zarr-python."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrlite
from zarrlite.bridge import FromZarr, OffsetCodec, PadCodec, SuffixKeyEncoding
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import Offset, Pad
from zarrlite.errors import ArgumentError, MetadataError

pytestmark = pytest.mark.filterwarnings("ignore")  # ignore warnings from zarr-python
PROJECT = Path(zarrlite.__file__).parents[1]
DATA = np.arange(6000, dtype="i4").reshape(60, 100)
WINDOWED = "zarrlite.bridge.WindowedPipeline"
PADDINGS: list[Any] = [
    {"name": "pad", "configuration": {"location": "start", "nbytes": 64}},
    {"name": "offset", "configuration": {"offset": 3, "prefix": "YWJj"}},
    {"name": "pad", "configuration": {"location": "end", "nbytes": 5, "padding": "AQIDBAU="}},
]


@pytest.fixture(autouse=True)
def _default_configuration() -> Iterator[None]:
    yield
    zarr.config.reset()


class RecordingStore(zarr.storage.MemoryStore):
    """A store that records how many bytes each read of a chunk returns."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []

    def with_read_only(self, read_only: bool = False) -> RecordingStore:
        return self

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        found = await super().get(key, prototype, byte_range)
        if found is not None and not key.endswith("zarr.json"):
            self.read.append(len(found))
        return found


def create(store: Any, paddings: Any = PADDINGS) -> Any:
    return zarr.create_array(
        store,
        shape=DATA.shape,
        dtype=DATA.dtype,
        chunks=DATA.shape,
        serializer=zarr.codecs.ShardingCodec(chunk_shape=(10, 10)),
        compressors=paddings,
        chunk_key_encoding={"name": "suffix", "configuration": {"suffix": ".bin"}},
    )


@pytest.mark.parametrize("pipeline", ["zarr.core.codec_pipeline.BatchedCodecPipeline", WINDOWED])
def test_both_libraries_read_what_the_other_one_writes(pipeline: str) -> None:
    zarr.config.set({"codec_pipeline.path": pipeline})
    store = RecordingStore()
    theirs = create(store)
    theirs[...] = DATA
    changed = DATA.copy()
    changed[3:5, 7:90] = theirs[3:5, 7:90] = 5
    ours = zarrlite.open_array(FromZarr(store))
    assert (ours[...] == changed).all()
    changed[50:, 3] = ours[50:, 3] = 9
    opened = zarr.open_array(store, mode="r")
    assert (opened[...] == changed).all()
    assert [*ours.metadata.to_json()["codecs"][1:]] == [*opened.metadata.to_dict()["codecs"][1:]]  # type: ignore[index]
    assert {key for key in store._store_dict if "json" not in key} == {"c/0/0.bin"}
    value = store._store_dict["c/0/0.bin"].to_bytes()
    assert value[-5:] == b"\x01\x02\x03\x04\x05"
    assert value[:67] == b"abc" + bytes(64)


def test_a_shard_after_a_header_is_read_in_two_requests() -> None:
    zarr.config.set({"codec_pipeline.path": WINDOWED})
    store = RecordingStore()
    create(store)[...] = DATA
    array = zarr.open_array(store, mode="r")
    store.read.clear()
    assert (array[11:15, 32:35] == DATA[11:15, 32:35]).all()
    assert store.read == [60 * 16 + 4 + 5, 400]  # two reads: the index and its padding, and one inner chunk


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("size", [1, 7])
def test_every_selection_is_right_wherever_the_index_is(location: Any, size: int) -> None:
    zarr.config.set({"codec_pipeline.path": WINDOWED})
    serializer = zarr.codecs.ShardingCodec(chunk_shape=(size,), index_location=location)
    data = np.arange(7)
    array = zarr.create_array(
        {}, shape=7, dtype="i8", chunks=(7,), serializer=serializer, compressors=[PADDINGS[0], PADDINGS[2]]
    )
    assert (array[...] == 0).all()
    array[2:5] = data[2:5]
    array[5:] = data[5:]
    array[1] = 1
    for start in range(7):
        for stop in range(start, 8):
            assert (array[start:stop] == data[start:stop]).all()


def test_padding_inside_a_shard_needs_no_pipeline() -> None:
    store = RecordingStore()
    array = zarr.create_array(store, shape=100, dtype="i8", chunks=(10,), shards=(100,), compressors=[PADDINGS[0]])
    array[...] = np.arange(100)
    store.read.clear()
    assert array[37] == 37
    assert store.read == [10 * 16 + 4, 80 + 64]
    assert (zarrlite.open_array(FromZarr(store))[...] == np.arange(100)).all()


def test_codecs_of_zarrlite_may_be_passed_as_objects() -> None:
    store = zarr.storage.MemoryStore()
    sizes = Pad("start", 8, padding_func=lambda value: len(value).to_bytes(8, "little"))
    array = zarr.create_array(
        store,
        shape=4,
        dtype="i2",
        compressors=[PadCodec(sizes), OffsetCodec(Offset(2))],
        chunk_key_encoding=SuffixKeyEncoding(SuffixKeys(".x", "v2")),
    )
    array[...] = [1, 2, 3, 4]
    assert store._store_dict["0.x"].to_bytes()[:10] == bytes(2) + (8).to_bytes(8, "little")
    assert array.nchunks_initialized == 1


@pytest.mark.parametrize("key", ["c/0/1.bin", "c.bin", "c/10/0/3.bin"])
def test_keys_are_decoded_as_they_were_encoded(key: str) -> None:
    keys = SuffixKeyEncoding.from_dict({"name": "suffix", "configuration": {"suffix": ".bin"}})
    assert keys.encode_chunk_key(keys.decode_chunk_key(key)) == key
    with pytest.raises(ArgumentError, match="'c/01' is not the key of a chunk"):
        keys.decode_chunk_key("c/01")


def test_a_value_that_is_shorter_than_its_padding_is_an_error() -> None:
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, shape=4, dtype="i2", compressors=PADDINGS[:1])
    array[...] = 1
    store._store_dict["c/0"] = zarr.core.buffer.cpu.Buffer.from_bytes(b"short")
    with pytest.raises(zarrlite.TruncatedError, match="has 5 bytes, but its padding alone has 64"):
        array[...]


def test_invalid_configurations_are_refused() -> None:
    with pytest.raises(MetadataError, match="nbytes"):
        PadCodec.from_dict({"name": "pad", "configuration": {"location": "start", "nbytes": -1}})
    with pytest.raises(MetadataError, match="suffix"):
        SuffixKeyEncoding.from_dict({"name": "suffix", "configuration": {"suffix": "/../x"}})
    with pytest.raises(ArgumentError, match=r"^PadCodec must wrap Pad, not Offset\("):
        PadCodec(Offset(3))
    with pytest.raises(ArgumentError, match="must not keep old padding, because zarr-python cannot do that"):
        PadCodec(Pad("start", 3, keep_padding=True))


def test_zarr_python_finds_the_extensions_by_entry_points(tmp_path: Path) -> None:
    groups = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    mine = {name: points for name, points in groups.items() if name.startswith("zarr.")}
    assert {*mine} == {"zarr.codecs", "zarr.chunk_key_encoding", "zarr.codec_pipeline"}
    information = tmp_path / "points-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: points\nVersion: 1\n", encoding="utf-8")
    text = "".join(f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for name, points in mine.items())
    (information / "entry_points.txt").write_text(text, encoding="utf-8")
    store = zarr.storage.LocalStore(tmp_path / "a.zarr")
    create(store)[...] = DATA
    code = f"""
import warnings
warnings.simplefilter("ignore")
import zarr
array = zarr.open_array({str(tmp_path / "a.zarr")!r}, mode="r")
print(type(array.compressors[0]).__name__, array[2, 3])
zarr.config.set({{"codec_pipeline.path": {WINDOWED!r}}})
print(type(zarr.open_array({str(tmp_path / "a.zarr")!r}, mode="r")._async_array.codec_pipeline).__name__)
"""
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{PROJECT}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "PadCodec 203\nWindowedPipeline\n", done.stderr

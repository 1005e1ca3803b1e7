"""zarrista: Python bindings for the Rust library zarrs. Stores are on disk: zarrista cannot fill a store in memory."""

from __future__ import annotations

import base64
import itertools
from importlib.metadata import version

import numpy as np
from loop import CORE_TYPES, Json, Unsupported, elements, in_folder, numbers, serve, stored
from zarrista import Array, ArrayBytes, Group
from zarrista.exceptions import GroupCreateError
from zarrista.store import FilesystemStore


def open_node(message: Json) -> Json:
    with in_folder(message) as (folder, _):
        store, path = FilesystemStore(folder), f"/{message['path']}"
        try:
            return {"document": Group.open(store, path).metadata}
        except GroupCreateError:
            return {"document": Array.open(store, path).metadata}


def read(message: Json) -> Json:
    with in_folder(message) as (folder, _):
        array = Array.open(FilesystemStore(folder), f"/{message['path']}")
        if any(step != 1 for *_, step in ([*bounds, 1][:3] for bounds in message["selection"])):
            raise Unsupported("steps greater than 1")
        result = array.retrieve_array_subset(tuple(slice(*bounds[:2]) for bounds in message["selection"]))
        if hasattr(result, "buffer"):  # little-endian elements, even of types that numpy does not support
            return numbers(result.shape, bytes(result.buffer()), str(array.metadata.get("data_type")))
        return elements(result.to_numpy(), np.dtype(object))


def write(message: Json) -> Json:
    with in_folder(message) as (folder, contents):
        array = Array.open(FilesystemStore(folder), "/")
        if "data" in message:
            data = ArrayBytes(base64.b64decode(message["data"]))
        else:
            is_text = array.metadata["data_type"] == "string"
            texts = [v.encode() if is_text else base64.b64decode(v) for v in message["values"]]
            data = ArrayBytes(b"".join(texts), offsets=[0, *itertools.accumulate(map(len, texts))])
        array.store_array_subset(tuple(slice(0, n) for n in array.shape), data)
        return stored(contents())


SMALL = "int2 int4 uint2 uint4 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz"
SMALL += " float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu bfloat16 complex_float16 complex_bfloat16"
OTHER = "complex_float32 complex_float64 r* string bytes variable_length_bytes fixed_length_utf32"
CODECS = "bitround blosc bytes crc32c endian gzip packbits reshape sharding_indexed transpose vlen-bytes vlen-utf8 zstd"
claims = {"chunk_grid": ["regular", "rectilinear"], "chunk_key_encoding": ["default", "v2"], "zarr_format": ["2"]}
claims |= {
    "data_type": f"{SMALL} {OTHER} numpy.datetime64 numpy.timedelta64".split() + CORE_TYPES,
    "codecs": f"{CODECS} numcodecs.bitround numcodecs.fixedscaleoffset numcodecs.shuffle".split(),
}
serve("zarrista", version("zarrista"), claims, {"open": open_node, "read": read, "write": write})

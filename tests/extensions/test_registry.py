"""Extensions from other packages: registration, entry points, runtime options, and extensions that may be ignored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.ranges import Buffer
from zarrlite.chunk_grids import Regular
from zarrlite.chunk_key_encodings import ChunkKeyEncoding, DefaultKeys
from zarrlite.codecs import Bytes, BytesBytesCodec, Gzip
from zarrlite.data_types.core import Integer
from zarrlite.errors import ArgumentError, MetadataError, UnknownExtensionError, ZarrliteError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Json
from zarrlite.extensions.extension import Extension, Ignored, runtime
from zarrlite.extensions.registry import Registry, register
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.storage_transformers import StorageTransformer
from zarrlite.stores import Store
from zarrlite.stores.views import PrefixStore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
POINTS = {
    "data_type": "data_type",
    "chunk_grid": "chunk_grid",
    "chunk_key_encoding": "chunk_key_encoding",
    "codec": "codecs",
    "storage_transformer": "storage_transformers",
}


@pytest.fixture(autouse=True)
def _keep_the_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in registry.REGISTRIES.values():
        kind.classes()  # imports the built-in classes, which register themselves only once
        monkeypatch.setattr(kind, "_classes", dict(kind._classes))
        monkeypatch.setattr(kind, "_patterns", list(kind._patterns))


def document(**members: Json) -> dict[str, Json]:
    defaults: dict[str, Json] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [LITTLE],
    }
    return {**defaults, **members}


def at(point: str, value: Json) -> dict[str, Json]:
    """Return a document with this extension at one of the five extension points."""
    if point == "codecs":
        return document(codecs=[LITTLE, value])
    return document(**{point: [value] if point == "storage_transformers" else value})


def pointer(point: str) -> str:
    return {"codecs": "/codecs/1", "storage_transformers": "/storage_transformers/0"}.get(point, f"/{point}")


def open_document(content: Json, **kwargs: Any) -> zarrlite.Array:
    store = zarrlite.MemoryStore({"zarr.json": json.dumps(content).encode()})
    return zarrlite.open_array(store, mode="r+", **kwargs)


# One extension of each kind


class Short(Integer):
    """int16 under another name."""

    name = "test.short"
    aliases = ("test.integer",)
    dtype = np.dtype("int16")


@dataclass(frozen=True)
class Squares(Regular):
    """Square chunks, configured by the length of a side."""

    name = "test.squares"

    @classmethod
    def from_config(cls, config: Config) -> Any:
        return cls((config.integer("side", 1),) * 2)

    def to_config(self) -> dict[str, Json]:
        return {"side": self.shape[0]}


@dataclass(frozen=True)
class Reversed(ChunkKeyEncoding):
    """Keys that begin with the last coordinate."""

    name = "test.reversed"

    def encode(self, coords: Any) -> str:
        return DefaultKeys(".").encode(coords[::-1])

    def decode(self, key: str, ndim: int) -> Any:
        coords = DefaultKeys(".").decode(key, ndim)
        return None if coords is None else coords[::-1]


@dataclass(frozen=True)
class Xor(BytesBytesCodec):
    """A codec that XORs every byte with a mask. A runtime option records the sizes of decoded values."""

    name = "test.xor"
    aliases = ("https://example.org/xor",)
    mask: int = 1
    seen: Any = runtime(None)

    @classmethod
    def from_config(cls, config: Config) -> Any:
        return cls(config.integer("mask", 0, 255, default=1))

    @classmethod
    def from_legacy_json(cls, value: dict[str, Json]) -> dict[str, Json] | None:
        """Translate the older form, `{"xor": 7}`."""
        return {"name": cls.name, "configuration": {"mask": value["xor"]}} if set(value) == {"xor"} else None

    def encode(self, data: Buffer) -> bytes:
        return bytes(b ^ self.mask for b in bytes(data))

    def decode(self, data: Buffer, limit: int) -> bytes:
        if self.seen is not None:
            self.seen.append(len(data))
        return self.encode(data)

    def encoded_size(self, size: int) -> int:
        return size


class Upper(PrefixStore):
    """A store that keeps values under upper-case keys."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, "")

    def get(self, key: str, *args: Any) -> Buffer | None:
        return self.store.get(key.upper(), *args)

    def set(self, key: str, value: Buffer) -> None:
        self.store.set(key.upper(), value)

    def list_prefix(self, prefix: str) -> Any:
        return (key.lower() for key in self.store.list_prefix(prefix.upper()))


@dataclass(frozen=True)
class Shout(StorageTransformer):
    name = "test.shout"

    def wrap(self, store: Store, metadata: ArrayMetadata) -> Store:
        return Upper(store)


OWN: dict[str, tuple[type[Extension], Json]] = {
    "data_type": (Short, "test.short"),
    "chunk_grid": (Squares, {"name": "test.squares", "configuration": {"side": 3}}),
    "chunk_key_encoding": (Reversed, {"name": "test.reversed"}),
    "codecs": (Xor, {"name": "test.xor", "configuration": {"mask": 85}}),
    "storage_transformers": (Shout, {"name": "test.shout"}),
}


@pytest.mark.parametrize("point", OWN)
def test_an_extension_is_unknown_until_its_class_is_registered(point: str) -> None:
    cls, value = OWN[point]
    with pytest.raises(UnknownExtensionError):
        ArrayMetadata.from_json(at(point, value))
    assert register(cls) is cls
    array = open_document(at(point, value))
    array[...] = np.arange(24).reshape(4, 6)
    assert array[1:3, 2].tolist() == [8, 14]
    assert array.metadata.to_json()[point] == at(point, value)[point]


def test_extensions_of_all_five_kinds_work_together() -> None:
    for cls, _ in OWN.values():
        register(cls)
    members = {point: at(point, value)[point] for point, (_, value) in OWN.items()}
    array = open_document(document(**members))
    array[...] = np.arange(24).reshape(4, 6)
    assert sorted(array.store.list()) == ["C.0.0", "C.0.1", "C.1.0", "C.1.1", "zarr.json"]
    assert array.nchunks_initialized == 4
    assert bytes(array.store.get("C.0.0"))[:4] == bytes([0 ^ 85, 85, 1 ^ 85, 85])
    np.testing.assert_array_equal(array[...], np.arange(24).reshape(4, 6))


def test_a_class_replaces_one_that_was_registered_earlier() -> None:
    register(Xor)

    @register
    class Other(Xor):
        pass

    assert registry.codecs.find("test.xor") is registry.codecs.find("https://example.org/xor") is Other


def test_a_pattern_takes_precedence_over_earlier_ones() -> None:
    own: Registry[Any] = Registry("codec", ignorable=True, modules={})
    first = type("First", (Xor,), {"name": "a", "pattern": "x[0-9]+"})
    last = type("Last", (Xor,), {"name": "b", "pattern": "x[0-9]"})
    own.add(first)
    own.add(last)
    assert own.find("x12") is first
    assert own.find("x1") is last


def test_a_registered_class_is_not_replaced_by_a_built_in_one_imported_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: Registry[Any] = Registry("codec", ignorable=True, modules={"test.late": "late_builtin"})
    monkeypatch.setitem(registry.REGISTRIES, "codec", own)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "late_builtin.py").write_text(
        "from zarrlite.codecs import Gzip\nfrom zarrlite.extensions.registry import register\n"
        "@register\nclass Late(Gzip):\n    name = 'test.late'\n"
    )
    mine = type("Mine", (Xor,), {"name": "test.late", "aliases": ()})
    register(mine)
    own.classes()
    assert own.find("test.late") is mine


def test_an_alias_is_read_and_written_back_as_the_name() -> None:
    register(Xor)
    parsed = registry.codecs.parse({"name": "https://example.org/xor"}, "/codecs/1", Context())
    assert parsed == Xor(1)
    assert parsed.to_json() == {"name": "test.xor", "configuration": {"mask": 1}}


def test_a_class_with_a_pattern_serves_all_matching_names() -> None:
    assert registry.data_types.find("r24").__name__ == "Raw"
    assert registry.data_types.find("r24x") is None
    assert registry.data_types.find("xr24") is None


def test_an_older_form_without_a_name_is_translated() -> None:
    register(Xor)
    parsed = registry.codecs.parse({"xor": 7}, "/codecs/1", Context())
    assert parsed == Xor(7)
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse({"yor": 7}, "/codecs/1", Context())
    assert str(caught.value) == "zarr.json#/codecs/1/name: is required and missing"


def test_registered_extensions_are_listed() -> None:
    register(Xor)
    assert {"gzip", "test.xor", "https://example.org/xor"} <= set(registry.codecs.names())
    assert {Gzip, Xor} <= set(registry.codecs.classes())


# Invalid extension objects

WRONG_OBJECTS: list[tuple[Json, str, str, str]] = [
    (1, "", "type", "must be an extension object or a name, not 1"),
    (None, "", "type", "must be an extension object or a name, not null"),
    (["gzip"], "", "type", 'must be an extension object or a name, not ["gzip"]'),
    ({}, "/name", "missing", "is required and missing"),
    ({"name": 5}, "/name", "type", "must be a string, not 5"),
    ({"name": ""}, "/name", "value", "must not be empty"),
    ("", "/name", "value", "must not be empty"),
    ({"name": "gzip", "configuration": []}, "/configuration", "type", "must be an object, not []"),
    ({"name": "gzip", "configuration": None}, "/configuration", "type", "must be an object, not null"),
    ({"name": "gzip", "must_understand": 1}, "/must_understand", "type", "must be true or false, not 1"),
    (
        {"name": "gzip", "config": {}},
        "/config",
        "unknown-member",
        "is not a known member (known: configuration, must_understand, name)",
    ),
]


@pytest.mark.parametrize(("value", "where", "kind", "message"), WRONG_OBJECTS)
def test_an_invalid_extension_object_is_refused(value: Json, where: str, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse(value, "/codecs/1", Context())
    assert (caught.value.pointer, caught.value.kind) == ("/codecs/1" + where, kind)
    assert str(caught.value) == f"zarr.json#/codecs/1{where}: {message}"


@pytest.mark.parametrize(("kind", "point"), POINTS.items())
def test_an_unknown_extension_is_refused_with_a_list_of_known_ones(kind: str, point: str) -> None:
    with pytest.raises(UnknownExtensionError) as caught:
        ArrayMetadata.from_json(at(point, {"name": "example.unknown"}))
    known = ", ".join(registry.REGISTRIES[kind].names())
    message = f'"example.unknown" is not a known {kind.replace("_", " ")} (known: {known})'
    assert (caught.value.kind, caught.value.pointer) == ("unknown-extension", pointer(point))
    assert str(caught.value) == f"zarr.json#{pointer(point)}: {message}"


def test_all_faults_of_a_list_are_reported() -> None:
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse_list(["bytes", "x", {"name": "gzip", "configuration": {"level": 77}}], "/c", Context())
    assert [problem.pointer for problem in caught.value.problems] == ["/c/1", "/c/2/configuration/level"]


# must_understand


@pytest.mark.parametrize("point", ["data_type", "chunk_grid", "chunk_key_encoding"])
@pytest.mark.parametrize("name", [None, "example.unknown"])
def test_must_understand_false_is_refused_at_three_extension_points(point: str, name: str | None) -> None:
    value = document()[point]
    value = {"name": value} if isinstance(value, str) else value
    content = document(**{point: {**value, "name": name or value["name"], "must_understand": False}})
    with pytest.raises(MetadataError) as caught:
        ArrayMetadata.from_json(content)
    message = f"must not be false for a {point.replace('_', ' ')}"
    assert str(caught.value) == f"zarr.json#/{point}/must_understand: {message}"
    assert caught.value.kind == "value"


@pytest.mark.parametrize("point", ["codecs", "storage_transformers"])
def test_codecs_and_transformers_that_may_be_ignored_are_kept_on_rewrite(point: str) -> None:
    value = {"name": "example.unknown", "configuration": {"any": [1, {"thing": None}]}, "must_understand": False}
    array = open_document(at(point, value))
    array[...] = 5
    array.attrs["changed"] = True
    array.resize((6, 6))
    again = json.loads(bytes(array.store.get("zarr.json")))
    assert again[point] == at(point, value)[point]
    assert again["attributes"] == {"changed": True}
    assert zarrlite.open_array(array.store)[3, 5] == 5
    (ignored,) = [e for e in getattr(array.metadata, point) if isinstance(e, Ignored)]
    assert (ignored.name, ignored.must_understand, ignored.to_json()) == ("example.unknown", False, value)
    assert ignored == Ignored(value) != Ignored({**value, "configuration": {}})
    assert hash(ignored) == hash(Ignored(value))


@pytest.mark.parametrize("chain", ["codecs", "index_codecs"])
def test_inner_and_index_codecs_of_a_shard_may_be_ignored(chain: str) -> None:
    value = {"name": "example.unknown", "must_understand": False}
    configuration = {"chunk_shape": [1, 3], "codecs": [LITTLE], "index_codecs": [LITTLE], "index_location": "end"}
    configuration[chain] = [LITTLE, value]
    shard = {"name": "sharding_indexed", "configuration": configuration}
    array = open_document(document(codecs=[shard]))
    array[...] = 5
    assert array.metadata.to_json()["codecs"] == [shard]
    assert array[1, 1] == 5


def test_an_unknown_codec_with_must_understand_true_is_refused() -> None:
    value = {"name": "example.unknown", "must_understand": True}
    with pytest.raises(UnknownExtensionError):
        ArrayMetadata.from_json(at("codecs", value))


def test_a_known_codec_with_must_understand_false_is_applied() -> None:
    value = {"name": "gzip", "configuration": {"level": 1}, "must_understand": False}
    array = open_document(at("codecs", value))
    array[...] = 7
    assert bytes(array.store.get("c/0/0"))[:2] == b"\x1f\x8b"
    assert array.metadata.to_json()["codecs"][1] == value
    assert array[0, 0] == 7


# Runtime options


def shard_of(*inner: Json) -> Json:
    configuration = {"chunk_shape": [1, 3], "codecs": [LITTLE, *inner], "index_codecs": [LITTLE, "crc32c"]}
    return {"name": "sharding_indexed", "configuration": configuration}


def test_options_reach_the_extension_at_their_pointer_and_are_never_written() -> None:
    register(Xor)
    first: list[int] = []
    second: list[int] = []
    xor = {"name": "test.xor", "configuration": {"mask": 3}}
    content = document(codecs=[LITTLE, xor, xor])
    array = open_document(content, options={"/codecs/1": {"seen": first}, "/codecs/2": {"seen": second}})
    array[...] = 1
    array.attrs["a"] = 1
    assert array[0, 0] == 1
    assert (first, second) == ([12], [12])
    assert json.loads(bytes(array.store.get("zarr.json")))["codecs"] == content["codecs"]
    assert array.metadata.codecs[1].seen is first


def test_options_reach_codecs_inside_a_shard() -> None:
    register(Xor)
    seen: list[int] = []
    where = "/codecs/0/configuration/codecs/1"
    array = open_document(document(codecs=[shard_of("test.xor")]), options={where: {"seen": seen}})
    array[...] = 1
    assert array[0, 0] == 1
    assert seen == [6]


def test_options_passed_as_arguments_are_kept_by_the_created_array() -> None:
    register(Xor)
    seen: list[int] = []
    array = zarrlite.create_array(shape=(4,), dtype="u1", chunks=(4,), compressors=Xor(3, seen=seen))
    array[...] = 1
    array.resize((3,))
    seen.clear()
    assert array[...].tolist() == [1, 1, 1]
    assert seen == [4]
    assert "seen" not in json.dumps(array.metadata.to_json())


WRONG_OPTIONS: list[tuple[Any, str]] = [
    ({"/codecs/1": {"sean": 1}}, "options['/codecs/1']: 'sean' is not an option of test.xor (known: seen)"),
    ({"/codecs/1": {"mask": 1}}, "options['/codecs/1']: 'mask' is not an option of test.xor (known: seen)"),
    ({"/codecs/0": {"endian": "big"}}, "options['/codecs/0']: 'endian' is not an option of bytes (known: none)"),
    ({"/data_type": {"x": 1}}, "options['/data_type']: 'x' is not an option of int16 (known: none)"),
    ({"/codecs/7": {"seen": 1}}, "options: zarr.json has no extension at '/codecs/7'"),
    ({"codecs/1": {"seen": 1}, "": {}}, "options: zarr.json has no extension at 'codecs/1', ''"),
    ({"/codecs/2": {"seen": 1}}, "options: zarr.json has no extension at '/codecs/2'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS)
def test_options_that_match_no_extension_or_no_option_are_refused(options: Any, message: str) -> None:
    register(Xor)
    ignored = {"name": "example.unknown", "must_understand": False}
    with pytest.raises(ArgumentError) as caught:
        open_document(document(codecs=[LITTLE, "test.xor", ignored]), options=options)
    assert str(caught.value) == message


def test_options_for_a_group_are_refused() -> None:
    store = zarrlite.MemoryStore({"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'})
    with pytest.raises(ArgumentError, match=r"^options: .* has no extension at '/codecs/0'$"):
        zarrlite.open(store, options={"/codecs/0": {"x": 1}})


# Arguments of callers


def test_callers_pass_extensions_json_or_names() -> None:
    for value in (Gzip(5), "gzip", {"name": "gzip", "configuration": {"level": 5}}):
        assert registry.codecs.coerce(value) == Gzip(5)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (DefaultKeys(), ArgumentError, "expected a codec, not DefaultKeys(separator='/')"),
        (
            {"name": "example.unknown", "must_understand": False},
            ArgumentError,
            "'example.unknown' is not a known codec",
        ),
        (5, MetadataError, "codec#: must be an extension object or a name, not 5"),
        (
            {"name": "gzip", "configuration": {"level": "x"}},
            MetadataError,
            'codec#/configuration/level: must be an integer, not "x"',
        ),
    ],
)
def test_invalid_arguments_of_callers_are_refused(value: Any, kind: type[ZarrliteError], message: str) -> None:
    with pytest.raises(kind) as caught:
        registry.codecs.coerce(value)
    assert str(caught.value) == message


def test_an_ignored_codec_of_another_array_is_refused_as_an_argument() -> None:
    array = open_document(at("codecs", {"name": "example.unknown", "must_understand": False}))
    with pytest.raises(ArgumentError):
        registry.codecs.coerce(array.metadata.codecs[1])


# Extension objects


def test_an_extension_without_parameters_needs_only_a_name() -> None:
    class Nothing(Extension):
        kind, name = "codec", "nothing"

    parsed = Nothing.from_config(Config({}, "", Context()))
    assert (parsed.to_config(), parsed.to_json()) == ({}, {"name": "nothing"})
    assert Nothing.from_legacy_json({"x": 1}) is None
    with pytest.raises(ArgumentError) as caught:
        parsed.with_options({"x": 1}, "/codecs/0")
    assert str(caught.value) == "options['/codecs/0']: 'x' is not an option of nothing (known: none)"
    assert parsed.with_options({}, "/codecs/0") is parsed


def test_the_default_configuration_has_every_field_that_is_not_none() -> None:
    @dataclass(frozen=True)
    class Fields(Extension):
        kind, name = "codec", "fields"
        numbers: tuple[int, ...] = (1, 2)
        absent: int | None = None
        zero: int = 0
        option: Any = runtime(None)

    fields = Fields(option="secret")
    assert fields.to_json() == {"name": "fields", "configuration": {"numbers": [1, 2], "zero": 0}}
    changed = Fields().with_options({"option": 5}, "")
    assert (changed.option, changed.to_json()) == (5, fields.to_json())


# Entry points of a package that is installed with pip

PACKAGE = """
from dataclasses import dataclass

import numpy as np

from zarrlite.chunk_grids import Regular
from zarrlite.chunk_key_encodings import ChunkKeyEncoding, DefaultKeys
from zarrlite.codecs import BytesBytesCodec
from zarrlite.data_types.core import Integer
from zarrlite.storage_transformers import StorageTransformer
from zarrlite.stores.views import PrefixStore


class Short(Integer):
    name = "acme.short"
    aliases = ()
    dtype = np.dtype("int16")


@dataclass(frozen=True)
class Squares(Regular):
    name = "acme.squares"

    @classmethod
    def from_config(cls, config):
        return cls((config.integer("side", 1),) * 2)

    def to_config(self):
        return {"side": self.shape[0]}


@dataclass(frozen=True)
class Keys(ChunkKeyEncoding):
    name = "acme.keys"

    def encode(self, coords):
        return "acme/" + DefaultKeys(".").encode(coords)

    def decode(self, key, ndim):
        return DefaultKeys(".").decode(key.removeprefix("acme/"), ndim) if key.startswith("acme/") else None


@dataclass(frozen=True)
class Xor(BytesBytesCodec):
    name = "acme.xor"

    def encode(self, data):
        return bytes(b ^ 85 for b in bytes(data))

    def decode(self, data, limit):
        return self.encode(data)


class Suffixed(PrefixStore):
    def __init__(self, store):
        super().__init__(store, "")

    def get(self, key, *args):
        return self.store.get(key + ".acme", *args)

    def set(self, key, value):
        self.store.set(key + ".acme", value)

    def list_prefix(self, prefix):
        return (key.removesuffix(".acme") for key in self.store.list_prefix(prefix))


class Suffix(StorageTransformer):
    name = "acme.suffix"

    def wrap(self, store, metadata):
        return Suffixed(store)


not_a_class = 5
"""

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-zarr"
version = "1.0"

[project.entry-points."zarrlite.data_type"]
"acme.short" = "acme_zarr:Short"

[project.entry-points."zarrlite.chunk_grid"]
"acme.squares" = "acme_zarr:Squares"

[project.entry-points."zarrlite.chunk_key_encoding"]
"acme.keys" = "acme_zarr:Keys"

[project.entry-points."zarrlite.codec"]
"acme.xor" = "acme_zarr:Xor"
"acme.not-a-class" = "acme_zarr:not_a_class"
"acme.not-a-codec" = "acme_zarr:Keys"

[project.entry-points."zarrlite.storage_transformer"]
"acme.suffix" = "acme_zarr:Suffix"
"""

ACME = {
    "data_type": "acme.short",
    "chunk_grid": {"name": "acme.squares", "configuration": {"side": 3}},
    "chunk_key_encoding": {"name": "acme.keys"},
    "codecs": [LITTLE, {"name": "acme.xor"}],
    "storage_transformers": [{"name": "acme.suffix"}],
}

SCRIPT = """
import json, sys
import numpy as np
import zarrlite

content = json.loads(sys.argv[1])
store = zarrlite.MemoryStore({"zarr.json": json.dumps(content).encode()})
assert "acme_zarr" not in sys.modules
array = zarrlite.open_array(store, mode="r+")
array[...] = np.arange(24).reshape(4, 6)
again = zarrlite.open_array(store, mode="r")
errors = []
for name in ("acme.not-a-class", "acme.not-a-codec", "acme.unknown"):
    try:
        zarrlite.create_array(shape=(1,), dtype="u1", compressors=name)
    except zarrlite.ZarrliteError as error:
        errors.append(str(error).partition(" (known")[0])
print(json.dumps({
    "keys": sorted(store.list()),
    "first": list(store.get("acme/c.0.0.acme")[:2]),
    "values": again[2:, 4:].tolist(),
    "written": again.metadata.to_json() == content,
    "errors": errors,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package `acme_zarr` with pip, and return the directory that contains it."""
    source, target = tmp_path_factory.mktemp("acme"), tmp_path_factory.mktemp("site")
    (source / "acme_zarr.py").write_text(PACKAGE)
    (source / "pyproject.toml").write_text(PYPROJECT)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    result = subprocess.run([*command, "--target", str(target), str(source)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return target


def test_an_installed_package_adds_extensions_of_all_five_kinds(installed: Path) -> None:
    paths = [str(installed), str(Path(zarrlite.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT), json.dumps(document(**ACME))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "keys": ["acme/c.0.0.acme", "acme/c.0.1.acme", "acme/c.1.0.acme", "acme/c.1.1.acme", "zarr.json"],
        "first": [85, 85],
        "values": [[16, 17], [22, 23]],
        "written": True,
        "errors": [
            "entry point acme_zarr:not_a_class for 'acme.not-a-class' must be an Extension class of kind 'codec'",
            "entry point acme_zarr:Keys for 'acme.not-a-codec' must be an Extension class of kind 'codec'",
            'codec#: "acme.unknown" is not a known codec',
        ],
    }


def test_an_entry_point_is_loaded_when_its_name_first_occurs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "tiny-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[zarrlite.codec]\ntiny.good = tiny_zarr:Good\ntiny.wrong = tiny_zarr:Wrong\n"
    )
    (tmp_path / "tiny_zarr.py").write_text(
        "from zarrlite.codecs import Gzip\nclass Good(Gzip):\n    name = 'tiny.good'\nWrong = 5\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "tiny.good" not in registry.codecs.names()
    good = registry.codecs.parse({"name": "tiny.good", "configuration": {"level": 2}}, "/codecs/1", Context())
    assert good.to_json() == {"name": "tiny.good", "configuration": {"level": 2}}
    assert "tiny.good" in registry.codecs.names()
    with pytest.raises(ArgumentError) as caught:
        registry.codecs.find("tiny.wrong")
    assert (
        str(caught.value) == "entry point tiny_zarr:Wrong for 'tiny.wrong' must be an Extension class of kind 'codec'"
    )
    assert registry.codecs.find("tiny.none") is None


def test_a_class_of_an_unknown_kind_cannot_be_registered() -> None:
    class Odd(Extension):
        kind, name = "odd", "odd"

    with pytest.raises(KeyError, match="odd"):
        register(Odd)


def test_the_names_of_the_specification_are_built_in() -> None:
    assert Bytes.name == "bytes"
    for kind, names in {
        "chunk_grid": {"regular"},
        "chunk_key_encoding": {"default", "v2"},
        "codec": {"blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose", "zstd"},
        "data_type": {"bool", "int8", "uint64", "float16", "complex128", "string", "bytes", "struct"},
    }.items():
        assert names <= set(registry.REGISTRIES[kind].names())

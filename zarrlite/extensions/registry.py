"""One registry for each of the five extension points.

Rules
- A class registers itself with `@register`; the modules of this library are imported when their name is first met.
- A name that nobody registered is looked for among the entry points `zarrlite.<kind>` of installed packages.
- "implementations can ignore its presence" (core spec, must_understand): an unknown codec or storage transformer with
  `must_understand: false` is skipped; for the other three points that is refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from zarrlite.errors import ArgumentError, MetadataError, UnknownExtensionError
from zarrlite.extensions.config import Config, Context, Faults, Json, show
from zarrlite.extensions.extension import Extension, Ignored

E = TypeVar("E", bound=Extension)
C = TypeVar("C", bound=type[Extension])


class Registry(Generic[E]):
    """The extensions of one kind, by name."""

    def __init__(self, kind: str, *, ignorable: bool, modules: Mapping[str, str]) -> None:
        self.kind = kind
        self.ignorable = ignorable
        self._modules = dict(modules)  # name -> module of this library that registers it
        self._classes: dict[str, type[E]] = {}
        self._unknown: set[str] = set()  # names that no installed package offers
        self._patterns: list[tuple[re.Pattern[str], type[E]]] = []

    def add(self, cls: type[E]) -> None:
        """Register a class under its name, aliases and pattern; the last one wins."""
        for name in (cls.name, *cls.aliases):
            if name in self._classes and self._modules.get(name) == cls.__module__:
                continue
            self._classes[name] = cls
        if cls.pattern:
            self._patterns.append((re.compile(cls.pattern), cls))

    def find(self, name: str) -> type[E] | None:
        """The class for a name, loading what defines it."""
        if name in self._classes:
            return self._classes[name]
        if name in self._modules:
            importlib.import_module(self._modules[name])
            return self._classes[name]
        for pattern, cls in reversed(self._patterns):
            if pattern.fullmatch(name):
                return cls
        return self._find_entry_point(name)

    def _find_entry_point(self, name: str) -> type[E] | None:
        from importlib.metadata import entry_points

        if name in self._unknown:
            return None
        for entry in entry_points(group=f"zarrlite.{self.kind}", name=name):
            try:
                cls = entry.load()
            except Exception as error:
                raise ArgumentError(f"entry point {entry.value} for {name!r} cannot be loaded: {error}") from error
            if not (isinstance(cls, type) and issubclass(cls, Extension) and cls.kind == self.kind):
                raise ArgumentError(f"entry point {entry.value} for {name!r} is not a {self.kind} of zarrlite")
            self._classes[name] = cls  # type: ignore[assignment]
            return cls  # type: ignore[return-value]
        self._unknown.add(name)
        return None

    def names(self) -> list[str]:
        """Every name that can be read without installing anything."""
        return sorted({*self._classes, *self._modules})

    def classes(self) -> list[type[E]]:
        """Every class of this library and every one registered since."""
        for module in set(self._modules.values()):
            importlib.import_module(module)
        return list(dict.fromkeys(self._classes.values()))

    def parse(self, value: Json, pointer: str, context: Context) -> E | Ignored:
        """One extension from an object or a short-hand name."""
        config, understood = self._split(value, pointer, context)
        cls = self.find(config.name)
        if cls is None:
            if understood or not self.ignorable:
                known = ", ".join(self.names())
                raise UnknownExtensionError(
                    f"{show(config.name)} is not a known {self.kind.replace('_', ' ')} (known: {known})",
                    pointer=pointer,
                    kind="unknown-extension",
                    document=context.document,
                )
            return Ignored(value)
        extension = cls.from_config(config)
        config.finish()
        extension = extension.with_options(context.runtime_options(pointer), pointer)
        if not understood:
            object.__setattr__(extension, "must_understand", False)
        return extension

    def _split(self, value: Json, pointer: str, context: Context) -> tuple[Config, bool]:
        """The configuration (with the name) and must_understand."""
        if isinstance(value, str):
            value = {"name": value}
        elif isinstance(value, dict) and "name" not in value:
            translations = (cls.from_legacy_json(value) for cls in self.classes())
            try:
                value = next((v for v in translations if v is not None), value)
            except MetadataError as error:
                raise error.under(pointer, context.document) from None
        if not isinstance(value, dict):
            message = f"must be an extension object or a name, not {show(value)}"
            raise MetadataError(message, pointer=pointer, kind="type", document=context.document)
        outer = Config(value, pointer, context)
        name = outer.string("name")
        if not name:
            raise outer.error("must not be empty", "name")
        inner = outer.object("configuration", default={})
        inner.name = name
        understood = outer.boolean("must_understand", default=True)
        outer.finish()
        if not understood and not self.ignorable:
            message = f"must not be false for a {self.kind.replace('_', ' ')}"
            raise outer.error(message, "must_understand")
        return inner, understood

    def parse_list(self, values: Sequence[Json], pointer: str, context: Context) -> tuple[E | Ignored, ...]:
        """A list of extensions; the faults of all its items are found."""
        found: list[E | Ignored] = []
        faults = Faults()
        for i, value in enumerate(values):
            with faults.collecting():
                found.append(self.parse(value, f"{pointer}/{i}", context))
        faults.raise_any()
        return tuple(found)

    def coerce(self, value: E | Json) -> E:
        """An extension from what a caller may write: an object of the class, JSON, or a name."""
        if isinstance(value, Extension):
            if value.kind != self.kind:
                raise ArgumentError(f"a {self.kind} is needed, not {value!r}")
            return value  # type: ignore[return-value]
        parsed = self.parse(value, "", Context(document=self.kind))
        if isinstance(parsed, Ignored):
            raise ArgumentError(f"{parsed.name!r} is not a known {self.kind}")
        return parsed


data_types: Registry[Any] = Registry(
    "data_type",
    ignorable=False,
    modules={
        **dict.fromkeys(("string", "bytes", "variable_length_bytes"), "zarrlite.data_types.variable"),
        **dict.fromkeys(("fixed_length_utf32", "null_terminated_bytes", "raw_bytes"), "zarrlite.data_types.fixed"),
        **dict.fromkeys(("numpy.datetime64", "numpy.timedelta64"), "zarrlite.data_types.time"),
        **dict.fromkeys(("struct", "structured"), "zarrlite.data_types.struct"),
    },
)
chunk_grids: Registry[Any] = Registry(
    "chunk_grid", ignorable=False, modules={"regular": "zarrlite.chunk_grids.regular"}
)
chunk_key_encodings: Registry[Any] = Registry(
    "chunk_key_encoding",
    ignorable=False,
    modules={
        "default": "zarrlite.chunk_key_encodings.default",
        "v2": "zarrlite.chunk_key_encodings.v2",
        "suffix": "zarrlite.chunk_key_encodings.suffix",
    },
)
codecs: Registry[Any] = Registry(
    "codec",
    ignorable=True,
    modules={
        "blosc": "zarrlite.codecs.blosc",
        "bytes": "zarrlite.codecs.bytes",
        "crc32c": "zarrlite.codecs.crc32c",
        "gzip": "zarrlite.codecs.gzip",
        "n5_default": "zarrlite.codecs.n5_default",
        "offset": "zarrlite.codecs.pad",
        "packbits": "zarrlite.codecs.packbits",
        "pad": "zarrlite.codecs.pad",
        "sharding_indexed": "zarrlite.codecs.sharding_indexed",
        "transpose": "zarrlite.codecs.transpose",
        "vlen-bytes": "zarrlite.codecs.vlen",
        "vlen-utf8": "zarrlite.codecs.vlen",
        "zstd": "zarrlite.codecs.zstd",
    },
)
storage_transformers: Registry[Any] = Registry(
    "storage_transformer",
    ignorable=True,
    modules={
        "concat-parts": "zarrlite.storage_transformers.concat_parts",
        "sharding": "zarrlite.storage_transformers.sharding",
        "http://purl.org/zarr/spec/storage-transformers/sharding/1.0": "zarrlite.storage_transformers.sharding",
        "https://purl.org/zarr/spec/storage_transformers/sharding/1.0": "zarrlite.storage_transformers.sharding",
    },
)

REGISTRIES = {r.kind: r for r in (data_types, chunk_grids, chunk_key_encodings, codecs, storage_transformers)}


def register(cls: C) -> C:
    """Make an extension known under its name: `@register` above a class of any of the five kinds."""
    REGISTRIES[cls.kind].add(cls)
    return cls

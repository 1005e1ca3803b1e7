"""The registries of extensions, one for each of the five extension points (core spec, Extension points).

Rules
- Classes are registered with `@register`. A module of this library is imported when a name that it registers is first
  looked up.
- A name that is not registered is looked up in the entry points `zarrlite.<kind>` of installed packages.
- An unknown codec or storage transformer with `must_understand: false` is skipped; at the other three extension
  points `must_understand: false` is refused (core spec, must_understand).
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from zarrlite.errors import ArgumentError, MetadataError, UnknownExtensionError
from zarrlite.extensions.config import Config, Context, Faults, Json, dump_json, load_json, show
from zarrlite.extensions.extension import Extension, Ignored

E = TypeVar("E", bound=Extension)
C = TypeVar("C", bound=type[Extension])


class Registry(Generic[E]):
    """The extensions of one extension point, by name."""

    def __init__(
        self, kind: str, *, ignorable: bool, modules: Mapping[str, str], refused: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.ignorable = ignorable
        self._refused = refused or {}  # name in zarr-extensions -> the reason why this library refuses it
        self._modules = dict(modules)  # name -> the module of this library that registers it
        self._classes: dict[str, type[E]] = {}
        self._entry_points: dict[str, Any] = {}  # name -> entry point of an installed package, as of the last search
        self._searched: list[str] | None = None  # sys.path at the last search
        self._patterns: list[tuple[re.Pattern[str], type[E]]] = []

    def add(self, cls: type[E]) -> None:
        """Register a class under its name, aliases and pattern. It replaces an earlier class with the same name."""
        for name in (cls.name, *cls.aliases):
            if name in self._classes and self._modules.get(name) == cls.__module__:
                continue  # a built-in class that is loaded late does not replace a user's class
            self._classes[name] = cls
        if cls.pattern:
            self._patterns.append((re.compile(cls.pattern), cls))

    def find(self, name: str) -> type[E] | None:
        """Return the class for a name, importing its module if necessary. Returns None if the name is unknown."""
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
        """Return the class from an installed package. Returns None if no package has an entry point with this name."""
        # cached, because the search takes milliseconds, and a document may contain many unknown names
        if self._searched != sys.path:
            from importlib.metadata import entry_points  # imported here to keep `import zarrlite` light

            found = entry_points(group=f"zarrlite.{self.kind}")
            # reversed, so that the first of several entry points with the same name wins
            self._entry_points = {entry.name: entry for entry in reversed(list(found))}
            self._searched = [*sys.path]
        entry = self._entry_points.get(name)
        if entry is None:
            return None
        try:
            cls = entry.load()
        except Exception as error:
            raise ArgumentError(f"entry point {entry.value} for {name!r} cannot be loaded: {error}") from error
        if not (isinstance(cls, type) and issubclass(cls, Extension) and cls.kind == self.kind):
            message = f"entry point {entry.value} for {name!r} must be an Extension class of kind {self.kind!r}"
            raise ArgumentError(message)
        self._classes[name] = cls  # type: ignore[assignment]
        return cls  # type: ignore[return-value]

    def names(self) -> list[str]:
        """Return all names that are registered or built in, sorted; entry points are not included."""
        return sorted({*self._classes, *self._modules})

    def classes(self) -> list[type[E]]:
        """Return all built-in and registered classes; this imports the modules of all built-in classes."""
        for module in set(self._modules.values()):
            importlib.import_module(module)
        return list(dict.fromkeys(self._classes.values()))

    def parse(self, value: Json, pointer: str, context: Context) -> E | Ignored:
        """Parse an extension object or short-hand name. Returns Ignored for unknown extensions that may be skipped."""
        config, understood = self._split(value, pointer, context)
        cls = self.find(config.name)
        if cls is None:
            # core spec, must_understand: "if implementations can ignore its presence"
            if understood or not self.ignorable:
                reason = (
                    self._refused.get(config.name) or f"is not a known {self._label} (known: {', '.join(self.names())})"
                )
                raise UnknownExtensionError(
                    f"{show(config.name)} {reason}",
                    pointer=pointer,
                    kind="unknown-extension",
                    document=context.document,
                )
            return Ignored(value)
        # core spec, Extension codecs: "Configuration parameters must be declared in the codec specification"
        extension = cls.from_config(config)
        config.finish()
        extension = extension.with_options(context.runtime_options(pointer), pointer)
        if not understood:
            object.__setattr__(extension, "must_understand", False)
        return extension

    def _split(self, value: Json, pointer: str, context: Context) -> tuple[Config, bool]:
        """Return the configuration, including the name of the extension, and the value of `must_understand`."""
        # core spec, Short-hand names: "short-hand names MAY be used if no configuration metadata is required"
        # core spec, Short-hand names: "They are equivalent to extension objects with just a name key"
        if isinstance(value, str):
            value = {"name": value}
        elif isinstance(value, dict) and "name" not in value:
            try:
                value = self._translate(value)
            except MetadataError as error:
                raise error.under(pointer, context.document) from None
        if not isinstance(value, dict):
            # core spec, Objects: "extensions can be encoded either as objects or as short-hand names"
            message = f"must be an extension object or a name, not {show(value)}"
            raise MetadataError(message, pointer=pointer, kind="type", document=context.document)
        outer = Config(value, pointer, context)
        # core spec, Objects: "the member name MUST be a plain string"
        # core spec, Extension naming: "Registered names MUST start with one lower case letter a-z"; but
        # core spec, Extension naming: "URIs names are still permitted", so the characters are not checked
        name = outer.string("name")
        if not name:
            raise outer.error("must not be empty", "name")
        # core spec, Objects: "MAY be present but if so MUST be an object"
        inner = outer.object("configuration", default={})
        inner.name = name
        # core spec, must_understand: "implicit field must_understand set to True"
        understood = outer.boolean("must_understand", default=True)
        outer.finish()
        # core spec, must_understand: "must_understand=False is not supported for the following extension points"
        if not understood and not self.ignorable:
            raise outer.error(f"must not be false for a {self._label}", "must_understand")
        return inner, understood

    def _translate(self, value: dict[str, Json]) -> dict[str, Json]:
        """Translate an object of an older form to the current one. Returns other objects unchanged."""
        for cls in self.classes():
            current = cls.from_legacy_json(value)
            if current is not None:
                return current
        return value

    def parse_list(self, values: Sequence[Json], pointer: str, context: Context) -> tuple[E | Ignored, ...]:
        """Parse a list of extensions, collecting the faults of all items."""
        extensions: list[E | Ignored] = []
        faults = Faults()
        for i, value in enumerate(values):
            with faults.collecting():
                extensions.append(self.parse(value, f"{pointer}/{i}", context))
        faults.raise_any()
        return tuple(extensions)

    def coerce(self, value: E | Json) -> E:
        """Return an extension that was passed as an object (of zarrlite or zarr-python), as JSON, or as a name."""
        if isinstance(value, Extension):
            if value.kind != self.kind:
                raise ArgumentError(f"expected a {self._label}, not {value!r}")
            return value  # type: ignore[return-value]
        if callable(to_dict := getattr(value, "to_dict", None)):  # a zarr-python object
            value = load_json(dump_json(to_dict()), self.kind)
        parsed = self.parse(value, "", Context(document=self.kind, defaults=True))
        if isinstance(parsed, Ignored):
            raise ArgumentError(f"{parsed.name!r} is not a known {self._label}")
        return parsed

    @property
    def _label(self) -> str:
        """The name of the extension point in error messages."""
        return self.kind.replace("_", " ")


_INTEGERS = ("int2", "int4", "uint2", "uint4")
_FLOATS_8 = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_SUBFLOATS = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", *(f"float8_{form}" for form in _FLOATS_8))
_SMALL = (*_INTEGERS, "bfloat16", "float8_e4m3fn", *_SUBFLOATS, "complex_float16", "complex_bfloat16")

data_types: Registry[Any] = Registry(
    "data_type",
    ignorable=False,
    modules={
        **dict.fromkeys(("string", "bytes", "variable_length_bytes"), "zarrlite.data_types.variable"),
        **dict.fromkeys(("fixed_length_utf32", "null_terminated_bytes", "raw_bytes"), "zarrlite.data_types.fixed"),
        **dict.fromkeys(("numpy.datetime64", "numpy.timedelta64"), "zarrlite.data_types.time"),
        **dict.fromkeys(("struct", "structured"), "zarrlite.data_types.struct"),
        **dict.fromkeys(_SMALL, "zarrlite.data_types.small"),
    },
    refused={
        f"complex_{name}": f"cannot be used: numpy has no complex type with {name} components" for name in _SUBFLOATS
    },
)
chunk_grids: Registry[Any] = Registry(
    "chunk_grid",
    ignorable=False,
    modules={"regular": "zarrlite.chunk_grids.regular", "rectilinear": "zarrlite.chunk_grids.rectilinear"},
)
chunk_key_encodings: Registry[Any] = Registry(
    "chunk_key_encoding",
    ignorable=False,
    modules={
        "default": "zarrlite.chunk_key_encodings.default",
        "v2": "zarrlite.chunk_key_encodings.v2",
        "suffix": "zarrlite.chunk_key_encodings.suffix",
        "fanout": "zarrlite.chunk_key_encodings.fanout",
        "template": "zarrlite.chunk_key_encodings.template",
    },
)
_NUMCODECS = {  # name without the prefix `numcodecs.` -> module
    "adler32": "checksums",
    "astype": "filters",
    "bitround": "bitround",
    "blosc": "blosc",
    "bz2": "bz2",
    "categorize": "objects",
    "crc32": "checksums",
    "crc32c": "checksums",
    "delta": "filters",
    "fixedscaleoffset": "filters",
    "fletcher32": "checksums",
    "gzip": "deflate",
    "jenkins_lookup3": "checksums",
    "json2": "objects",
    "lz4": "lz4",
    "lzma": "lzma",
    "packbits": "packbits",
    "pcodec": "pcodec",
    "quantize": "filters",
    "shuffle": "shuffle",
    "vlen-array": "objects",
    "zfpy": "zfpy",
    "zlib": "deflate",
    "zstd": "zstd",
}
codecs: Registry[Any] = Registry(
    "codec",
    ignorable=True,
    modules={
        "bitround": "zarrlite.codecs.bitround",
        "blosc": "zarrlite.codecs.blosc",
        **dict.fromkeys(("bytes", "endian"), "zarrlite.codecs.bytes"),
        "cast_value": "zarrlite.codecs.cast_value",
        "conditional": "zarrlite.codecs.conditional",
        "crc32c": "zarrlite.codecs.crc32c",
        "gzip": "zarrlite.codecs.gzip",
        "n5_default": "zarrlite.codecs.n5_default",
        **{f"numcodecs.{name}": f"zarrlite.codecs.numcodecs.{module}" for name, module in _NUMCODECS.items()},
        "offset": "zarrlite.codecs.pad",
        "packbits": "zarrlite.codecs.packbits",
        "pad": "zarrlite.codecs.pad",
        "reshape": "zarrlite.codecs.reshape",
        "scale_offset": "zarrlite.codecs.scale_offset",
        "sharding_indexed": "zarrlite.codecs.sharding_indexed",
        "transpose": "zarrlite.codecs.transpose",
        "vlen-bytes": "zarrlite.codecs.vlen",
        "vlen-utf8": "zarrlite.codecs.vlen",
        "zarrlite.n5_lz4": "zarrlite.codecs.n5_lz4",
        "zfp": "zarrlite.codecs.zfp",
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
    """Register an extension class under its name. Used as a decorator, for all five extension points.

    The class is found by its `name`, its `aliases` and its `pattern`. If several classes are registered for a name, the
    last one is used. Packages can declare an entry point `zarrlite.<kind>` instead, which is loaded when the name is
    needed.

    Parameters
    ----------
    cls : type
        A subclass of `Extension` that has a `kind` and a `name`.

    Returns
    -------
    type
        The class itself.

    Examples
    --------
    >>> from zarrlite import Extension, register
    >>> @register
    ... class Reversed(Extension):
    ...     kind = "codec"
    ...     name = "reversed"
    >>> codecs.find("reversed").__name__
    'Reversed'
    """
    REGISTRIES[cls.kind].add(cls)
    return cls

"""The base class of extensions at all five extension points (core spec, Extension points).

Rules
- An extension is an immutable object. Its configuration is written to zarr.json, but its runtime options never are.
- `from_config` reads the configuration with the getters of `Config`; members that it does not request are refused.
- `to_config` returns the configuration in canonical form.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, Self, TypeVar

from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Config, Json

T = TypeVar("T")


def runtime(default: T) -> T:
    """Declare a dataclass field that is set in code or by `options=` and never written to zarr.json.

    Parameters
    ----------
    default : object
        The value of the option if it is not set.

    Returns
    -------
    object
        A dataclass field; type checkers see the type of the default.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from zarrlite import Extension, runtime
    >>> @dataclass(frozen=True)
    ... class Shifted(Extension):
    ...     name = "shifted"
    ...     offset: int
    ...     verbose: bool = runtime(False)
    >>> Shifted(3, verbose=True).to_json()
    {'name': 'shifted', 'configuration': {'offset': 3}}
    """
    from dataclasses import field  # imported here to keep `import zarrlite` light

    option: T = field(default=default, metadata={"runtime": True})
    return option


class Extension(ABC):
    """Base class of data types, chunk grids, chunk key encodings, codecs and storage transformers.

    An extension is an immutable dataclass. Its fields are the members of its configuration in zarr.json, except for
    those declared with `runtime`. Subclass the base class of an extension point, such as
    `zarrlite.codecs.BytesBytesCodec`, and register the subclass with `register`.

    Attributes
    ----------
    kind : str
        The extension point: "data_type", "chunk_grid", "chunk_key_encoding", "codec" or "storage_transformer".
    name : str
        The name in zarr.json.
    aliases : tuple of str
        Other names that are accepted on reading.
    pattern : str or None
        A regular expression for the names, if the class serves a family of names.
    extra : str or None
        The optional dependency that it needs, as in `pip install 'zarrlite[extra]'`.
    proposal : str or None
        The document that proposes an experimental, unregistered extension, and its version. None for other extensions.
    must_understand : bool
        Whether readers that do not know the extension must refuse the array.

    Examples
    --------
    >>> from zarrlite.codecs import Pad
    >>> isinstance(Pad("start", 4), Extension), Pad.kind
    (True, 'codec')
    >>> Pad("start", 4).to_json()
    {'name': 'pad', 'configuration': {'location': 'start', 'nbytes': 4}}
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    pattern: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None
    proposal: ClassVar[str | None] = None
    # core spec, must_understand: "implicit field must_understand set to True"
    must_understand: bool = True

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Create the extension from its configuration. Override this method if the extension has parameters."""
        return cls()

    @classmethod
    def from_legacy_json(cls, value: dict[str, Json]) -> dict[str, Json] | None:
        """Translate an extension object from an older form, one without `name`, to the current form.

        Returns None if the object is not an older form of this extension. Raises MetadataError, whose JSON pointer is
        relative to the object, if the object has an older form but is invalid.
        """
        return None

    def to_config(self) -> dict[str, Json]:
        """Return the configuration as JSON: by default all fields except runtime options and those that are None."""
        values = {name: getattr(self, name) for name in self._fields(runtime=False)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None}

    def to_json(self) -> Json:
        """Return the extension object as it is written to zarr.json."""
        document: dict[str, Json] = {"name": self.name}
        configuration = self.to_config()
        # core spec, Objects: "MAY be present but if so MUST be an object"
        if configuration:
            document["configuration"] = configuration
        if not self.must_understand:
            document["must_understand"] = False
        return document

    def with_options(self, options: Any, place: str) -> Self:
        """Return the same extension with runtime options set; `place` is the JSON pointer of the extension."""
        if not options:
            return self
        known = self._fields(runtime=True)
        for key in options:
            if key not in known:
                names = ", ".join(sorted(known)) or "none"
                raise ArgumentError(f"options[{place!r}]: {key!r} is not an option of {self.name} (known: {names})")
        from dataclasses import replace  # imported here to keep `import zarrlite` light

        return replace(self, **options)  # type: ignore[type-var]

    def _fields(self, *, runtime: bool) -> list[str]:
        """Return the names of either the runtime options or the members of the configuration.

        Returns an empty list if the class is not a dataclass.
        """
        from dataclasses import fields, is_dataclass  # imported here to keep `import zarrlite` light

        if not is_dataclass(self):
            return []
        return [field.name for field in fields(self) if field.metadata.get("runtime", False) is runtime]


class Ignored(Extension):
    """An unknown extension with `must_understand: false`, kept so that it can be written back."""

    kind = "ignored"

    def __init__(self, value: dict[str, Json]) -> None:
        self.value = value
        self.name = value["name"]  # type: ignore[misc]
        self.must_understand = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ignored) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.name)

    def to_json(self) -> Json:
        return self.value

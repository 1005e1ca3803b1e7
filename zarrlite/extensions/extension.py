"""One form of extension for all five points.

Rules
- An extension is an immutable object: configuration that stands in zarr.json, and runtime options that never do.
- `from_config` reads the configuration with the getters of `Config`; what it does not ask for is refused.
- `to_config` gives the configuration back, in canonical spelling.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, Self, TypeVar

from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Config, Json

T = TypeVar("T")


def runtime(default: T) -> T:
    """A dataclass field that is set in code or by `options=` and never reaches zarr.json."""
    from dataclasses import field  # which comes with the first extension that is used

    option: T = field(default=default, metadata={"runtime": True})
    return option


class Extension(ABC):
    """Base of data types, chunk grids, chunk key encodings, codecs and storage transformers."""

    kind: ClassVar[str]  # the extension point: "codec", "data_type" ...
    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()  # further names that are accepted on reading
    pattern: ClassVar[str | None] = None  # a regular expression, where one class serves a family of names
    must_understand: bool = True  # as written in the document

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Read the configuration; without parameters there is nothing to read."""
        return cls()

    @classmethod
    def from_legacy_json(cls, value: dict[str, Json]) -> dict[str, Json] | None:
        """Translate an extension object of an older form, one without `name`, to the current form.

        Returns None if the object is not an older form of this extension. Raises MetadataError, with a pointer
        relative to the object, if it is one and is invalid.
        """
        return None

    def to_config(self) -> dict[str, Json]:
        """The configuration as JSON: by default every field that is not a runtime option and not None."""
        values = {name: getattr(self, name) for name in self._fields(runtime=False)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None}

    def to_json(self) -> Json:
        """The whole extension object as it is written."""
        document: dict[str, Json] = {"name": self.name}
        configuration = self.to_config()
        if configuration:
            document["configuration"] = configuration
        if not self.must_understand:
            document["must_understand"] = False
        return document

    def with_options(self, options: Any, place: str) -> Self:
        """The same extension with runtime options set."""
        if not options:
            return self
        known = self._fields(runtime=True)
        for key in options:
            if key not in known:
                has = f"has {', '.join(sorted(known))}" if known else "has none"
                raise ArgumentError(f"options[{place!r}]: {self.name} {has}, not {key!r}")
        from dataclasses import replace

        return replace(self, **options)  # type: ignore[type-var]

    def _fields(self, *, runtime: bool) -> list[str]:
        """The names of the runtime options, or of what stands in the document; none, if it is no data class."""
        from dataclasses import fields, is_dataclass

        found: tuple[Any, ...] = fields(self) if is_dataclass(self) else ()
        return [field.name for field in found if field.metadata.get("runtime", False) is runtime]


class Ignored(Extension):
    """An unknown extension that its document allows to ignore; kept so that it is written back."""

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

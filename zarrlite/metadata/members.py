"""The base class of array and group metadata.

Rules
- Metadata is immutable: methods that change it return new metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from zarrlite.extensions.config import Json


class Members:
    """The members of a metadata document. `__init__` must set `extra` last: after that, no attribute can be set."""

    zarr_format = 3
    node_type: str
    attributes: dict[str, Json] | None
    extra: Mapping[str, Json]  # members that Zarr does not define, which are kept unchanged

    def to_json(self) -> dict[str, Json]:
        """Return the document, in canonical spelling."""
        return {"zarr_format": 3, "node_type": self.node_type}

    def to_dict(self) -> dict[str, Json]:
        """Return the document, like `to_json`. This is the name of the method in zarr-python."""
        return self.to_json()

    def with_attributes(self, attributes: dict[str, Json] | None) -> Self:
        """Return the same metadata with these attributes."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, attributes=attributes)
        return new

    def _with(self, **changes: Any) -> Self:
        """Return a copy of the object with some instance attributes replaced."""
        new = self.with_attributes(self.attributes)
        new.__dict__.update(changes)
        return new

    def __setattr__(self, name: str, value: Any) -> None:
        if "extra" in self.__dict__:
            raise AttributeError(f"metadata is immutable: {name!r} cannot be set")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"metadata is immutable: {name!r} cannot be removed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.__dict__.items() if not name.startswith("_"))
        return f"{type(self).__name__}({', '.join(shown)})"

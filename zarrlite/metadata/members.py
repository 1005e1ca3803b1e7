"""What the metadata of arrays and of groups have in common.

Rules
- Metadata does not change: whoever wants another member makes other metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from zarrlite.extensions.config import Json


class Members:
    """What a node says of itself; `extra` is set last, and then nothing any more."""

    node_type: str
    attributes: dict[str, Json] | None
    extra: Mapping[str, Json]  # members that are kept without being understood

    def to_json(self) -> dict[str, Json]:
        """The document, in canonical spelling."""
        return {"zarr_format": 3, "node_type": self.node_type}

    def with_attributes(self, attributes: dict[str, Json] | None) -> Self:
        return self._with(attributes=attributes)

    def _with(self, **changes: Any) -> Self:
        """The same otherwise."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def __setattr__(self, name: str, value: Any) -> None:
        if "extra" in self.__dict__:
            raise AttributeError(f"metadata does not change, so {name!r} cannot be set")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"metadata does not change, so {name!r} cannot be removed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.__dict__.items() if not name.startswith("_"))
        return f"{type(self).__name__}({', '.join(shown)})"

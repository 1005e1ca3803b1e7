"""A store as a user might write it, with only the four operations that a writable store must have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zarrlite import ByteRange, Store


class UserStore(Store):
    """A store backed by a dict, with `get`, `set`, `erase` and `list`. Its `set` has no parameter `new`."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str, byte_range: ByteRange = ByteRange()) -> bytes | None:
        value = self.values.get(key)
        return None if value is None else byte_range.of(value)

    def set(self, key: str, value: Any) -> None:
        self.values[key] = bytes(value)

    def erase(self, key: str) -> None:
        self.values.pop(key, None)

    def list(self) -> Iterator[str]:
        return iter(sorted(self.values))

"""Views of the consolidated metadata of a group and of the groups below it.

Rules
- Creating a view costs the same for every group: all views share the documents of the top group and the names of each
  group's members, which are sorted once for all views.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zarrlite.extensions.config import Json
from zarrlite.names import key_prefix


class Consolidated(Mapping[str, Json]):
    """The documents below a group, keyed by paths relative to the group."""

    def __init__(self, documents: Mapping[str, Json]) -> None:
        self._documents = documents  # keyed by paths relative to the top group
        self._names: dict[str, list[str]] = {}  # names of the members of each group; empty until needed
        self._prefix = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return Consolidated, (dict(self),)

    def __repr__(self) -> str:
        return f"Consolidated({dict(self)!r})"

    def below(self, path: str) -> Consolidated:
        """Return the documents below the group at a path."""
        view = Consolidated(self._documents)
        view._names, view._prefix = self._names, key_prefix(self._prefix + path)
        return view

    def names(self) -> list[str]:
        """Return the names of the members of the group, sorted."""
        if not self._names:
            names: dict[str, list[str]] = {}
            for path in sorted(self._documents):
                parent, _, name = path.rpartition("/")
                names.setdefault(parent, []).append(name)
            self._names.update(names)  # a single call, because another thread may be reading the names
        return self._names.get(self._prefix[:-1], [])

    def __getitem__(self, path: str) -> Json:
        return self._documents[self._prefix + path]

    def __iter__(self) -> Iterator[str]:
        start = len(self._prefix)
        return (path[start:] for path in self._documents if path.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

"""Summaries that print well: of an array, of a group, of a hierarchy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from zarrlite.errors import ZarrliteError
from zarrlite.extensions.config import show
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata

if TYPE_CHECKING:
    from zarrlite.nodes.array import Array
    from zarrlite.nodes.group import Group


class _Info(ABC):
    """Names and values, in two columns."""

    @abstractmethod
    def items(self) -> list[tuple[str, Any]]:
        """The rows."""

    def __repr__(self) -> str:
        rows = self.items()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in rows)


class ArrayInfo(_Info):
    """What there is to know about an array without reading its chunks."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def items(self) -> list[tuple[str, Any]]:
        array = self._array
        metadata = array.metadata
        rows: list[tuple[str, Any]] = [
            ("Type", "Array"),
            ("Name", array.name),
            ("Shape", array.shape),
            ("Data type", array.metadata.data_type.name),
            ("Fill value", show(metadata.data_type.fill_value_json(array.fill_value))),
            ("Chunk shape", array.chunks),
        ]
        if array.shards:
            rows.append(("Shard shape", array.shards))
        if metadata.dimension_names:
            rows.append(("Dimension names", metadata.dimension_names))
        rows += [
            ("Chunk keys", metadata.chunk_key_encoding.encode((0,) * array.ndim) + " ..."),
            ("Codecs", " -> ".join(codec.name for codec in metadata.codecs)),
        ]
        if metadata.storage_transformers:
            rows.append(("Storage transformers", " -> ".join(t.name for t in metadata.storage_transformers)))
        return [
            *rows,
            ("Store", array.store),
            ("Read-only", array.read_only),
            ("Bytes, decoded", human(array.nbytes)),
        ]


class GroupInfo(_Info):
    """What there is to know about a group."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def items(self) -> list[tuple[str, Any]]:
        group = self._group
        kinds = [self._kind(name) for name in group]
        return [
            ("Type", "Group"),
            ("Name", group.name),
            ("Store", group.store),
            ("Read-only", group.read_only),
            ("Arrays", kinds.count("array")),
            ("Groups", kinds.count("group")),
            *([("Refused", kinds.count("refused"))] if "refused" in kinds else []),
        ]

    def _kind(self, name: str) -> str:
        """What a member is; one that cannot be opened does not hide the others."""
        try:
            return self._group[name].metadata.node_type
        except ZarrliteError:
            return "refused"


class Tree(str):
    """Text whose repr is itself, so that it prints well in an interactive session."""

    def __repr__(self) -> str:
        return str(self)


def tree(group: Group, level: int | None) -> Tree:
    """The hierarchy below a group, one line for each node."""

    def lines(group: Group, indent: str, depth: int) -> Iterator[str]:
        if level is not None and depth >= level:
            return
        members = sorted(group.members())
        for i, (name, node) in enumerate(members):
            last = i == len(members) - 1
            metadata = node.metadata
            what = f" {metadata.shape} {metadata.data_type.name}" if isinstance(metadata, ArrayMetadata) else ""
            yield f"{indent}{'└── ' if last else '├── '}{name}{what}"
            if isinstance(metadata, GroupMetadata):
                yield from lines(cast("Group", node), indent + ("    " if last else "│   "), depth + 1)

    return Tree("\n".join((group.name, *lines(group, "", 0))))


def human(nbytes: int) -> str:
    """A number of bytes, readable.

    >>> human(2_500_000)
    '2500000 (2.4 MiB)'
    """
    size, units = float(nbytes), iter(("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))
    unit = ""
    while size >= 1024 and (following := next(units, None)):
        size, unit = size / 1024, following
    return f"{nbytes} ({size:.1f} {unit})" if unit else str(nbytes)

"""Printable summaries of an array, a group or a hierarchy.

Rules
- A summary shows metadata; it never reads a chunk.
- This module itself reads only nodes and metadata; everything else that is shown is passed in by `Array` and `Group`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from zarrlite.extensions.config import show
from zarrlite.metadata.documents import ArrayMetadata, Metadata
from zarrlite.nodes.node import Node
from zarrlite.selections.selection import Shape


class Info:
    """The properties of a node, printed in two columns, as returned by `Array.info` and `Group.info`.

    Parameters
    ----------
    rows : iterable of (str, object)
        The name and the value of each row.

    Examples
    --------
    >>> Info([("Type", "Group"), ("Name", "/")])
    Type : Group
    Name : /
    """

    def __init__(self, rows: Iterable[tuple[str, Any]]) -> None:
        self._rows = list(rows)

    def items(self) -> list[tuple[str, Any]]:
        """Return the rows.

        Returns
        -------
        list of (str, object)
            The name and the value of each row.

        Examples
        --------
        >>> Info([("Type", "Group")]).items()
        [('Type', 'Group')]
        """
        return list(self._rows)

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self._rows)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in self._rows)


def array_info(node: Node, metadata: ArrayMetadata, chunks: Shape, shards: Shape | None) -> Info:
    """Return the summary of an array."""
    data_type = metadata.data_type
    rows: list[tuple[str, Any]] = [
        ("Type", "Array"),
        ("Name", node.name),
        ("Shape", metadata.shape),
        ("Data type", data_type.name),
        ("Fill value", show(data_type.fill_value_json(metadata.fill_value))),
        ("Chunk shape", chunks),
    ]
    if shards:
        rows.append(("Shard shape", shards))
    if metadata.dimension_names:
        rows.append(("Dimension names", metadata.dimension_names))
    first_key = metadata.chunk_key_encoding.encode((0,) * len(metadata.shape))
    rows += [
        ("Chunk keys", f"{first_key} ..."),
        ("Codecs", _chain_text(metadata.codecs)),
    ]
    if metadata.storage_transformers:
        rows.append(("Storage transformers", " -> ".join(t.name for t in metadata.storage_transformers)))
    nbytes = math.prod(metadata.shape) * data_type.dtype.itemsize
    rows += [("Store", node.store), ("Read-only", node.read_only), ("Bytes, decoded", human(nbytes))]
    return Info(rows)


def _chain_text(codecs: Iterable[Any]) -> str:
    """Return the names of codecs; those inside a shard are in parentheses."""
    names = []
    for codec in codecs:
        inner = codec.codecs if getattr(codec, "inner_chunk_shape", None) else ()
        names.append(f"{codec.name}({_chain_text(inner)})" if inner else codec.name)
    return " -> ".join(names)


def group_info(node: Node, kinds: Sequence[str]) -> Info:
    """Return the summary of a group; `kinds` contains "array", "group" or "refused" for each member."""
    rows: list[tuple[str, Any]] = [
        ("Type", "Group"),
        ("Name", node.name),
        ("Store", node.store),
        ("Read-only", node.read_only),
        ("Arrays", kinds.count("array")),
        ("Groups", kinds.count("group")),
    ]
    if "refused" in kinds:
        rows.append(("Refused", kinds.count("refused")))
    return Info(rows)


class Tree(str):
    """Text that an interactive session shows without quotes, as returned by `Group.tree`.

    Examples
    --------
    >>> Tree("/")
    /
    """

    def __repr__(self) -> str:
        return str(self)


def draw_tree(root: str, nodes: Iterable[tuple[str, Metadata | Exception]]) -> Tree:
    """Draw a hierarchy with one line per node.

    `nodes` yields the path of each node below the root, with the node's metadata, or with the error if the node is
    refused. A group must come directly before its members.
    """
    nodes = list(nodes)
    last_child = {path.rpartition("/")[0]: path for path, _ in nodes}  # keyed by the path of the parent
    indents = {"": ""}
    lines = [root]
    for path, metadata in nodes:
        parent, _, name = path.rpartition("/")
        branch, indent = ("└── ", "    ") if path == last_child[parent] else ("├── ", "│   ")
        indents[path] = indents[parent] + indent
        if isinstance(metadata, ArrayMetadata):
            name += f" {metadata.shape} {metadata.data_type.name}"
        elif isinstance(metadata, Exception):
            name += f" (refused: {metadata})"
        lines.append(indents[parent] + branch + name)
    return Tree("\n".join(lines))


def human(nbytes: int) -> str:
    """Format a number of bytes; from 1 KiB upwards, add the size in a binary unit.

    >>> human(2_500_000)
    '2500000 (2.4 MiB)'
    """
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = (nbytes.bit_length() - 1) // 10
    if power <= 0:
        return str(nbytes)
    if power > len(units):  # not a real size: its digits could fill the screen, and the division could overflow
        return f"about 2**{nbytes.bit_length() - 1}"
    return f"{nbytes} ({nbytes / 1024**power:.1f} {units[power - 1]})"

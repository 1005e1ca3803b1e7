"""The nodes of a hierarchy, those that cannot be opened among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zarrlite.errors import ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group

Node = Array | Group | ZarrliteError  # an error: why it cannot be opened


class Found(NamedTuple):
    """A node below another one."""

    path: str  # from there
    node: Node
    ends: tuple[bool, ...]  # for each level, whether it or what it is in is the last one there

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def children(group: Group) -> Iterator[tuple[str, Node]]:
    """The nodes of a group by name."""
    for name in sorted(group.keys()):
        try:
            yield name, group[name]
        except ZarrliteError as error:
            yield name, error


def walk(node: Node, level: int | None = None) -> Iterator[Found]:
    """Every node below, each before its own; only the first `level` levels, if that is given."""
    pending = _below(node, "", ()) if level is None or level > 0 else []
    while pending:
        found = pending.pop()
        yield found
        if level is None or len(found.ends) < level:
            pending += _below(found.node, f"{found.path}/", found.ends)


def _below(node: Node, prefix: str, ends: tuple[bool, ...]) -> list[Found]:
    """The nodes of a group, the last one first."""
    if not isinstance(node, Group):
        return []
    members = list(children(node))
    return [Found(prefix + name, each, (*ends, i == 0)) for i, (name, each) in enumerate(reversed(members))]


def kind(node: Node) -> str:
    """What a node is, in a word."""
    return "refused" if isinstance(node, ZarrliteError) else node.metadata.node_type

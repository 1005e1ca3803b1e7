"""Walk the nodes of a hierarchy, including those that cannot be opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zarrlite.errors import ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group

Node = Array | Group | ZarrliteError  # an error says why the node cannot be opened


class Descendant(NamedTuple):
    """A node below the node where a walk starts."""

    path: str  # relative to the start
    node: Node
    is_last: tuple[bool, ...]  # for each level down to this node: whether the ancestor is the last member of its group

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def children(group: Group) -> Iterator[tuple[str, Node]]:
    """Yield the members of a group with their names, in the order of the names."""
    for name in sorted(group.keys()):
        try:
            yield name, group[name]
        except ZarrliteError as error:
            yield name, error


def walk(node: Node, levels: int | None = None) -> Iterator[Descendant]:
    """Yield all nodes below a node, each group before its members. `levels` limits the depth; None means no limit."""
    pending = _members(node, "", ()) if levels is None or levels > 0 else []
    while pending:
        descendant = pending.pop()
        yield descendant
        if levels is None or len(descendant.is_last) < levels:
            pending += _members(descendant.node, f"{descendant.path}/", descendant.is_last)


def _members(node: Node, prefix: str, is_last: tuple[bool, ...]) -> list[Descendant]:
    """Return the members of a group in reverse order. Returns an empty list if the node is not a group."""
    if not isinstance(node, Group):
        return []
    members = list(children(node))
    return [Descendant(prefix + name, member, (*is_last, i == 0)) for i, (name, member) in enumerate(reversed(members))]


def kind(node: Node) -> str:
    """Return the type of a node: array, group, or refused if it cannot be opened."""
    return "refused" if isinstance(node, ZarrliteError) else node.metadata.node_type

"""Repairs that are always safe, and repairs that must be requested explicitly.

Rules
- Damaged data is never touched. Every object is examined again just before it is removed.
- "leftovers" is safe: it removes temporary files of writers that no longer run. "journals", "resizes" and "removals"
  are also safe: they complete interrupted changes to chunks that are stored in parts, interrupted resizes, and
  interrupted removals of nodes.
- "outside" and "consolidated" are done only on request. A user who resizes the array may still want a chunk outside of
  its grid. Consolidated metadata may be the only copy of documents that were lost.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from zarrlite.errors import ZarrliteError
from zarrlite.names import key_prefix
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.nodes.node import complete_removal
from zarrlite.stores import Store
from zarrlite.stores.filelock import prune
from zarrlite.stores.files import discard
from zarrlite.tools.layout import leftovers
from zarrlite.tools.layout.check import Problem
from zarrlite.tools.layout.objects import Stack

REPAIRS: Final = {  # the name of each repair, and the kind of problem that it solves
    "leftovers": "leftover",
    "journals": "journal",
    "resizes": "resize",
    "removals": "removal",
    "outside": "outside",
    "consolidated": "consolidated",
}


def repair(store: Store, problems: Iterable[Problem]) -> list[Problem]:
    """Repair these problems as far as possible. Returns the problems that have been solved."""
    repairs = {
        "leftover": _remove_leftover,
        "journal": _complete_change,
        "resize": _complete_resize,
        "removal": _complete_removal,
        "outside": _remove_outside,
        "consolidated": _consolidate,
    }
    solved: list[Problem] = []
    consolidated: set[str] = set()  # paths of groups; consolidating a group solves all such problems in it
    for problem in problems:
        with contextlib.suppress(ZarrliteError):  # the node is damaged or read-only: the problem remains
            if problem.kind in repairs and (problem.node in consolidated or repairs[problem.kind](store, problem)):
                solved.append(problem)
                if problem.kind == "consolidated":
                    consolidated.add(problem.node)
    return solved


def _remove_leftover(store: Store, problem: Problem) -> bool:
    root = leftovers.local_root(store)
    if root is None:
        return False
    path = os.path.join(root, problem.key)
    leftover = leftovers.inspect(problem.key, path)
    if leftover is None or not leftover.removable:
        return False
    discard(path)
    if os.path.lexists(path):
        return False
    prune(os.path.dirname(path), root.rstrip(os.sep))
    return True


def _complete_change(store: Store, problem: Problem) -> bool:
    array = opening.open(store, mode="r+", path=problem.node, strict=False)
    journal = Stack(array).journal(problem.key[len(key_prefix(problem.node)) :]) if isinstance(array, Array) else None
    return journal is not None and journal[0].complete(journal[1])


def _complete_resize(store: Store, problem: Problem) -> bool:
    array = opening.open(store, mode="r+", path=problem.node, strict=False)
    if isinstance(array, Array):
        array._complete_resize()
    return store.size(problem.key) is None


def _complete_removal(store: Store, problem: Problem) -> bool:
    if not complete_removal(store, problem.node):
        store.erase(problem.key)  # the node still exists: the removal did not begin, and left only this key
    return True


def _remove_outside(store: Store, problem: Problem) -> bool:
    array = opening.open(store, mode="r+", path=problem.node, strict=False)
    if not isinstance(array, Array) or problem.chunk is None:
        return False
    stack = Stack(array)
    coords = stack.coords(problem.chunk)
    if coords is None or all(c < n for c, n in zip(coords, stack.grid, strict=True)):
        return False  # the array has been resized in the meantime
    stack.stores[0].erase(problem.chunk)
    return True


def _consolidate(store: Store, problem: Problem) -> bool:
    """Consolidate a group, then the consolidated groups above it, which drop their copies when a group changes."""
    names = problem.node.split("/") if problem.node else []
    parents = ["/".join(names[:i]) for i in range(len(names))]
    groups = [opening.open_group(store, mode="r+", path=path) for path in parents]
    with_copies = [group.path for group in groups if group.metadata.consolidated is not None]
    for path in [problem.node, *reversed(with_copies)]:
        opening.consolidate_metadata(store, path)
    return True

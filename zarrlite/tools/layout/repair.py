"""What can be put right without a loss, and what can be tidied up if somebody asks for it.

Rules
- Damaged data is never touched. What is removed is looked at again just before.
- "leftovers" is safe: temporary files of writers that are gone.
- "outside" and "consolidated" must be asked for. A chunk outside of the grid may be wanted by somebody who will resize
  the array. Copies of documents may be all that is left of documents that were lost.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from zarrlite.errors import DataError, StoreError
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.stores import Store
from zarrlite.stores.filelock import prune
from zarrlite.stores.files import discard
from zarrlite.tools.layout import leftovers
from zarrlite.tools.layout.check import Problem
from zarrlite.tools.layout.objects import Stack

REPAIRS: Final = {"leftovers": "leftover", "outside": "outside", "consolidated": "consolidated"}  # by kind of problem


def repair(store: Store, problems: Iterable[Problem]) -> list[Problem]:
    """Put right what these problems are about, as far as that is possible; returns those that are now gone."""
    tools = {"leftover": _leftover, "outside": _outside, "consolidated": _consolidated}
    gone: list[Problem] = []
    renewed: set[str] = set()  # groups, once for all problems of their copies
    for problem in problems:
        with contextlib.suppress(DataError, StoreError):  # damaged, or not to be written: it stays a problem
            if problem.kind in tools and (problem.node in renewed or tools[problem.kind](store, problem)):
                gone.append(problem)
                renewed |= {problem.node} if problem.kind == "consolidated" else set()
    return gone


def _leftover(store: Store, problem: Problem) -> bool:
    root = leftovers.local_root(store)
    if root is None:
        return False
    path = os.path.join(root, problem.key)
    found = leftovers.inspect(problem.key, path)
    if found is None or not found.removable:
        return False
    discard(path)
    if os.path.lexists(path):
        return False
    prune(os.path.dirname(path), root.rstrip(os.sep))
    return True


def _outside(store: Store, problem: Problem) -> bool:
    array = opening.open(store, mode="r+", path=problem.node, strict=False)
    if not isinstance(array, Array) or problem.chunk is None:
        return False
    stack = Stack(array)
    coords = stack.coords(problem.chunk)
    if coords is None or all(c < n for c, n in zip(coords, stack.grid, strict=True)):
        return False  # somebody has resized the array meanwhile
    stack.stores[0].erase(problem.chunk)
    return True


def _consolidated(store: Store, problem: Problem) -> bool:
    """Copies are made anew from the bottom up, since a change below drops those of the groups above."""
    names = problem.node.split("/") if problem.node else []
    above = ["/".join(names[:i]) for i in range(len(names))]
    nodes = [opening.open_group(store, mode="r+", path=path) for path in above]
    had = [node.path for node in nodes if node.metadata.consolidated is not None]
    for path in [problem.node, *reversed(had)]:
        opening.consolidate_metadata(store, path)
    return True

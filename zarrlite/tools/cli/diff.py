"""`zarrlite diff`: compare two arrays or hierarchies.

Rules
- Documents are compared after parsing: two spellings of the same metadata are equal.
- Values are compared block by block, so that the chunks of the two arrays may differ and memory is bounded. NaN equals
  NaN.
- The exit code is 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarrlite.errors import ZarrliteError
from zarrlite.extensions.config import escape, show
from zarrlite.nodes.array import Array
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_node
from zarrlite.tools.cli.nodes import Node, kind, walk
from zarrlite.tools.transfer.blocks import all_blocks, block_shape, stored_blocks

HELP = "compare two arrays or hierarchies"
EXAMPLE = "zarrlite diff image.zarr copy.zarr --values"
Difference = dict[str, Any]
_OVERHEAD = 64  # bytes; memory for comparing two elements, in addition to the elements themselves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="a path or URL of an array or group")
    parser.add_argument("b", help="the array or group to compare it with")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--values", action="store_true", help="compare only values, not metadata")
    only.add_argument("--metadata", action="store_true", help="compare only metadata, not values")


def run(args: argparse.Namespace, console: Console) -> int:
    left, right = open_node(args.a), open_node(args.b)
    differences = [
        difference for path, a, b in _pair_nodes(left, right) for difference in _compare(path, a, b, args, console)
    ]
    if console.as_json:
        console.json({"same": not differences, "differences": differences})
        return 1 if differences else 0
    for difference in differences:
        console.print(f"{console.style(difference['path'] or '/', 'name')}: {clean(_describe(difference))}")
    if not differences:
        console.print(console.style("no difference", "good"))
    return 1 if differences else 0


def _pair_nodes(left: Node, right: Node) -> Iterator[tuple[str, Node | None, Node | None]]:
    """Yield every path with its node in each hierarchy, or None where a hierarchy does not contain it."""
    below_a = {descendant.path: descendant.node for descendant in walk(left)}
    below_b = {descendant.path: descendant.node for descendant in walk(right)}
    yield "", left, right
    for path in sorted(below_a.keys() | below_b.keys()):
        yield path, below_a.get(path), below_b.get(path)


def _compare(
    path: str, a: Node | None, b: Node | None, args: argparse.Namespace, console: Console
) -> Iterator[Difference]:
    for node in (a, b):
        if isinstance(node, ZarrliteError):
            raise node
    if a is None or b is None:
        side, node = ("B", b) if a is None else ("A", a)
        yield {"path": path, "what": "node", "only_in": side, "type": "" if node is None else kind(node)}
        return
    if not args.values:
        yield from _compare_metadata(path, _document(a), _document(b), "")
    if not args.metadata and isinstance(a, Array) and isinstance(b, Array):
        if a.shape == b.shape:
            yield from _compare_values(path, a, b, console)
        elif args.values:
            yield {"path": path, "what": "shape", "a": a.shape, "b": b.shape}
    elif args.values and kind(a) != kind(b):
        yield {"path": path, "what": "type", "a": kind(a), "b": kind(b)}


def _document(node: Any) -> Any:
    document = node.metadata.to_json()
    document.pop("consolidated_metadata", None)  # contains only copies of documents; the originals are compared
    return {"attributes": {}, **document}


def _compare_metadata(path: str, a: Any, b: Any, pointer: str) -> Iterator[Difference]:
    """Yield the innermost members that differ, with their JSON pointers."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            member = f"{pointer}/{escape(name)}"
            if name in a and name in b:
                yield from _compare_metadata(path, a[name], b[name], member)
                continue
            yield {
                "path": path,
                "what": "metadata",
                "pointer": member,
                "only_in": "A" if name in a else "B",
                "value": a.get(name, b.get(name)),
            }
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (item, other) in enumerate(zip(a, b, strict=True)):
            yield from _compare_metadata(path, item, other, f"{pointer}/{i}")
    elif not (a == b or (a != a and b != b)) or type(a) is not type(b):  # NaN equals NaN
        yield {"path": path, "what": "metadata", "pointer": pointer, "a": a, "b": b}


def _compare_values(path: str, a: Array, b: Array, console: Console) -> Iterator[Difference]:
    """Yield at most one difference: the number of unequal elements, the first of them, and the largest difference."""
    shape = block_shape(a.shape, _OVERHEAD + a.dtype.itemsize + b.dtype.itemsize, a.shards or a.chunks)
    count, first, largest, largest_at = 0, None, None, None
    fill_values = (array._chunks.metadata.pipeline(array.chunks).spec.fill for array in (a, b))
    same_fill = not _unequal(*fill_values).any()
    blocks = stored_blocks(shape, a, b) if same_fill else all_blocks(shape, a.shape)
    with console.progress(f"diff {path or '/'}", a.size) as progress:
        for block in blocks:
            a_values, b_values = np.asarray(a[block]), np.asarray(b[block])
            unequal = _unequal(a_values, b_values)
            progress.advance(a_values.size)
            if not unequal.any():
                continue
            count += int(np.count_nonzero(unequal))
            origin = [s.start for s in block]
            first = first or _index(unequal, int(np.argmax(unequal)), origin)
            distances = _distances(a_values[unequal], b_values[unequal])
            if distances is not None:
                i = int(np.argmax(distances))
                if largest is None or distances[i] > largest:
                    largest = distances[i]
                    largest_at = _index(unequal, int(np.flatnonzero(unequal)[i]), origin)
    if count:
        difference: Difference = {"path": path, "what": "values", "count": count, "size": a.size, "first": first}
        if largest is not None:
            difference |= {"max_difference": _number(largest), "max_at": largest_at}
        yield difference


def _index(block: Any, flat: int, origin: list[int]) -> list[int]:
    """Convert the flat index of an element in a block to its index in the array."""
    return [int(i) + start for i, start in zip(np.unravel_index(flat, block.shape), origin, strict=True)]


def _unequal(a: Any, b: Any) -> Any:
    """Return a mask of the elements that differ."""
    if a.dtype.names or b.dtype.names or {a.dtype.kind, b.dtype.kind} & set("OSV"):
        return _unequal_as_text(a, b)
    try:
        unequal = np.asarray(a != b)
    except (TypeError, np.exceptions.DTypePromotionError):  # the types cannot be compared
        return np.ones(a.shape, bool)
    if unequal.any() and a.dtype.kind in "fcmM" and b.dtype.kind in "fcmM":
        unequal &= ~((a != a) & (b != b))  # NaN equals NaN, NaT equals NaT
    return unequal


def _unequal_as_text(a: Any, b: Any) -> Any:
    """Return a mask of the elements whose Python values differ in their `repr`."""
    pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
    return np.fromiter((repr(x) != repr(y) for x, y in pairs), bool, a.size).reshape(a.shape)


def _distances(a: Any, b: Any) -> Any:
    """Return the absolute differences of numbers, or infinity if an operand is NaN. Returns None for other types."""
    kinds = {a.dtype.kind, b.dtype.kind}
    if not kinds <= set("biufc"):
        return None
    if a.dtype == b.dtype and kinds <= set("biu"):
        # casting a negative number to unsigned wraps around, but so does the subtraction: the difference is exact
        return np.where(a > b, a, b).astype("u8") - np.where(a > b, b, a).astype("u8")
    wide = np.clongdouble if "c" in kinds else np.longdouble
    with np.errstate(all="ignore"):
        distances = np.abs(a.astype(wide) - b.astype(wide))
    return np.where(np.isnan(distances), np.inf, distances)


def _number(value: Any) -> Any:
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else "Infinity"


def _describe(difference: Difference) -> str:
    match difference["what"]:
        case "node":
            return f"{difference['type']} only in {difference['only_in']}"
        case "metadata" if "only_in" in difference:
            return f"{difference['pointer']} only in {difference['only_in']}: {show(difference['value'])}"
        case "metadata":
            a, b = show(difference["a"]), show(difference["b"])
            if a == b:  # the values differ only after the point where `show` truncates them
                a, b = json.dumps(difference["a"]), json.dumps(difference["b"])
            return f"{difference['pointer']} {a} -> {b}"
        case "values":
            text = f"{difference['count']} of {difference['size']} values differ, first at {tuple(difference['first'])}"
            if "max_difference" in difference:
                text += f", largest difference {difference['max_difference']} at {tuple(difference['max_at'])}"
            return text
        case what:
            return f"{what} {difference['a']} -> {difference['b']}"

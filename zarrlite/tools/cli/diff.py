"""`zarrlite diff`: what differs between two arrays or hierarchies.

Rules
- Documents are compared as they are understood: the same in another spelling is the same.
- Values are compared block by block, whatever the chunks of either side; NaN equals NaN. Memory is bounded.
- Exit code 1: something differs.
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
from zarrlite.tools.cli.blocks import all_blocks, block_shape, stored_blocks
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_node
from zarrlite.tools.cli.nodes import Node, kind, walk

HELP = "what differs between two arrays or hierarchies"
EXAMPLE = "zarrlite diff image.zarr copy.zarr --values"
Difference = dict[str, Any]
_BYTES = 64  # that the comparison of two elements takes, beside their own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="a path or file:// URL of an array or group")
    parser.add_argument("b", help="the other one")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--values", action="store_true", help="compare values only, not metadata")
    only.add_argument("--metadata", action="store_true", help="compare metadata only, not values")


def run(args: argparse.Namespace, console: Console) -> int:
    left, right = open_node(args.a), open_node(args.b)
    found = [difference for path, a, b in _pairs(left, right) for difference in _compare(path, a, b, args, console)]
    if console.as_json:
        console.json({"same": not found, "differences": found})
        return 1 if found else 0
    for each in found:
        console.print(f"{console.style(each['path'] or '/', 'name')}: {clean(_words(each))}")
    if not found:
        console.print(console.style("no difference", "good"))
    return 1 if found else 0


def _pairs(left: Node, right: Node) -> Iterator[tuple[str, Node | None, Node | None]]:
    """The nodes of both, by path."""
    below_a = {found.path: found.node for found in walk(left)}
    below_b = {found.path: found.node for found in walk(right)}
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
        yield from _metadata(path, _document(a), _document(b), "")
    if not args.metadata and isinstance(a, Array) and isinstance(b, Array):
        if a.shape == b.shape:
            yield from _values(path, a, b, console)
        elif args.values:
            yield {"path": path, "what": "shape", "a": a.shape, "b": b.shape}
    elif args.values and kind(a) != kind(b):
        yield {"path": path, "what": "type", "a": kind(a), "b": kind(b)}


def _document(node: Any) -> Any:
    document = node.metadata.to_json()
    document.pop("consolidated_metadata", None)  # copies of what is compared below
    return {"attributes": {}, **document}


def _metadata(path: str, a: Any, b: Any, pointer: str) -> Iterator[Difference]:
    """The members that differ, each by the pointer that leads furthest."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in [*a, *(name for name in b if name not in a)]:
            at = f"{pointer}/{escape(name)}"
            if name not in b or name not in a:
                side = "A" if name in a else "B"
                yield {
                    "path": path,
                    "what": "metadata",
                    "pointer": at,
                    "only_in": side,
                    "value": a.get(name, b.get(name)),
                }
            else:
                yield from _metadata(path, a[name], b[name], at)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (each, other) in enumerate(zip(a, b, strict=True)):
            yield from _metadata(path, each, other, f"{pointer}/{i}")
    elif a != b or type(a) is not type(b):
        yield {"path": path, "what": "metadata", "pointer": pointer, "a": a, "b": b}


def _values(path: str, a: Array, b: Array, console: Console) -> Iterator[Difference]:
    """One difference at most: how many elements, the first of them, and the largest."""
    shape = block_shape(a.shape, _BYTES + a.dtype.itemsize + b.dtype.itemsize, a.shards or a.chunks)
    count, first, largest, where = 0, None, None, None
    fills = (array._chunks.metadata.pipeline(array.chunks).spec.fill for array in (a, b))
    same_fill = not _unequal(*fills).any()
    places = stored_blocks(shape, a, b) if same_fill else all_blocks(shape, a.shape)
    with console.progress(f"diff {path or '/'}", a.size) as progress:
        for block in places:
            mine, other = np.asarray(a[block]), np.asarray(b[block])
            unequal = _unequal(mine, other)
            progress.advance(mine.size)
            if not unequal.any():
                continue
            count += int(np.count_nonzero(unequal))
            origin = [s.start for s in block]
            first = first or _index(unequal, int(np.argmax(unequal)), origin)
            sizes = _sizes(mine[unequal], other[unequal])
            if sizes is not None:
                at = int(np.argmax(sizes))
                if largest is None or sizes[at] > largest:
                    largest, where = sizes[at], _index(unequal, int(np.flatnonzero(unequal)[at]), origin)
    if count:
        found: Difference = {"path": path, "what": "values", "count": count, "size": a.size, "first": first}
        if largest is not None:
            found |= {"max_difference": _number(largest), "max_at": where}
        yield found


def _index(array: Any, flat: int, origin: list[int]) -> list[int]:
    return [int(i) + start for i, start in zip(np.unravel_index(flat, array.shape), origin, strict=True)]


def _unequal(a: Any, b: Any) -> Any:
    """Where two blocks differ."""
    if a.dtype.names or b.dtype.names or {a.dtype.kind, b.dtype.kind} & set("OSV"):
        return _by_bytes(a, b)
    try:
        unequal = np.asarray(a != b)
    except (TypeError, np.exceptions.DTypePromotionError):
        return np.ones(a.shape, bool)  # of types that have nothing in common
    if unequal.any() and a.dtype.kind in "fcmM" and b.dtype.kind in "fcmM":
        unequal &= ~((a != a) & (b != b))  # neither is a number, or a time
    return unequal


def _by_bytes(a: Any, b: Any) -> Any:
    """Elements of which nothing is known but their bytes, or what Python makes of them."""
    pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
    return np.fromiter((repr(x) != repr(y) for x, y in pairs), bool, a.size).reshape(a.shape)


def _sizes(a: Any, b: Any) -> Any:
    """How far apart numbers are; None for what are none. Infinity where one of two is no number."""
    kinds = {a.dtype.kind, b.dtype.kind}
    if not kinds <= set("biufc"):
        return None
    if a.dtype == b.dtype and kinds <= set("biu"):
        return np.where(a > b, a, b).astype("u8") - np.where(a > b, b, a).astype("u8")  # right also where it wraps
    wide = np.clongdouble if "c" in kinds else np.longdouble
    with np.errstate(all="ignore"):
        sizes = np.abs(a.astype(wide) - b.astype(wide))
    return np.where(np.isnan(sizes), np.inf, sizes)


def _number(value: Any) -> Any:
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else "Infinity"


def _words(each: Difference) -> str:
    match each["what"]:
        case "node":
            return f"{each['type']} only in {each['only_in']}"
        case "metadata" if "only_in" in each:
            return f"{each['pointer']} only in {each['only_in']}: {show(each['value'])}"
        case "metadata":
            texts = [show(each["a"]), show(each["b"])]
            if texts[0] == texts[1]:  # what differs stands further behind
                texts = [json.dumps(each["a"]), json.dumps(each["b"])]
            return f"{each['pointer']} {texts[0]} -> {texts[1]}"
        case "values":
            text = f"{each['count']} of {each['size']} values differ, first at {tuple(each['first'])}"
            largest = "max_difference" in each
            return text + (f", most by {each['max_difference']} at {tuple(each['max_at'])}" if largest else "")
        case what:
            return f"{what} {each['a']} -> {each['b']}"

"""`zarrlite header`: show the metadata of a hierarchy with all attributes, as `ncdump -h` does for netCDF files.

Rules
- Only documents are read, never chunks.
- An attribute is shown as one line of JSON. A long attribute is truncated, and its length is shown.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from typing import Any

from zarrlite.errors import ZarrliteError
from zarrlite.extensions.extension import Ignored
from zarrlite.nodes.array import Array
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_node
from zarrlite.tools.cli.nodes import Descendant, Node, kind, walk

HELP = "show the metadata of a hierarchy with all attributes"
EXAMPLE = "zarrlite header experiment.zarr"
_MAX_CHARACTERS = 200  # characters shown of an attribute; the rest is cut off


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an array or group")
    parser.add_argument("-L", "--level", type=int, metavar="N", help="show at most N levels below it")
    parser.add_argument("--full", action="store_true", help="do not cut off long attributes")


def run(args: argparse.Namespace, console: Console) -> int:
    root = open_node(args.location)
    refused, rows = False, []
    for descendant in itertools.chain([Descendant("", root, ())], walk(root, args.level)):
        refused |= isinstance(descendant.node, ZarrliteError)
        if console.as_json:
            rows.append({"path": descendant.path, **_summary(descendant.node)})
        else:
            _print(console, descendant.path, descendant.node, None if args.full else _MAX_CHARACTERS)
    if console.as_json:
        console.json(rows)
    return 1 if refused else 0


def _print(console: Console, path: str, node: Node, limit: int | None) -> None:
    if path:
        console.print()
    name = console.style(path or "/", "bold")
    if isinstance(node, ZarrliteError):
        console.print(f"{name}  {console.style(f'refused: {node}', 'bad')}")
        return
    if isinstance(node, Array):
        console.print(f"{name}  {clean(node.metadata.data_type.name)} ({', '.join(_dimensions(node))})")
        for label, value in _settings(node):
            console.print(f"  {label}: {clean(value)}")
    else:
        console.print(f"{name}  group")
    for key, value in node.attrs.items():
        text = json.dumps(value, ensure_ascii=False, default=str)
        if limit is not None and len(text) > limit:
            text = f"{text[:limit]}... ({len(text)} characters; --full shows all)"
        console.print(f"  {console.style(key, 'name')} = {clean(text)}")


def _dimensions(array: Array) -> Iterator[str]:
    """Yield the length of each dimension, after its name if it has one."""
    names = array.metadata.dimension_names or (None,) * array.ndim
    for name, length in zip(names, array.shape, strict=True):
        yield str(length) if name is None else f"{clean(name)}: {length}"


def _settings(array: Array) -> Iterator[tuple[str, str]]:
    """Yield the settings that determine how the values are stored, each with a label."""
    yield "chunks", str(array.chunks)
    if array.shards:
        yield "shards", str(array.shards)
    yield "codecs", _chain(array.metadata.codecs)
    if array.metadata.storage_transformers:
        yield "storage transformers", _chain(array.metadata.storage_transformers)
    yield "fill value", json.dumps(_fill_value(array))


def _chain(extensions: Any) -> str:
    """Return the names of extensions, with the codecs inside shards in parentheses."""
    names = []
    for extension in extensions:
        inner = () if isinstance(extension, Ignored) else getattr(extension, "codecs", ())
        names.append(f"{extension.name} ({_chain(inner)})" if inner else extension.name)
    return ", ".join(names)


def _fill_value(array: Array) -> Any:
    return array.metadata.to_json()["fill_value"]


def _summary(node: Node) -> dict[str, Any]:
    summary: dict[str, Any] = {"type": kind(node)}
    if isinstance(node, ZarrliteError):
        return {**summary, "error": str(node)}
    if isinstance(node, Array):
        summary |= {
            "data_type": node.metadata.data_type.to_json(),
            "shape": node.shape,
            "dimension_names": node.metadata.dimension_names,
            "chunks": node.chunks,
            "shards": node.shards,
            "codecs": [codec.to_json() for codec in node.metadata.codecs],
            "fill_value": _fill_value(node),
        }
    return {**summary, "attributes": dict(node.attrs)}

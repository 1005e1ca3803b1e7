"""`zarrlite explain`: explain a stored object or a chunk byte by byte."""

from __future__ import annotations

import argparse
import io
import os
import shutil
from collections.abc import Iterator
from typing import Any

from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import ArgumentError, NodeNotFoundError
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.stores.open import is_zip_path
from zarrlite.tools.cli import locate
from zarrlite.tools.cli.console import Console
from zarrlite.tools.layout import Range, Stored, explain
from zarrlite.tools.layout.shards import show
from zarrlite.tools.pictures import explained_html, explained_svg

HELP = "explain a stored object or a chunk byte by byte"
EXAMPLE = "zarrlite explain image.zarr c/0/0"
_MAX_CHUNKS = 16  # chunks and index entries shown for each shard if --all is not passed
_DUMP_BYTES = 8  # bytes shown of each range
_WIDE = 132  # columns; on a narrower terminal, the bytes are not shown
_HEADERS = ("start", "size", "what", "by", "detail", "bytes")
_STYLES = {  # role of a range -> style; ranges with other roles are dim
    "chunk": "bold",
    "shard": "bold",
    "elements": "name",
    "compressed": "name",
    "index": "good",
    "entry": "good",
    "checksum": "warn",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an array, or the path of a file in one")
    parser.add_argument("key", nargs="?", help="the key of a stored object or of a chunk, such as c/0/0")
    parser.add_argument("--chunk", metavar="I,J,...", help="the coordinates of a chunk, instead of a key")
    parser.add_argument(
        "--all", action="store_true", help=f"show all chunks and entries of a shard, not only the first {_MAX_CHUNKS}"
    )
    parser.add_argument("--svg", metavar="FILE", help="write a picture")
    parser.add_argument("--html", metavar="FILE", help="write a page with the picture")


def run(args: argparse.Namespace, console: Console) -> int:
    array, key = _find(args.location, args.key, chunk=args.chunk is not None)
    limit = None if args.all else _MAX_CHUNKS
    if args.chunk is not None:
        objects = explain(array, chunk=_parse_coordinates(args.chunk), most=limit)
    else:
        objects = explain(array, key, most=limit)
    if args.svg:
        _write(args.svg, explained_svg(objects))
    if args.html:
        _write(args.html, _page(array, objects))
    if console.as_json:
        console.json([stored.to_json() for stored in objects])
    else:
        for i, stored in enumerate(objects):
            if i:
                console.print()
            _print(console, array, stored)
    return int(any(r.fault for stored in objects for _, r in stored.layout.walk()))


def _find(location: str, key: str | None, *, chunk: bool) -> tuple[Array, str]:
    """Return the array and the key in it. The location may be a file in the array, or a group above the array.

    If it is a group, the key must begin with the path of the array in the group.
    """
    file_name = ""
    if os.path.isfile(location) and not is_zip_path(location):
        location, file_name = os.path.split(os.path.abspath(location))
    store, path = locate.split(location)
    names = [name for name in [*path.split("/"), file_name, *(key or "").split("/")] if name]
    for i in range(len(names) + 1):
        try:
            node = opening.open(store, mode="r", path="/".join(names[:i]))
        except (NodeNotFoundError, ArgumentError):
            break
        if isinstance(node, Array):
            rest = "/".join(names[i:])
            if not rest and not chunk:
                example = node.metadata.chunk_key_encoding.encode((0,) * node.ndim)
                raise ArgumentError(f"pass the key of an object in {location}, such as {example}, or --chunk")
            return node, rest
    return locate.open_array(location), key or ""  # raises an error that says what the location is


def _parse_coordinates(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError:
        raise ArgumentError(f"--chunk must be integers, such as 0,1, not {text!r}") from None


def _write(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def _page(array: Array, objects: list[Stored]) -> str:
    """Return an HTML page with the picture and the rows that are printed on a terminal."""
    plain = Console(io.StringIO(), io.StringIO())
    tables = [[*_rows(plain, array, stored, stored.layout, "", is_stored=True)] for stored in objects]
    heading = f"{array.name}: {', '.join(stored.key for stored in objects)}"
    return explained_html(objects, heading, _HEADERS, tables)


def _print(console: Console, array: Array, stored: Stored) -> None:
    size = "missing" if stored.size is None else f"{stored.size} bytes"
    console.print(f"{console.style(stored.key, 'name')}  {size}")
    rows = list(_rows(console, array, stored, stored.layout, "", is_stored=True))
    width = shutil.get_terminal_size().columns if console.stdout.isatty() else _WIDE
    columns = len(_HEADERS) if width >= _WIDE else len(_HEADERS) - 1
    console.table(_HEADERS[:columns], [row[:columns] for row in rows])


def _rows(
    console: Console, array: Array, stored: Stored, r: Range, indent: str, *, is_stored: bool
) -> Iterator[list[Any]]:
    """Yield a row for a range, then indented rows for the ranges inside it and for its decoded form."""
    children, views = list(r.children()), list(r.views())
    shown_views = [view for view in views if list(view.children()) or view.fault]
    detail = "; ".join(_details(r, [view for view in views if view not in shown_views]))
    if r.fault:
        detail = console.style(f"{detail}; {r.fault.message}" if detail else r.fault.message, "bad")
    data = b""
    if is_stored and not children and r.stop > r.start:
        data = bytes(array._base.get(stored.key, ByteRange(r.start, min(r.stop, r.start + _DUMP_BYTES))) or b"")
    what = console.style(indent + r.what, "bad" if r.fault else _STYLES.get(r.role, "dim"))
    yield [r.start, r.stop - r.start, what, r.owner, detail, _dump(data)]
    for child in children:
        yield from _rows(console, array, stored, child, indent + "  ", is_stored=is_stored)
    for view in shown_views:
        yield from _rows(console, array, stored, view, indent + "  = ", is_stored=False)


def _details(r: Range, views: list[Range]) -> Iterator[str]:
    """Yield the details of a range in words, including the details of `views`, the ranges of its decoded form."""
    detail = r.detail
    if "holds" in detail:
        yield "holds [" + ", ".join(f"{start}:{stop}" for start, stop in detail["holds"]) + "]"
    if "shape" in detail and "data type" in detail:
        order = " big endian" if detail.get("endian") == "big" else ""
        yield f"{show(detail['shape'])} {detail['data type']}{order}"
    if "value" in detail:
        yield str(detail["value"])
    if "after" in detail:
        yield f"after {', '.join(detail['after'])}"
    if "found" in detail and not r.fault:
        yield f"{detail['found']}, right"
    if detail.get("absent") is True:
        yield "absent"
    elif "offset" in detail:
        yield f"-> {detail['nbytes']} bytes at {detail['offset']}"
    elif detail.get("absent"):
        yield f"{detail['absent']} absent"
    if "as configured" in detail:
        yield "as configured" if detail["as configured"] else "not as configured"
    if detail.get("zeros"):
        yield "zeros"
    if "decodes to" in detail:
        yield ", ".join([f"-> {detail['decodes to']} bytes", *(text for view in views for text in _details(view, []))])
    if "same" in detail:
        yield f"the same bytes as {detail['same']}"
    elif "shares" in detail:
        yield f"bytes {detail['shares'][0]} to {detail['shares'][1]} are shared with other chunks"
    if "last" in detail:
        yield f"{detail['first']} to {detail['last']}"
    if "before" in detail:
        yield f"{detail['before']} more bytes in earlier objects"
    if "behind" in detail:
        yield f"{detail['behind']} more bytes in later objects"


def _dump(data: bytes) -> str:
    r"""Format bytes in hexadecimal and as text.

    >>> _dump(b"II*\x00")
    '49 49 2a 00              II*.'
    """
    if not data:
        return ""
    text = "".join(chr(b) if 32 <= b < 127 else "." for b in data)
    return f"{data.hex(' '):<{3 * _DUMP_BYTES}} {text}"

"""`zarrlite dump`: print values as text, CSV, JSON or .npy.

Rules
- The format is set by `--format`, or otherwise by the extension of the output file; unknown extensions are refused.
- CSV and .npy are written in pieces, so that memory is bounded. Text is abbreviated as numpy abbreviates it, and only
  the values shown are read.
- In CSV, an apostrophe is put before text that a spreadsheet would take for a formula.
- In CSV, a struct has a column for each field, and the first line contains the names of the fields.
- In JSON, a value is written like a fill value in `zarr.json`, so that no precision is lost and NaN is "NaN". Points in
  time are written as text instead, such as "2024-01-31".
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TextIO

import numpy as np

from zarrlite.data_types import DataType
from zarrlite.data_types.struct import Struct
from zarrlite.data_types.time import Datetime64
from zarrlite.errors import ArgumentError, StoreError, ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.stores.files import temporary_name
from zarrlite.tools.cli.console import Console, Progress, clean
from zarrlite.tools.cli.locate import open_array
from zarrlite.tools.cli.selections import Index, parse, read_pieces, result_shape, selected_indices

HELP = "print values as text, CSV, JSON or .npy"
EXAMPLE = "zarrlite dump image.zarr 0:10,::2 --format csv"
_THRESHOLD = 1000  # values; the text of larger selections is abbreviated
_EDGE_ITEMS = 3  # values shown at each end of a dimension in abbreviated text
_FORMATS = {"txt": "text", "csv": "csv", "json": "json", "npy": "npy"}  # extension of the output file -> format
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # some spreadsheets take text that begins with one of these for a formula


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an array")
    parser.add_argument("selection", nargs="?", default="...", help="in numpy's syntax: 0:10,::2,5 (default: all)")
    parser.add_argument("--format", choices=_FORMATS.values(), help="default: the extension of FILE, or text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: standard output)")
    parser.add_argument("--full", action="store_true", help="do not abbreviate text")
    parser._negative_number_matcher = re.compile(r"-\d")  # so that argparse takes -1,: for a selection


def run(args: argparse.Namespace, console: Console) -> int:
    array = open_array(args.location)
    index = parse(args.selection, array.shape)
    output_format = "json" if console.as_json else args.format or _format_of(args.output)
    if output_format == "npy" and not args.output and sys.stdout.isatty():
        raise ArgumentError(".npy must not be written to a terminal; pass --output FILE")
    writers: dict[str, Callable[..., None]] = {
        "json": _write_json,
        "csv": _write_csv,
        "npy": _write_npy,
        "text": _write_text,
    }
    with _open_output(args.output, binary=output_format == "npy") as output:
        total = math.prod(result_shape(index, array.shape))
        # a progress bar would be mixed with values that are printed on the terminal
        shown = console.progress("dump", total) if args.output else contextlib.nullcontext(None)
        with shown as progress:
            writers[output_format](array, index, output, args.full, progress)
    return 0


def _format_of(path: str | None) -> str:
    """Return the format for the extension of an output file; text if the file has no extension."""
    extension = os.path.splitext(path or "")[1][1:]
    if extension.lower() not in ("", *_FORMATS):
        raise ArgumentError(
            f"--output must have one of the extensions {', '.join(_FORMATS)}, not {extension!r}; "
            f"pass --format to write one of these formats to {path}"
        )
    return _FORMATS.get(extension.lower(), "text")


def _read(array: Array, index: Index, progress: Progress | None) -> Iterator[Any]:
    """Read the selected values in pieces, and report the progress."""
    for piece in read_pieces(array, index):
        yield piece
        if progress is not None:
            progress.advance(np.size(piece))


@contextlib.contextmanager
def _open_output(path: str | None, *, binary: bool) -> Iterator[Any]:
    """Open a file that appears only when it is complete, or standard output if there is no path."""
    if path is None:
        yield sys.stdout.buffer if binary else sys.stdout
        return
    temporary = temporary_name(os.path.dirname(os.path.abspath(path)))
    try:
        with open(temporary, "wb") if binary else open(temporary, "w", encoding="utf-8", newline="") as file:
            yield file
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, ZarrliteError):
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error
        raise


def _write_text(array: Array, index: Index, output: TextIO, full: bool, progress: Progress | None) -> None:
    shape = result_shape(index, array.shape)
    shorten = not full and math.prod(shape) > _THRESHOLD
    values = _read_corners(array, index, shape) if shorten else np.asarray(array[index])
    width = shutil.get_terminal_size().columns if output.isatty() else 120
    text = np.array2string(
        values,
        max_line_width=width,
        threshold=0 if shorten else sys.maxsize,
        edgeitems=_EDGE_ITEMS,
        formatter={"object": repr} if values.dtype.kind == "O" else None,
    )
    output.write("\n".join(map(clean, text.split("\n"))) + "\n")


def _read_corners(array: Array, index: Index, shape: tuple[int, ...]) -> Any:
    """Read only the values that abbreviated text shows, and one more in each abbreviated dimension."""
    coordinates: list[Any] = []
    for i, length in zip(index, array.shape, strict=True):
        if isinstance(i, int):
            coordinates.append([i])
            continue
        selected = selected_indices(i, length)
        if len(selected) > 2 * _EDGE_ITEMS:  # one value more than is shown makes numpy print "..."
            coordinates.append([*selected[: _EDGE_ITEMS + 1], *selected[-_EDGE_ITEMS:]])
        else:
            coordinates.append(list(selected))
    corner_shape = tuple(min(n, 2 * _EDGE_ITEMS + 1) for n in shape)
    return array.oindex[tuple(coordinates)].reshape(corner_shape)


def _write_csv(array: Array, index: Index, output: TextIO, full: bool, progress: Progress | None) -> None:
    shape = result_shape(index, array.shape)
    if len(shape) > 2:
        example = ",".join(["0"] * (len(shape) - 2) + [":", ":"])
        raise ArgumentError(
            f"a selection for CSV must have at most 2 dimensions, not {len(shape)}; select a slice such as {example}"
        )
    writer = csv.writer(output, lineterminator="\n")
    shown: Callable[[object], str] = clean if output.isatty() else str
    fields = _fields(array.dtype)
    columns = shape[1] if len(shape) == 2 else 1
    if array.dtype.names is not None:
        names = [".".join(path) for path in fields]
        prefixes = [f"{i}." for i in range(columns)] if len(shape) == 2 else [""]
        writer.writerow(shown(_csv_cell(prefix + name)) for prefix in prefixes for name in names)
    for piece in _read(array, index, progress):
        rows = np.asarray(piece).reshape(-1, columns)
        writer.writerows([shown(_csv_cell(_member(value, path))) for value in row for path in fields] for row in rows)


def _fields(dtype: np.dtype[Any]) -> list[tuple[str, ...]]:
    """Return the path of every field that is not itself a struct. A data type without fields has one empty path."""
    if dtype.names is None:
        return [()]
    return [(name, *path) for name in dtype.names for path in _fields(dtype[name])]


def _member(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def _csv_cell(value: Any) -> Any:
    """Return a value, with an apostrophe before text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _write_npy(array: Array, index: Index, output: BinaryIO, full: bool, progress: Progress | None) -> None:
    if array.dtype.hasobject or array.dtype.kind == "T":
        raise ArgumentError(f".npy cannot hold values of {array.metadata.data_type.name}; use --format csv")
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": result_shape(index, array.shape),
    }
    np.lib.format.write_array_header_2_0(output, header)
    for piece in _read(array, index, progress):
        output.write(np.ascontiguousarray(piece).tobytes())


def _write_json(array: Array, index: Index, output: TextIO, full: bool, progress: Progress | None) -> None:
    values = np.asarray(array[index])
    to_json = _to_json(array.metadata.data_type)

    def nested(part: Any) -> Any:
        return [nested(item) for item in part] if isinstance(part, np.ndarray) else to_json(part)

    Console(output).json(
        {
            "shape": values.shape,
            "data_type": array.metadata.data_type.to_json(),
            "values": nested(values if values.ndim else values[()]),
        }
    )


def _to_json(data_type: DataType) -> Callable[[Any], Any]:
    """Return a function that converts a value to JSON: a point in time to text, any other value like a fill value."""
    if isinstance(data_type, Datetime64) and data_type.unit != "generic":
        return str
    if isinstance(data_type, Struct):
        fields = [(name, _to_json(field)) for name, field in data_type.fields]
        return lambda value: {name: to_json(value[name]) for name, to_json in fields}
    return data_type.fill_value_json

"""`zarrlite dump`: values as text, CSV or .npy.

Rules
- CSV and .npy are written piece by piece, so that memory is bounded; so is text, which is shortened as numpy does it.
- JSON has each value as `zarr.json` would have it as a fill value: nothing is lost, and NaN is "NaN".
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

from zarrlite.errors import ArgumentError, StoreError, ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.stores.files import temporary_name
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_array
from zarrlite.tools.cli.selections import Index, numbers, parse, pieces, result_shape

HELP = "values as text, CSV or .npy"
EXAMPLE = "zarrlite dump image.zarr 0:10,::2 --format csv"
_EDGE, _MANY = 3, 1000  # of text that is shortened: how many values at each end, and from how many on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or file:// URL of an array")
    parser.add_argument("selection", nargs="?", default="...", help="in numpy's syntax: 0:10,::2,5 (all of it)")
    parser.add_argument("--format", choices=("text", "csv", "npy"), help="text, or what the name of FILE ends with")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (standard output)")
    parser.add_argument("--full", action="store_true", help="text is not shortened")
    parser._negative_number_matcher = re.compile(r"-\d")  # -1,: is a selection and no option


def run(args: argparse.Namespace, console: Console) -> int:
    array = open_array(args.location)
    index = parse(args.selection, array.shape)
    ending = os.path.splitext(args.output or "")[1][1:]
    kind = "json" if console.as_json else args.format or (ending if ending in ("csv", "npy") else "text")
    if kind == "npy" and not args.output and sys.stdout.isatty():
        raise ArgumentError("a terminal shows no .npy; say --output FILE")
    write: Callable[..., None] = {"json": _json, "csv": _csv, "npy": _npy, "text": _text}[kind]  # type: ignore[assignment]
    with _target(args.output, binary=kind == "npy") as target:
        write(array, index, target, args.full)
    return 0


@contextlib.contextmanager
def _target(path: str | None, *, binary: bool) -> Iterator[Any]:
    """Standard output, or a file that is there whole or not at all."""
    if path is None:
        yield sys.stdout.buffer if binary else sys.stdout
        return
    temporary = temporary_name(os.path.dirname(path))
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


def _text(array: Array, index: Index, target: TextIO, full: bool) -> None:
    shape = result_shape(index, array.shape)
    short = not full and math.prod(shape) > _MANY
    values = _corners(array, index, shape) if short else np.asarray(array[index])
    width = shutil.get_terminal_size().columns if target.isatty() else 120
    shown = np.array2string(
        values,
        max_line_width=width,
        threshold=0 if short else sys.maxsize,
        edgeitems=_EDGE,
        formatter={"object": repr} if values.dtype.kind == "O" else None,
    )
    target.write("\n".join(map(clean, shown.split("\n"))) + "\n")


def _corners(array: Array, index: Index, shape: tuple[int, ...]) -> Any:
    """What is shown of a selection that is too large to be shown: nothing else is read."""
    picked: list[Any] = []
    for i, length in zip(index, array.shape, strict=True):
        if isinstance(i, int):
            picked.append([i])
            continue
        selected = numbers(i, length)
        if len(selected) > 2 * _EDGE:  # one more than what is shown, in place of all others
            selected_list = [*selected[: _EDGE + 1], *selected[-_EDGE:]]
        else:
            selected_list = list(selected)
        picked.append(selected_list)
    kept = tuple(min(n, 2 * _EDGE + 1) for n in shape)
    return array.oindex[tuple(picked)].reshape(kept)


def _csv(array: Array, index: Index, target: TextIO, full: bool) -> None:
    shape = result_shape(index, array.shape)
    if len(shape) > 2:
        example = ",".join(["0"] * (len(shape) - 2) + [":", ":"])
        raise ArgumentError(
            f"CSV has two dimensions and the selection has {len(shape)}; select less, such as {example}"
        )
    rows = csv.writer(target, lineterminator="\n")
    for piece in pieces(array, index):
        values = np.asarray(piece)
        rows.writerows([str(v) for v in row] for row in values.reshape(-1, shape[1] if len(shape) == 2 else 1))


def _npy(array: Array, index: Index, target: BinaryIO, full: bool) -> None:
    if array.dtype.hasobject or array.dtype.kind == "T":
        raise ArgumentError(f".npy has no values of {array.metadata.data_type.name}; say --format csv")
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": result_shape(index, array.shape),
    }
    np.lib.format.write_array_header_2_0(target, header)
    for piece in pieces(array, index):
        target.write(np.ascontiguousarray(piece).tobytes())


def _json(array: Array, index: Index, target: TextIO, full: bool) -> None:
    values = np.asarray(array[index])
    one = array.metadata.data_type.fill_value_json

    def nested(part: Any) -> Any:
        return [nested(each) for each in part] if isinstance(part, np.ndarray) else one(part)

    Console(target).json(
        {
            "shape": values.shape,
            "data_type": array.metadata.data_type.to_json(),
            "values": nested(values if values.ndim else values[()]),
        }
    )

"""Repairs of invalid array documents that other writers produce (`strict=False`).

Rules
- The parser itself is always strict. With `strict=False`, each fault that the parser reports is looked up here; if a
  repair is known, the document is changed and parsed again. Each repair is reported as a warning with the JSON pointer
  of the fault.
- Each repair assumes the value that is almost always intended: the zero of the data type, little-endian byte order,
  the default codecs, the permutation that an order "C" or "F" meant, or a chunk length of 1 along an axis without
  elements. All other faults remain errors.
- The JSON pointers in runtime options refer to the stored document, so those that lead to codecs after an inserted
  codec are adjusted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from zarrlite.errors import MetadataError, MetadataWarning
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json, is_integer
from zarrlite.pipeline.codec import ArrayArrayCodec

Names = tuple[str, ...]  # the path to a value: member names and list positions
Options = Mapping[str, Mapping[str, Any]]

_BYTES: Final = {"name": "bytes", "configuration": {"endian": "little"}}
# name of a list of codecs -> the default codecs, which are used if the list is missing
_DEFAULTS: Final[dict[str, list[dict[str, Any]]]] = {"codecs": [_BYTES], "index_codecs": [_BYTES, {"name": "crc32c"}]}


class Repair(NamedTuple):
    """A change to a document."""

    message: str
    names: Names  # the path to the new value
    value: Json
    inserted: int | None = None  # position of the inserted item, if the change inserts one into a list


def repair(
    document: Mapping[str, Json], parse: Callable[[Mapping[str, Json]], object], options: Options | None
) -> tuple[Mapping[str, Json], Options | None]:
    """Return a document with all known repairs applied, and its runtime options. `parse` must raise all faults.

    Warns about each repair if no other fault remains. Otherwise, parsing the result raises the remaining faults.
    """
    repaired: dict[str, str] = {}  # messages, keyed by the pointer of the fault
    while True:
        try:
            parse(document)
        except MetadataError as error:
            faults = [fault for fault in error.problems if fault.pointer not in repaired]
        else:
            for pointer, message in repaired.items():
                warnings.warn(MetadataWarning(message, pointer), stacklevel=2)
            return document, options
        before = len(repaired)
        for fault in faults:
            change = _find_repair(document, fault)
            if change is not None:
                repaired[fault.pointer] = change.message
                document = _with(document, change.names, change.value)
                options = _shifted(options, change)
        if len(repaired) == before:
            return document, options


def _find_repair(document: Mapping[str, Json], fault: MetadataError) -> Repair | None:
    """Return the repair for a fault. Returns None if the fault cannot be repaired."""
    names = tuple(name.replace("~1", "/").replace("~0", "~") for name in fault.pointer.split("/")[1:])
    value, is_missing = _get(document, names), fault.kind == "missing"
    if names == ("fill_value",) and value is None:
        return _fill_value(document, is_missing)
    if is_missing and names[-1:] in (("codecs",), ("index_codecs",)) and _is_chain(document, names):
        return _codecs(names, value)
    if is_missing and names[-2:] == ("configuration", "endian"):
        # `n5_default` allows only big endian
        order = "big" if _name(_get(document, names[:-5])) == "n5_default" else "little"
        return Repair(f"is missing; {order} endian is assumed", names, order)
    if names[-2:] == ("configuration", "order") and _name(_get(document, names[:-2])) == "transpose":
        return _order(document, names, value)
    if names[-2:-1] == ("chunk_shape",):
        return _chunk_length(document, names, value)
    return None


def _fill_value(document: Mapping[str, Json], is_missing: bool) -> Repair | None:
    try:
        data_type: Any = registry.data_types.parse(document.get("data_type"), "/data_type", Context())
    except MetadataError:
        return None
    zero = data_type.fill_value_json(data_type.default_fill_value)
    return Repair(f"is {'missing' if is_missing else 'null'}; the zero of the data type is used", ("fill_value",), zero)


def _is_chain(document: Mapping[str, Json], names: Names) -> bool:
    """Whether a member contains the codecs of the array or of a shard.

    Members of other objects may have the same name but another meaning.
    """
    if len(names) == 1:
        return True
    return bool(_name(_get(document, names[:-2])) == "sharding_indexed")


def _codecs(names: Names, value: Json) -> Repair:
    """Insert an array -> bytes codec into a list of codecs, or add the list if it is missing."""
    if value is None:
        chain = _DEFAULTS[names[-1]]
        shown = " and ".join("bytes (little endian)" if codec is _BYTES else codec["name"] for codec in chain)
        return Repair(f"is missing; the default is used: {shown}", names, chain)
    filters = (i for i, codec in enumerate(value) if _is_filter(codec))
    position = 1 + max(filters, default=-1)
    message = "has no array -> bytes codec; bytes (little endian) is inserted"
    return Repair(message, names, [*value[:position], _BYTES, *value[position:]], position)


def _is_filter(codec: Json) -> bool:
    """Whether JSON describes an array -> array codec."""
    name = _name(codec)
    found = registry.codecs.find(name) if isinstance(name, str) else None
    return found is not None and issubclass(found, ArrayArrayCodec)


def _name(extension: Json) -> Json:
    return extension.get("name") if isinstance(extension, dict) else extension


def _chunk_length(document: Mapping[str, Json], names: Names, value: Json) -> Repair | None:
    """Replace a chunk length of 0 or true, which zarr-python wrote for axes without elements."""
    length = _get(document, ("shape", names[-1]))
    if length != 0 or not is_integer(length) or not (value is True or (is_integer(value) and value == 0)):
        return None
    return Repair(f"is {str(value).lower()}, but the axis has no elements; 1 is used", names, 1)


def _order(document: Mapping[str, Json], names: Names, value: Json) -> Repair | None:
    """Replace the order "C" or "F" in a `transpose` codec: drafts of Zarr allowed it, and GDAL writes it."""
    shape = _get(document, ("shape",))
    if value not in ("C", "F") or not isinstance(shape, list):
        return None
    order = list(range(len(shape)))
    if value == "F":
        order.reverse()
    return Repair(f'is "{value}", the old name of a permutation; {order} is used', names, order)


def _get(document: Json, names: Sequence[str]) -> Json:
    """Return the value at a path in a document. Returns None if the value is absent."""
    for name in names:
        if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        elif isinstance(document, Mapping):
            document = document.get(name)
        else:
            return None
    return document


def _with(document: Json, names: Sequence[str], value: Json) -> Json:
    """Return a copy of a document with one member replaced or added."""
    if not names:
        return value
    if isinstance(document, str):
        document = {"name": document}  # the short form of an extension
    if isinstance(document, list):
        position = int(names[0])
        return [*document[:position], _with(document[position], names[1:], value), *document[position + 1 :]]
    return {**document, names[0]: _with(document.get(names[0], {}), names[1:], value)}


def _shifted(options: Options | None, change: Repair) -> Options | None:
    """Return runtime options whose JSON pointers are adjusted to a change."""
    if not options or change.inserted is None:
        return options
    above = "".join(f"/{name}" for name in change.names)
    shifted = {}
    for pointer, option in options.items():
        position, slash, rest = pointer.removeprefix(f"{above}/").partition("/")
        if pointer.startswith(f"{above}/") and position.isdecimal() and int(position) >= change.inserted:
            pointer = f"{above}/{int(position) + 1}{slash}{rest}"
        shifted[pointer] = option
    return shifted

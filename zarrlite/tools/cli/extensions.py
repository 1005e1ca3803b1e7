"""Parse extensions as users type them: as JSON, or as names with settings, such as `bytes,zstd:level=9,crc32c`."""

from __future__ import annotations

import json
from typing import Any

from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Json


def parse_list(text: str, flag: str) -> list[Json]:
    """Parse several extensions. The text `none` means an empty list.

    >>> parse_list("bytes,zstd:level=9", "--codecs")
    ['bytes', {'name': 'zstd', 'configuration': {'level': 9}}]
    """
    if text.strip() == "none":
        return []
    if text.lstrip().startswith(("[", "{")):
        value = _parse_json(text, flag)
        return value if isinstance(value, list) else [value]
    return [_parse_named(item, flag) for item in _split(text, ",")]


def parse_one(text: str, flag: str) -> Json:
    """Parse a single extension."""
    extensions = parse_list(text, flag)
    if len(extensions) != 1:
        raise ArgumentError(f"{flag} must be a single extension, not {text!r}")
    return extensions[0]


def parse_lengths(text: str, flag: str, ndim: int) -> tuple[int, ...]:
    """Parse a length for each dimension; a single number is used for all of them.

    >>> parse_lengths("64", "--chunks", 2), parse_lengths("(1,64)", "--chunks", 2)
    ((64, 64), (1, 64))
    """
    parts = text.strip().strip("()[]").split(",")
    lengths = tuple(int(part) for part in parts if part.strip().isdecimal() and part.isascii() and len(part) < 20)
    if len(parts) == 1:
        lengths *= ndim
    if len(lengths) != ndim or 0 in lengths or (len(parts) != len(lengths) and len(parts) != 1):
        example = ",".join(["64"] * ndim)
        raise ArgumentError(f"{flag} must have {ndim} lengths of at least 1, such as {example}, not {text!r}")
    return lengths


def _parse_named(item: str, flag: str) -> Json:
    """Parse `name` or `name:member=value:member=value`. A value that is not JSON is taken as a string."""
    name, *members = _split(item, ":")
    if not name.strip():
        raise ArgumentError(f"{flag}: {item!r} must begin with the name of an extension")
    if not members:
        return name.strip()
    configuration: dict[str, Any] = {}
    for member in members:
        key, equals, value = member.partition("=")
        if not equals:
            raise ArgumentError(f"{flag}: {member!r} must be member=value, as in zstd:level=9")
        try:
            configuration[key.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            configuration[key.strip()] = value
    return {"name": name.strip(), "configuration": configuration}


def _split(text: str, separator: str) -> list[str]:
    """Split text at separators that are outside of brackets and quotes."""
    parts, depth, quoted = [""], 0, False
    for c in text:
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in "[{") - (c in "]}")
        if c == separator and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def _parse_json(text: str, flag: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{flag}: {text!r} is not JSON: {error}") from None

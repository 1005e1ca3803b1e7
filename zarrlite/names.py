"""Names and paths of nodes.

Rules
- A path has no leading or trailing `/`; the root is the empty path. Node names follow the core spec (Node names).
"""

from __future__ import annotations

from zarrlite.errors import ArgumentError

DOCUMENT = "zarr.json"


def normalize_path(path: str | None) -> str:
    """A path without outer slashes, each of its names allowed.

    >>> normalize_path("/foo/bar/")
    'foo/bar'
    """
    if path is None:
        return ""
    if not isinstance(path, str):
        raise ArgumentError(f"a path is text, not {type(path).__name__}")
    path = path.strip("/")
    for name in path.split("/") if path else ():
        fault = name_fault(name)
        if fault:
            raise ArgumentError(f"{name!r} cannot be the name of a node: {fault}")
    return path


def name_fault(name: str) -> str | None:
    """Core spec, Node names; NUL and backslash are refused by every store."""
    if not name:
        return "a name is not empty"
    if not name.strip("."):
        return "a name is not made of periods alone"
    if name.startswith("__"):
        return "names that start with '__' are reserved"
    if name == DOCUMENT:
        return "that is the name of the metadata document"
    if "\0" in name or "\\" in name:
        return "a name has no NUL and no backslash"
    return None


def key_prefix(path: str) -> str:
    """The prefix of a node's keys."""
    return f"{path}/" if path else ""


def key_text_fault(text: str) -> str | None:
    """What makes text unfit to stand behind a key, if it comes from a file nobody has checked."""
    if text.startswith("/") or text.endswith("/") or "//" in text:
        return "it has no '/' at its ends and no '//'"
    if "\\" in text or any(c < " " or "\x7f" <= c <= "\x9f" for c in text):
        return "it has no backslash and no control characters"
    if any("\ud800" <= c <= "\udfff" for c in text):
        return "it is Unicode text"
    segments = text.split("/")
    if "." in segments or ".." in segments:
        return "no segment of it is '.' or '..'"
    if any(segment == DOCUMENT or segment.startswith("__") for segment in segments[1:]):
        return f"no segment of it is {DOCUMENT} or starts with '__'"
    return None

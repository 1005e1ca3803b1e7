"""Names and paths of nodes, and text that becomes part of a key.

Rules
- A path has no leading or trailing `/`; the path of the root is empty.
- Node names follow the section "Node names" of the core spec. Nodes whose names start with the reserved prefix `__` can
  be read, because xarray writes such a name (`__xarray_dataarray_variable__`), but they cannot be created. Names that
  start with `__zarrlite.` are refused altogether: this prefix is reserved for zarrlite's own keys.
- Functions named `*_fault` return the rule that a text breaks, worded as an error message, or None if it breaks none.
"""

from __future__ import annotations

from zarrlite.errors import ArgumentError

RESERVED = "__zarrlite."  # prefix of keys that zarrlite stores for its own use
RESERVED_PREFIX = "__"  # core spec, Node names: "must not start with the reserved prefix"
REMOVAL = "__zarrlite.removal"  # key below a node; its value lists the documents that an unfinished removal erases
DOCUMENT = "zarr.json"  # core spec, Metadata: "metadata documents are stored under the key zarr.json"


def normalize_path(path: str | None) -> str:
    """Return a path without leading and trailing slashes, after checking each of its names.

    >>> normalize_path("/foo/bar/")
    'foo/bar'
    """
    if path is None:
        return ""
    if not isinstance(path, str):
        raise ArgumentError(f"a path must be a string, not {type(path).__name__}")
    # core spec, Concepts and terminology: "The root node has a path of /"
    # core spec, Concepts and terminology: "a non-root path cannot end with /"
    path = path.strip("/")
    # core spec, Concepts and terminology: "All nodes in a hierarchy have a name and a path"
    # core spec, Concepts and terminology: "the / character, unless the parent is the root node"
    for name in path.split("/") if path else ():
        fault = name_fault(name)
        if fault:
            raise ArgumentError(f"invalid node name {name!r}: {fault}")
    return path


def name_fault(name: str) -> str | None:
    """Return the rule that the name of an existing node breaks. Returns None if the name is accepted."""
    # core spec, Node names: "Node names are case sensitive"
    # core spec, Node names: "we recommend users to only use characters in the sets", so others are accepted
    # core spec, Node names: "must not be the empty string"
    if not name:
        return "node names must not be empty"
    # core spec, Node names: "must not be a string composed only of period characters"
    if not name.strip("."):
        return "node names must not consist of periods only"
    if name.startswith(RESERVED):
        return f"node names must not start with {RESERVED!r}, the prefix of zarrlite's own keys"
    # core spec, Node names: 'must not be "zarr.json"'
    if name == DOCUMENT:
        return f"node names must not be {DOCUMENT!r}, the metadata document"
    if "\0" in name or "\\" in name:  # the core spec does not forbid these characters, but no store accepts them
        return "node names must not contain NUL or a backslash"
    if has_surrogates(name):
        return "node names must not contain lone surrogates, which are not Unicode text"
    return None


def new_name_fault(name: str) -> str | None:
    """Return the rule that the name of a new node breaks. Returns None if the name is valid."""
    # core spec, Node names: "must not start with the reserved prefix"
    if name.startswith("__"):
        return "node names must not start with '__', a reserved prefix"
    return name_fault(name)


def check_new_path(path: str) -> None:
    """Raise ArgumentError if the last name of a path is not allowed for a new node."""
    name = path.rpartition("/")[2]
    fault = new_name_fault(name) if name else None
    if fault:
        raise ArgumentError(f"invalid node name {name!r}: {fault}")


def has_surrogates(text: str) -> bool:
    """Whether text contains lone surrogates, which cannot be encoded as UTF-8."""
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def key_prefix(path: str) -> str:
    """Return the common prefix of all keys of a node."""
    # core spec, Stored representation: "stripping the leading / of the path and appending /zarr.json"
    # core spec, Stored representation: "metadata document for the root of a Zarr hierarchy is stored under"
    # core spec, Stored representation: "All chunk or other data of an array is stored under"
    # core spec, Stored representation: "For a root array, the key prefix is obtained from the metadata"
    return f"{path}/" if path else ""


def key_text_fault(text: str) -> str | None:
    """Return the rule that text from a document would break if it became part of a key. Returns None if it is safe.

    The proposals for extensions that add text to keys, such as `suffix`, do not restrict this text. Without this check,
    a key could lead outside of the array, or be the key of a document.
    """
    if text.startswith("/") or text.endswith("/") or "//" in text:
        return "must not start or end with '/' and must not contain '//'"
    if "\\" in text or any(c < " " or "\x7f" <= c <= "\x9f" for c in text):
        return "must not contain backslashes or control characters"
    if has_surrogates(text):
        return "must not contain lone surrogates"
    segments = text.split("/")
    if "." in segments or ".." in segments:
        return "must not have '.' or '..' as a segment"
    if any(segment == DOCUMENT or segment.startswith("__") for segment in segments[1:]):
        return f"must not have a segment that is {DOCUMENT!r} or starts with '__'"
    if text.startswith(RESERVED):
        return f"must not start with {RESERVED!r}, the prefix of zarrlite's own keys"
    return None

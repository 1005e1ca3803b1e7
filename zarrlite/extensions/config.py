"""Strict JSON parsing, and typed getters for the members of JSON objects. Errors contain JSON pointers.

Rules
- JSON is strict: UTF-8 without BOM, no duplicate member names, bounded size and depth. NaN and Infinity are not JSON;
  they are accepted only in attributes, where zarr-python and xarray write them.
- Neither `true` nor `4.0` is an integer.
- A `Config` records which members were requested; `finish` refuses all others.

This module knows nothing about individual extensions: the modules that request members define their meaning.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from zarrlite.errors import ArgumentError, FaultKind, MetadataError

Json = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]

MAX_DOCUMENT_BYTES: Final = 64 * 2**20  # bytes; larger documents are refused before they are parsed
MAX_DOCUMENT_DEPTH: Final = 128  # levels of arrays and objects; deeper documents are refused
MAX_FAULTS: Final = 1000  # faults collected per document; more could take more memory than the document
MAX_LENGTH: Final = 2**63 - 1  # elements along a dimension, or bytes; the default upper bound for integers
_REQUIRED: Final = object()
# Literals that are not JSON. Each is always the same object, so that equal documents with NaN compare as equal.
_CONSTANTS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Faults:
    """Collects the faults of several parts of a document, up to `MAX_FAULTS`, so that one pass reports all of them."""

    def __init__(self) -> None:
        self.problems: list[MetadataError] = []

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Record a fault that the `with` block raises, and continue after the block."""
        try:
            yield
        except MetadataError as error:
            self.problems.extend(error.problems)
            if len(self.problems) >= MAX_FAULTS:
                self.raise_any()

    def raise_any(self) -> None:
        """Raise the first fault, with all faults in its `problems`. Does nothing if there are no faults."""
        if self.problems:
            first = self.problems[0]
            raise type(first)(
                first.message,
                pointer=first.pointer,
                kind=first.kind,
                document=first.document,
                problems=tuple(self.problems),
            )


class Context:
    """The state shared by all parsers of one document: its name, the runtime options and the tolerated faults."""

    def __init__(
        self,
        *,
        document: str = "zarr.json",
        options: Mapping[str, Mapping[str, Any]] | None = None,
        defaults: bool = False,
    ) -> None:
        self.document = document
        self.defaults = defaults  # whether the JSON comes from a caller, who may omit members that documents require
        self.options = _checked_options(options or {})
        self.tolerated: list[MetadataError] = []  # faults that readers accept, because the document is unambiguous

    def tolerate(self, message: str, pointer: str, kind: FaultKind) -> None:
        """Record a fault that `open` accepts and `validate` reports."""
        self.tolerated.append(MetadataError(message, pointer=pointer, kind=kind, document=self.document))

    def runtime_options(self, pointer: str) -> Mapping[str, Any]:
        """Return the options for the extension at this pointer, and remove them from `options`."""
        return self.options.pop(pointer, {})

    def refuse_unused_options(self) -> None:
        """Raise ArgumentError if `options` contains a JSON pointer that does not lead to an extension."""
        if self.options:
            pointers = ", ".join(map(repr, self.options))
            raise ArgumentError(f"options: {self.document} has no extension at {pointers}")


def _checked_options(options: Any) -> dict[str, Mapping[str, Any]]:
    """Return runtime options as a dict from JSON pointers to mappings."""
    if not isinstance(options, Mapping) or not all(isinstance(value, Mapping) for value in options.values()):
        raise ArgumentError("options must be a mapping {JSON pointer: {option: value}}")
    return dict(options)


class Config:
    """Typed getters for the members of the JSON object at `pointer`."""

    def __init__(self, data: Mapping[str, Json], pointer: str, context: Context, name: str = "") -> None:
        self.data = data
        self.pointer = pointer
        self.context = context
        self.name = name  # the name of the configured extension, as written in the document
        self.requested: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def at(self, key: str | int) -> str:
        """Return the pointer of a member."""
        return f"{self.pointer}/{escape(str(key))}"

    def error(self, message: str, key: str | None = None, kind: FaultKind = "value") -> MetadataError:
        """Return an error about one member or, without `key`, about the whole object."""
        pointer = self.pointer if key is None else self.at(key)
        return MetadataError(message, pointer=pointer, kind=kind, document=self.context.document)

    def raw(self, key: str, default: Json = _REQUIRED) -> Json:
        """Return a member of any type."""
        self.requested.add(key)
        value = self.data.get(key, default)
        if value is _REQUIRED:
            raise self.error("is required and missing", key, "missing")
        return value

    def _typed(self, key: str, default: Json, is_valid: Callable[[Json], bool], expected: str) -> Json:
        """Return a member that passes `is_valid`. Returns the default, unchecked, if the member is absent."""
        value = self.raw(key, default)
        if value is default and key not in self.data:
            return value
        if not is_valid(value):
            raise self.error(f"must be {expected}, not {show(value)}", key, "type")
        return value

    def integer(self, key: str, low: int = 0, high: int = MAX_LENGTH, default: Json = _REQUIRED) -> int:
        """Return an integer from `low` to `high`."""
        value: int = self._typed(key, default, is_integer, "an integer")
        if key in self.data and not low <= value <= high:
            raise self.error(f"must be an integer from {low} to {high}, not {show(value)}", key, "value")
        return value

    def number(self, key: str, default: Json = _REQUIRED) -> float:
        """Return a number: an integer or a float, within the range of a double."""
        value: float = self._typed(key, default, is_number, "a number")
        if is_integer(value) and abs(value) >= 2**1023:
            raise self.error(f"must be within the range of a double, not {show(value)}", key, "value")
        return value

    def boolean(self, key: str, default: Json = _REQUIRED) -> bool:
        """Return true or false."""
        value: bool = self._typed(key, default, lambda v: isinstance(v, bool), "true or false")
        return value

    def string(self, key: str, choices: Sequence[str] = (), default: Json = _REQUIRED) -> str:
        """Return a string, which must be one of `choices` if these are passed."""
        value: str = self._typed(key, default, lambda v: isinstance(v, str), "a string")
        if choices and key in self.data and value not in choices:
            expected = " or ".join(map(show, choices))
            raise self.error(f"must be {expected}, not {show(value)}", key, "value")
        return value

    def list(self, key: str, default: Json = _REQUIRED) -> list[Json]:
        """Return an array."""
        value: list[Json] = self._typed(key, default, lambda v: isinstance(v, list), "an array")
        return value

    def integers(self, key: str, low: int = 0, high: int = MAX_LENGTH) -> tuple[int, ...]:
        """Return an array of integers, each from `low` to `high`."""
        values = self.list(key)
        items = self._items(key, values)
        for i in items.data:
            items.integer(i, low, high)
        return tuple(values)

    def object(self, key: str, default: Json = _REQUIRED) -> Config:
        """Return a nested object as a `Config`."""
        value = self._typed(key, default, lambda v: isinstance(v, dict), "an object")
        return Config(value, self.at(key), self.context)

    def objects(self, key: str) -> Sequence[Config]:
        """Return an array of objects, each as a `Config`."""
        items = self._items(key, self.list(key))
        return [items.object(i) for i in items.data]

    def _items(self, key: str, values: Sequence[Json]) -> Config:
        """Return the items of an array as a `Config` whose members are named by position."""
        return Config({str(i): value for i, value in enumerate(values)}, self.at(key), self.context)

    def base64(self, key: str, default: Json = _REQUIRED) -> bytes:
        """Return the bytes of a base64 string (RFC 4648 section 4, strict)."""
        text = self.string(key, default=default)
        if key not in self.data:
            return default  # type: ignore[no-any-return]
        try:
            return decode_base64(text)
        except ValueError as error:
            raise self.error(str(error), key, "value") from None

    def finish(self) -> None:
        """Refuse members that no getter has requested."""
        # core spec, must_understand: "MUST fail to open Zarr groups or arrays if any metadata fields"
        for key in self.data:
            if key not in self.requested:
                known = ", ".join(sorted(self.requested)) or "none"
                raise self.error(f"is not a known member (known: {known})", key, "unknown-member")


def is_integer(value: Json) -> bool:
    """Whether a JSON value is an integer; `true` and `4.0` are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Json) -> bool:
    """Whether a JSON value is a number; `true` is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def escape(key: str) -> str:
    """Return a member name as a reference token of a JSON pointer (RFC 6901, section 3)."""
    return key.replace("~", "~0").replace("/", "~1")


def show(value: Json) -> str:
    """Return a JSON value as text for an error message, at most 60 characters long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = f"a value of type {type(value).__name__}"  # not JSON, or an integer with too many digits
    return text if len(text) <= 60 else text[:57] + "..."


def decode_base64(text: str) -> bytes:
    """Decode base64 (RFC 4648 section 4). Refuses white space, the URL-safe alphabet, wrong padding and stray bits."""
    import base64

    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        data = None
    if data is None or base64.b64encode(data).decode() != text:
        raise ValueError(f"must be base64 (RFC 4648 section 4), not {show(text)}")
    return data


class _Duplicated(dict[str, Json]):
    """A JSON object with a duplicate member name; `_refuse_duplicates` searches for this class."""

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.duplicate = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _plain_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object. Raises ValueError for duplicate member names."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError
    return result


def _plain_number(text: str) -> float:
    """Parse a number. Raises ValueError for NaN and for numbers outside the range of a double."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


PLAIN_BYTES: Final = 2**14  # bytes; documents up to this size are first parsed with the decoder `PLAIN`
# A decoder for faultless documents. It raises a bare ValueError for all others; `load_json` then finds the reason.
PLAIN = json.JSONDecoder(object_pairs_hook=_plain_object, parse_constant=_plain_number, parse_float=_plain_number)


def load_json(
    data: bytes | bytearray | memoryview, document: str = "zarr.json", *, nan_anywhere: bool = False
) -> dict[str, Json]:
    """Parse a metadata document strictly; it must be one JSON object.

    NaN and Infinity are accepted in `attributes`, including those of consolidated documents. With `nan_anywhere`, they
    are accepted everywhere.
    """
    plain = _load_plain(data)
    if plain is not None:
        return plain
    try:
        # core spec, Metadata: "Metadata documents are defined here using the JSON type system"
        text = _decode_text(data)
        value, has_duplicates, has_constants = _parse_text(text)
        # core spec, Array metadata: "This document must contain a single object"
        if not isinstance(value, dict):
            raise _fault(f"must be an object, not {show(value)}", kind="type")
        if has_duplicates:
            _refuse_duplicates(value)
        elif _may_be_too_deep(text):
            _check_depth(value)
        if has_constants and not nan_anywhere:
            _check_constants(value)
    except MetadataError as error:
        raise error.under("", document) from None
    return value


def _load_plain(data: bytes | bytearray | memoryview) -> dict[str, Json] | None:
    """Parse a small ASCII document. Returns None if the document is larger, not ASCII, or faulty."""
    if len(data) > PLAIN_BYTES:
        return None
    try:
        text = bytes(data).decode("ascii")
        value = PLAIN.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict and not _may_be_too_deep(text) else None


def _decode_text(data: bytes | bytearray | memoryview) -> str:
    """Decode UTF-8. Refuses a byte order mark (RFC 8259, section 8.1) and documents that are too large."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise _fault(f"must have at most {MAX_DOCUMENT_BYTES} bytes, not {len(data)}", kind="limit")
    try:
        text = bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _fault(f"is not UTF-8: {error.reason} at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise _fault("must not begin with a byte order mark")
    return text


def _parse_text(text: str) -> tuple[Json, bool, bool]:
    """Parse JSON text.

    Returns the value, whether an object has a duplicate member name, and whether there is a NaN or Infinity.
    """
    has_duplicates = has_constants = False

    def constant(name: str) -> float:
        nonlocal has_constants
        has_constants = True
        return _CONSTANTS[name]

    def pairs_to_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        nonlocal has_duplicates
        result = dict(pairs)
        if len(result) == len(pairs):
            return result
        has_duplicates = True
        return _Duplicated(pairs)

    try:
        value = json.loads(text, object_pairs_hook=pairs_to_object, parse_constant=constant, parse_float=_parse_float)
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise _fault(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except MetadataError:
        raise
    except ValueError as error:  # an integer with too many digits
        raise _fault(f"has a number that cannot be read: {error}", kind="limit") from None
    return value, has_duplicates, has_constants


def _check_constants(document: dict[str, Json]) -> None:
    """Refuse NaN and Infinity outside attributes; Python's parser accepts them everywhere."""
    for names, text in non_finite(document):
        path = names
        while len(path) > 3 and path[:2] == ("consolidated_metadata", "metadata"):
            path = path[3:]  # the path within a consolidated document
        if path[0] != "attributes":
            raise _fault(f'{text} is not JSON; write it as text: "{text}"', pointer_of(names))


def non_finite(root: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path (member names) of each NaN or Infinity, and its text."""
    stack: list[tuple[Json, tuple[str, ...]]] = [(root, ())]
    while stack:
        value, names = stack.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield names, json.dumps(value)
        items: list[tuple[Any, Json]] = []
        if isinstance(value, dict):
            items = [*value.items()]
        elif isinstance(value, (list, tuple)):
            items = [*enumerate(value)]
        stack.extend((item, (*names, str(name))) for name, item in reversed(items))


def pointer_of(names: Sequence[str]) -> str:
    """Return the JSON pointer of the member to which these names lead."""
    return "".join(f"/{escape(name)}" for name in names)


def _parse_float(text: str) -> float:
    """Parse a number with a fraction or an exponent, which must not round to infinity."""
    value = float(text)
    if math.isinf(value):
        raise _fault(f"the number {text[:40]} exceeds the range of a double")
    return value


def _may_be_too_deep(text: str) -> bool:
    """Whether the text has enough brackets to exceed the depth limit."""
    return text.count("[") + text.count("{") > MAX_DOCUMENT_DEPTH


def _refuse_duplicates(root: Json) -> None:
    """Raise the error for a duplicate member name, which the parser cannot locate."""
    stack = [(root, "")]
    while stack:
        value, pointer = stack.pop()
        if isinstance(value, _Duplicated):
            name = value.duplicate
            raise _fault(f"member names must be unique, but {show(name)} occurs twice", f"{pointer}/{escape(name)}")
        items: Any = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        stack.extend((item, f"{pointer}/{escape(str(key))}") for key, item in items)


def _check_depth(root: dict[str, Json]) -> None:
    """Refuse values that are nested too deeply."""
    level: list[Any] = [root]  # all objects and arrays at one depth
    for _ in range(MAX_DOCUMENT_DEPTH - 1):
        values = itertools.chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [value for value in values if isinstance(value, (dict, list))]
        if not level:
            return
    if any(level):
        raise _too_deep()


def _too_deep() -> MetadataError:
    """Return an error about a document that is nested too deeply."""
    return _fault(f"must be nested at most {MAX_DOCUMENT_DEPTH} levels deep", kind="limit")


def _fault(message: str, pointer: str = "", kind: FaultKind = "json") -> MetadataError:
    """Return an error about a document; `load_json` adds the name of the document."""
    return MetadataError(message, pointer=pointer, kind=kind)


def dump_json(document: Mapping[str, Json], indent: int | None = 2, *, allow_nan: bool = False) -> bytes:
    """Serialise a document. Raises ArgumentError for values that JSON cannot represent.

    With `allow_nan`, NaN and Infinity are written as literals, which are not JSON.
    """
    try:
        return json.dumps(document, indent=indent, allow_nan=allow_nan).encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error)
        # other errors may report a circular reference, which `non_finite` would follow forever
        if "JSON compliant" in reason:
            for names, text in non_finite(document):
                reason = f'{pointer_of(names)} must not be {text}, which is not JSON; write it as text: "{text}"'
                break
        raise ArgumentError(f"a value cannot be written as JSON: {reason}") from None

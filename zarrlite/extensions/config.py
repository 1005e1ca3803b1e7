"""One JSON object at a time: strict loading, typed getters, and a JSON pointer on every error.

Rules
- JSON is strict UTF-8 without BOM, without NaN and Infinity, without duplicate member names, of bounded size and depth.
- `true` is not an integer and `4.0` is not an integer.
- A `Config` knows which members were asked for; `finish` refuses the others.

What the members mean is known elsewhere: nothing here knows an extension.
"""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from zarrlite.errors import ArgumentError, FaultKind, MetadataError, MetadataWarning

Json = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]

MAX_DOCUMENT_BYTES: Final = 64 * 2**20
MAX_DOCUMENT_DEPTH: Final = 128
MAX_LENGTH: Final = 2**63 - 1  # of a dimension, and of anything counted in bytes
_REQUIRED: Final = object()


class Faults:
    """The faults of several parts of a document, so that one pass finds all of them."""

    def __init__(self) -> None:
        self.found: list[MetadataError] = []

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Note a fault and go on with the next part."""
        try:
            yield
        except MetadataError as error:
            self.found.extend(error.problems)

    def raise_any(self) -> None:
        """Raise the first fault, carrying all of them."""
        if self.found:
            first = self.found[0]
            raise type(first)(
                first.message,
                pointer=first.pointer,
                kind=first.kind,
                document=first.document,
                problems=tuple(self.found),
            )


class Context:
    """What holds for one document while it is parsed: its name, the mode, the runtime options."""

    def __init__(
        self,
        *,
        document: str = "zarr.json",
        strict: bool = True,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.document = document
        self.strict = strict
        self.options = _checked_options(options or {})

    def warn(self, message: str, pointer: str) -> None:
        """Report something that was repaired or tolerated."""
        warnings.warn(MetadataWarning(message, pointer), stacklevel=2)

    def runtime_options(self, pointer: str) -> Mapping[str, Any]:
        """The options addressed to the extension at this pointer; each can be taken once."""
        return self.options.pop(pointer, {})

    def refuse_unused_options(self) -> None:
        """A pointer in `options` that met no extension is a mistake of the caller."""
        if self.options:
            raise ArgumentError(
                f"options: no extension stands at {', '.join(map(repr, self.options))} in {self.document}"
            )


def _checked_options(options: Any) -> dict[str, Mapping[str, Any]]:
    """Runtime options as a mapping from JSON pointers to mappings."""
    if not isinstance(options, Mapping) or not all(isinstance(value, Mapping) for value in options.values()):
        raise ArgumentError("options are given as {JSON pointer: {option: value}}")
    return dict(options)


class Config:
    """Typed getters over one JSON object that stands at `pointer`."""

    def __init__(self, data: Mapping[str, Json], pointer: str, context: Context, name: str = "") -> None:
        self.data = data
        self.pointer = pointer
        self.context = context
        self.name = name  # of the extension that this configures, as written
        self.taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def at(self, key: str | int) -> str:
        """The pointer of a member."""
        return f"{self.pointer}/{escape(str(key))}"

    def error(self, message: str, key: str | None = None, kind: FaultKind = "value") -> MetadataError:
        """A fault of one member, or of the whole object."""
        pointer = self.pointer if key is None else self.at(key)
        return MetadataError(message, pointer=pointer, kind=kind, document=self.context.document)

    def raw(self, key: str, default: Json = _REQUIRED) -> Json:
        """Any JSON value."""
        self.taken.add(key)
        value = self.data.get(key, default)
        if value is _REQUIRED:
            raise self.error("is required and missing", key, "missing")
        return value

    def _typed(self, key: str, default: Json, fits: Callable[[Json], bool], wanted: str) -> Json:
        value = self.raw(key, default)
        if value is default and key not in self.data:
            return value
        if not fits(value):
            raise self.error(f"must be {wanted}, not {show(value)}", key, "type")
        return value

    def integer(self, key: str, low: int = 0, high: int = MAX_LENGTH, default: Json = _REQUIRED) -> int:
        value: int = self._typed(key, default, is_integer, "an integer")
        if key in self.data and not low <= value <= high:
            raise self.error(f"must be an integer from {low} to {high}, not {show(value)}", key, "value")
        return value

    def boolean(self, key: str, default: Json = _REQUIRED) -> bool:
        value: bool = self._typed(key, default, lambda v: isinstance(v, bool), "true or false")
        return value

    def string(self, key: str, choices: Sequence[str] = (), default: Json = _REQUIRED) -> str:
        value: str = self._typed(key, default, lambda v: isinstance(v, str), "a string")
        if choices and key in self.data and value not in choices:
            wanted = " or ".join(map(show, choices))
            raise self.error(f"must be {wanted}, not {show(value)}", key, "value")
        return value

    def list(self, key: str, default: Json = _REQUIRED) -> list[Json]:
        value: list[Json] = self._typed(key, default, lambda v: isinstance(v, list), "an array")
        return value

    def integers(self, key: str, low: int = 0, high: int = MAX_LENGTH) -> tuple[int, ...]:
        """An array of integers, each within bounds."""
        values = self.list(key)
        items = Config({str(i): value for i, value in enumerate(values)}, self.at(key), self.context)
        for i in items.data:
            items.integer(i, low, high)
        return tuple(values)

    def object(self, key: str, default: Json = _REQUIRED) -> Config:
        """A nested object, with getters of its own."""
        value = self._typed(key, default, lambda v: isinstance(v, dict), "an object")
        return Config(value, self.at(key), self.context)

    def objects(self, key: str) -> Sequence[Config]:
        """An array of objects, each with getters of its own."""
        values = self.list(key)
        items = Config({str(i): value for i, value in enumerate(values)}, self.at(key), self.context)
        return [items.object(i) for i in items.data]

    def base64(self, key: str, default: Json = _REQUIRED) -> bytes:
        """Bytes written as RFC 4648 section 4, strictly."""
        text = self.string(key, default=default)
        if key not in self.data:
            return default  # type: ignore[no-any-return]
        try:
            return decode_base64(text)
        except ValueError as error:
            raise self.error(str(error), key, "value") from None

    def finish(self) -> None:
        """Refuse the members that nobody asked for."""
        for key in self.data:
            if key not in self.taken:
                known = ", ".join(sorted(self.taken)) or "none"
                raise self.error(f"is not a member known here (known: {known})", key, "unknown-member")


def is_integer(value: Json) -> bool:
    """An integer as JSON has it: `true` is none, `4.0` is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def escape(key: str) -> str:
    """One reference token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def show(value: Json) -> str:
    """A JSON value for a message, cut short."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = f"a value of type {type(value).__name__}"  # not JSON, or an integer of too many digits
    return text if len(text) <= 60 else text[:57] + "..."


def decode_base64(text: str) -> bytes:
    """RFC 4648 section 4: no white space, no url-safe alphabet, correct padding, no stray bits."""
    import base64

    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        data = None
    if data is None or base64.b64encode(data).decode() != text:
        raise ValueError(f"must be base64 (RFC 4648 section 4), not {show(text)}")
    return data


class _Duplicated(dict[str, Json]):
    """An object in which a name stood twice: marked, so that its place can be found."""

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _plain_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError
    return result


def _plain_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


PLAIN_BYTES: Final = 2**14
# what most documents are: a decoder that is made once, and is content with what has no fault at all
PLAIN = json.JSONDecoder(object_pairs_hook=_plain_object, parse_constant=_plain_number, parse_float=_plain_number)


def load_json(data: bytes | bytearray | memoryview, document: str = "zarr.json") -> dict[str, Json]:
    """Parse a metadata document strictly; the result is one JSON object."""
    duplicated = False

    def refuse(message: str, pointer: str = "", kind: FaultKind = "json") -> NoReturn:
        raise MetadataError(message, pointer=pointer, kind=kind, document=document)

    def pairs_to_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        nonlocal duplicated
        result = dict(pairs)
        if len(result) == len(pairs):
            return result
        duplicated = True
        return _Duplicated(pairs)

    def constant(name: str) -> NoReturn:
        refuse(f'{name} is not JSON (a fill value is written as a string: "{name}")')

    def number(text: str) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            refuse(f"the number {text[:40]} is beyond double precision")
        return value

    if len(data) <= PLAIN_BYTES:
        try:
            text = bytes(data).decode("ascii")
            plain = PLAIN.decode(text)
            if type(plain) is dict and text.count("[") + text.count("{") <= MAX_DOCUMENT_DEPTH:
                return plain
        except (ValueError, RecursionError):
            pass  # below is said what is wrong, if anything is
    if len(data) > MAX_DOCUMENT_BYTES:
        refuse(f"the document has {len(data)} bytes; at most {MAX_DOCUMENT_BYTES} are read", kind="limit")
    try:
        text = bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(f"is not UTF-8: {error.reason} at byte {error.start}")
    if text.startswith("\ufeff"):
        refuse("begins with a byte order mark; JSON has none")
    try:
        value = json.loads(text, object_pairs_hook=pairs_to_object, parse_constant=constant, parse_float=number)
    except RecursionError:
        refuse(f"is nested more than {MAX_DOCUMENT_DEPTH} deep", kind="limit")
    except json.JSONDecodeError as error:
        refuse(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except MetadataError:
        raise
    except ValueError as error:  # an integer of too many digits
        refuse(f"is not JSON that can be read: {error}", kind="limit")
    if not isinstance(value, dict):
        refuse(f"must be an object, not {show(value)}", kind="type")
    if duplicated or text.count("[") + text.count("{") > MAX_DOCUMENT_DEPTH:
        _inspect(value, refuse)
    return value


def _inspect(root: Json, refuse: Callable[..., NoReturn]) -> None:
    """Find what the parser could only mark: duplicate names and too much depth."""
    stack = [(root, "", 1)]
    while stack:
        value, pointer, depth = stack.pop()
        if depth > MAX_DOCUMENT_DEPTH:
            refuse(f"is nested more than {MAX_DOCUMENT_DEPTH} deep", kind="limit")
        if isinstance(value, _Duplicated):
            refuse(f"the member {show(value.twice)} stands twice", f"{pointer}/{escape(value.twice)}")
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        stack.extend((item, f"{pointer}/{escape(str(key))}", depth + 1) for key, item in items)


def dump_json(document: Mapping[str, Json]) -> bytes:
    """Serialise a document; what is not JSON is refused."""
    try:
        return json.dumps(document, indent=2, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"cannot be written as JSON: {error}") from None

"""The `template` chunk key encoding: coordinates inserted into a text such as `z{0:04}/{-1}_{1}.png`.

Rules
- An expression is `{0}` (a coordinate), `{-1}` (a coordinate counted from the end) or `{*}` (all other coordinates,
  joined by `separator`), optionally with a width: `{0:04}` means at least four digits, padded with zeros.
- The member that contains the text is named `template` in the proposal's table, but `format` in its examples and its
  schema. Either name is read, or both if the texts agree; `template` is always written.
- The proposal does not forbid templates that give two chunks the same key, but this library refuses them: the text
  between two coordinates must contain a character that is not a digit. Braces are allowed in expressions only, since
  they cannot be escaped.
- The template and the separator come from a document and are not trusted: text that could make a key point outside of
  the array is refused.

In comments, "proposal template" is zarr-extensions pull request 69, commit 378d6e5 (2026-07-24),
chunk-key-encodings/template/README.md. The encoding is experimental: a later version of the proposal may differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

from zarrlite.chunk_key_encodings.base import MAX_DIGITS, ChunkKeyEncoding
from zarrlite.errors import FaultKind, MetadataError
from zarrlite.extensions.config import Config, show
from zarrlite.extensions.registry import register
from zarrlite.names import DOCUMENT, RESERVED_PREFIX, key_text_fault
from zarrlite.selections.selection import Shape

MAX_TEXT: Final = 1024  # characters; longer templates and separators are refused, since every key would contain them
MAX_WIDTH: Final = 255  # digits; larger widths are refused, since every key would be padded to that width
_SPELLINGS: Final = ("template", "format")
# proposal template, Template string syntax: "Template expressions match the regular expression"
_EXPRESSION: Final = re.compile(r"\{(\*|-?[0-9]+)(?::0([0-9]+))?\}")


@register
@dataclass(frozen=True)
class TemplateKeys(ChunkKeyEncoding):
    """Keys generated from a template. Experimental: the encoding is a proposal."""

    # proposal template, Object: Template Chunk Key Encoding: 'literal string "template"'; its schema says "generic"
    name = "template"
    proposal = "zarr-extensions pull request 69, commit 378d6e5"
    template: str
    separator: str | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        spelling, *others = [spelling for spelling in _SPELLINGS if spelling in config] or ["template"]
        template = config.string(spelling)
        if others and config.string(others[0]) != template:
            raise config.error("must not differ from template; use template only", others[0], "conflict")
        separator = config.string("separator", default=None)
        for key, text in ((spelling, template), ("separator", separator or "")):
            if len(text) > MAX_TEXT:
                raise config.error(f"must have at most {MAX_TEXT} characters, not {len(text)}", key, "limit")
        _check_template(template, config, spelling)
        if "*" in [index for index, _ in _expressions(template)]:
            _check_separator(separator, config)
        return cls(template, separator)

    def check(self, ndim: int) -> None:
        self._bound(ndim)

    def encode(self, coords: Shape) -> str:
        return self.bound(len(coords))(coords)

    def bound(self, ndim: int) -> Callable[[Shape], str]:
        pattern, order, _ = self._bound(ndim)
        return lambda coords: pattern % tuple([coords[dim] for dim in order])

    def decode(self, key: str, ndim: int) -> Shape | None:
        try:
            pattern, order, matching = self._bound(ndim)
        except MetadataError:
            return None
        match = matching.fullmatch(key)
        if match is None or any(len(digits.lstrip("0")) > MAX_DIGITS for digits in match.groups()):
            return None
        numbers = tuple(map(int, match.groups()))
        if pattern % numbers != key:  # padded to a different width
            return None
        coords = dict(zip(order, numbers, strict=True))
        return tuple([coords[dim] for dim in range(ndim)])

    def _bound(self, ndim: int) -> _Bound:
        return _bind(self.template, self.separator or "", ndim)


class _Bound(NamedTuple):
    """A template that has been prepared for a given number of dimensions."""

    pattern: str  # a format string for the operator %, with one placeholder for each coordinate
    order: Shape  # the dimensions, in the order of their coordinates in the key
    matching: re.Pattern[str]  # matches keys; has one group of digits for each coordinate


@lru_cache(maxsize=128)  # cached because a listing decodes many keys
def _bind(template: str, separator: str, ndim: int) -> _Bound:
    """Assign dimensions to the expressions of a template. Raises MetadataError if they do not match."""
    expressions = _expressions(template)
    named = [_dimension(index, ndim) for index, _ in expressions if index != "*"]
    # proposal template, Validation: "Two indices, positive or negative, resolve to the same value"
    if len(set(named)) != len(named):
        dim = next(dim for dim in named if named.count(dim) > 1)
        raise _misfit(f"must have one expression for each dimension, not several for dimension {dim}")
    # proposal template, Template string syntax: "not included explicitly by another expression"
    rest = [dim for dim in range(ndim) if dim not in named]
    has_rest = len(named) < len(expressions)
    # proposal template, Validation: "does not equal the number of template expressions"
    if rest and not has_rest:
        raise _misfit(f"must have an expression for each of {ndim} dimensions, but has none for dimension {rest[0]}")
    # proposal template, Validation: "The catch-all expression would be populated by 0 coordinate values"
    if has_rest and not rest:
        raise _misfit(f"must not have {{*}} for an array of {ndim} dimensions: no dimension is left for it")
    texts = _texts(template)
    pattern, matching, order = texts[0].replace("%", "%%"), re.escape(texts[0]), []
    for (index, width), text in zip(expressions, texts[1:], strict=True):
        dims = rest if index == "*" else [_dimension(index, ndim)]
        pattern += separator.replace("%", "%%").join([f"%0{width}d" if width else "%d"] * len(dims))
        matching += re.escape(separator).join(["([0-9]+)"] * len(dims))
        order += dims
        pattern += text.replace("%", "%%")
        matching += re.escape(text)
    return _Bound(pattern, tuple(order), re.compile(matching))


def _expressions(template: str) -> list[tuple[str, int]]:
    """Return the index and the width of each expression."""
    return [(index, int(width or "0")) for index, width in _EXPRESSION.findall(template)]


def _texts(template: str) -> list[str]:
    """Return the texts before, between and after the expressions."""
    return _EXPRESSION.split(template)[:: _EXPRESSION.groups + 1]


def _dimension(index: str, ndim: int) -> int:
    """Return the dimension to which an index refers. Raises MetadataError if the array has no such dimension."""
    # proposal template, Template string syntax: "positive_index = len(chunk_coordinate) + negative_index"
    dim = int(index) + (ndim if index.startswith("-") else 0)
    # proposal template, Validation: "A positive index is after the end of the coordinate", or a negative one before it
    if not 0 <= dim < ndim:
        raise _misfit(f"must not have {{{index}}} for an array of {ndim} dimensions")
    return dim


def _misfit(message: str) -> MetadataError:
    """Return the error for a template whose expressions do not match the dimensions of an array."""
    # proposal template, Validation: "Providing an incongruent chunk coordinate and template string MUST result in"
    return MetadataError(message, pointer="/configuration/template", kind="conflict")


def _check_template(template: str, config: Config, key: str) -> None:
    """Refuse a template that could make a key point outside of the array, or give two chunks the same key."""

    def refuse(rule: str, kind: FaultKind = "value") -> MetadataError:
        return config.error(f"{show(template)} {rule}", key, kind)

    if any(len(digits) > MAX_DIGITS for match in _EXPRESSION.findall(template) for digits in match):
        raise refuse(f"must not have numbers of more than {MAX_DIGITS} digits", "limit")
    expressions = _expressions(template)
    texts = _texts(template)
    # proposal template, Template string syntax: "MUST contain at least one braced template expression"
    if not expressions:
        raise refuse("must contain an expression such as {0} or {*}")
    if any("{" in text or "}" in text for text in texts):
        raise refuse("must not have braces except in expressions such as {0}, {-1}, {*} and {0:04}")
    # proposal template, Template string syntax: "No more than one * term may be present"
    if [index for index, _ in expressions].count("*") > 1:
        raise refuse("must not have {*} twice")
    if any(index.startswith("-") and not int(index) for index, _ in expressions):
        raise refuse("must not have {-0}: negative indices begin with {-1}, the last dimension")
    if any(width > MAX_WIDTH for _, width in expressions):
        raise refuse(f"must not have widths above {MAX_WIDTH}", "limit")
    # proposal template, Template string syntax: 'MUST NOT begin with /, but MAY contain it elsewhere'
    # proposal template, Template string syntax: "MUST NOT contain the substrings"
    fault = _text_fault(*texts) or key_text_fault("0".join(texts))
    if fault is None and template.startswith(RESERVED_PREFIX):
        fault = f"must not start with {RESERVED_PREFIX!r}, a reserved prefix"
    if fault:
        raise refuse(fault)
    if any(_is_digits(text) for text in texts[1:-1]):
        raise refuse("must have text other than digits between two expressions; otherwise two chunks could share a key")


def _check_separator(separator: str | None, config: Config) -> None:
    """Refuse a separator that could make a key point outside of the array, or give two chunks the same key."""
    # proposal template, Template string syntax: "the configuration object MUST include the separator field"
    if separator is None:
        raise config.error("is required with {*}", "separator", "missing")
    fault = _text_fault(separator) or key_text_fault(f"0{separator}0")
    if fault is None and _is_digits(separator):
        fault = "must have a character that is not a digit; otherwise two chunks could share a key"
    if fault:
        raise config.error(f"{show(separator)} {fault}", "separator")


def _text_fault(*texts: str) -> str | None:
    """Return the rule of the proposal that text outside of expressions breaks. Returns None if no rule is broken."""
    for text in texts:
        # proposal template, Template string syntax: "MUST NOT contain the substring zarr.json"
        if ".." in text or DOCUMENT in text:
            return f"must not contain '..' or {DOCUMENT!r}"
    return None


def _is_digits(text: str) -> bool:
    """Whether a text is empty or contains only digits."""
    return not text.strip("0123456789")

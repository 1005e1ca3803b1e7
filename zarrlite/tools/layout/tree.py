"""A tree of byte ranges and their meaning, computed lazily.

Rules
- The ranges inside a range tile it: each begins where the previous one ends, and together they cover it.
- Other interpretations of the same bytes are in `views`, such as the decoded form of a frame, or a chunk that shares
  bytes with another one.
- A fault is recorded in the range where it was found, not in the ranges that enclose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from zarrlite.errors import ChecksumError, DataError, ShardError, TruncatedError, ZarrliteError
from zarrlite.extensions.config import Json

Role = Literal[
    "document",  # zarr.json
    "part",  # one of several objects that together store a chunk
    "chunk",  # a chunk of the array, or an inner chunk of a shard
    "shard",
    "index",
    "entry",  # one entry of an index
    "padding",
    "header",  # bytes that precede the data of a chunk and describe it
    "checksum",
    "compressed",  # the output of a codec, if it cannot be divided into smaller ranges
    "elements",
    "unused",  # space that no index entry refers to
    "unknown",  # bytes that cannot be interpreted
    "more",  # several ranges that are not shown one by one
]
Kind = Literal["checksum", "index", "size", "data", "part", "outside", "unknown", "unsupported", "unreadable", "limit"]
Ranges = Callable[[], Iterable["Range"]]


class Fault(NamedTuple):
    """A defect in a range of bytes."""

    kind: Kind
    message: str

    @classmethod
    def of(cls, error: Exception) -> Fault:
        """Return the fault that an error reports."""
        if isinstance(error, MemoryError):
            return cls("unreadable", "needs more memory than is available")
        kind = next((kind for known, kind in _KINDS if isinstance(error, known)), _KINDS[-1][1])
        return cls(kind, error.message if isinstance(error, ZarrliteError) else str(error))


_KINDS: list[tuple[type[Exception], Kind]] = [
    (ChecksumError, "checksum"),
    (ShardError, "index"),
    (TruncatedError, "size"),
    (DataError, "data"),
    (OSError, "unreadable"),
    (ZarrliteError, "unsupported"),
]


def _none() -> Iterable[Range]:
    return ()


@dataclass(frozen=True)
class Range:
    """The bytes from `start` to `stop` of an object, and their meaning."""

    start: int
    stop: int
    what: str
    role: Role
    owner: str = ""  # the codec or the storage transformer that wrote the bytes
    detail: dict[str, Json] = field(default_factory=dict)
    fault: Fault | None = None
    children: Ranges = field(default=_none, repr=False, compare=False)  # the ranges inside, which tile this one
    views: Ranges = field(default=_none, repr=False, compare=False)  # other interpretations of the same bytes
    # the children that have faults, if these can be found without computing all children
    faulty: Ranges | None = field(default=None, repr=False, compare=False)

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Range]]:
        """Yield the range and all ranges inside it, each with the names of its enclosing ranges."""
        yield above, self
        for ranges in (self.children, self.views):
            for child in ranges():
                yield from child.walk((*above, self.what))

    def faults(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Range]]:
        """Yield the range and all ranges inside it that have faults, each with the names of its enclosing ranges."""
        if self.fault is not None:
            yield above, self
        for ranges in (self.faulty or self.children, self.views):
            for child in ranges():
                yield from child.faults((*above, self.what))

    def clip(self, low: int, high: int) -> Range:
        """Return the part of the range between two offsets. Its `detail` records how many bytes are cut off."""
        if low <= self.start and self.stop <= high:
            return self
        children, start, stop = self.children, max(self.start, low), min(self.stop, high)
        beyond = {"before": low - self.start, "behind": self.stop - high}
        return replace(
            self,
            start=start,
            stop=max(start, stop),
            detail={**self.detail, **{where: n for where, n in beyond.items() if n > 0}},
            children=lambda: (c.clip(low, high) for c in children() if c.start < high and c.stop > low),
        )

    def solid(self, most: int | None = None) -> Range:
        """Compute the tree now, with at most `most` chunks and entries of each shard, and fewer in nested shards."""
        inner = most and max(4, most // 4)
        children = tuple(child.solid(inner) for child in _fold(self.children(), most))
        views = tuple(view.solid(inner) for view in self.views())
        return replace(self, children=lambda: children, views=lambda: views)

    def to_json(self) -> dict[str, Json]:
        """Return the range and everything inside it as JSON."""
        content: dict[str, Json] = {"start": self.start, "stop": self.stop, "what": self.what, "role": self.role}
        if self.owner:
            content["owner"] = self.owner
        if self.detail:
            content["detail"] = self.detail
        if self.fault:
            content["fault"] = self.fault._asdict()
        for name, ranges in (("children", self.children), ("views", self.views)):
            inside = [child.to_json() for child in ranges()]
            if inside:
                content[name] = inside
        return content


def guarded(ranges: Iterable[Range], start: int, stop: int) -> Iterator[Range]:
    """Yield the ranges. If computing one raises an error, yield a range that covers the rest and records the fault."""
    position = start
    try:
        for r in ranges:
            position = r.stop
            yield r
    except (ZarrliteError, OSError, MemoryError) as error:
        yield Range(position, stop, "unreadable bytes", "unknown", fault=Fault.of(error))


def _fold(ranges: Iterable[Range], most: int | None) -> Iterator[Range]:
    """Yield the first `most` ranges, and only count later chunks, parts, entries and gaps that have no faults."""
    shown = count = 0
    first = last = Range(0, 0, "", "more")
    for r in ranges:
        if most is None or r.fault or shown < most or r.role not in ("chunk", "part", "entry", "unused"):
            if count:
                yield _summary(first, last, count)
            shown, count = shown + 1, 0
            yield r
        else:
            first, last, count = first if count else r, r, count + 1
    if count:
        yield _summary(first, last, count)


def _summary(first: Range, last: Range, count: int) -> Range:
    if count == 1:
        return first
    detail: dict[str, Json] = {"count": count, "first": first.what, "last": last.what}
    return Range(first.start, last.stop, f"{count} more", "more", first.owner, detail)


def tiles(r: Range) -> bool:
    """Whether the ranges inside a range tile it, at every depth."""
    children = list(r.children())
    if children:
        position = r.start
        for child in children:
            if child.start != position or child.stop < position or not tiles(child):
                return False
            position = child.stop
        if position != r.stop:
            return False
    return all(tiles(view) for view in r.views())

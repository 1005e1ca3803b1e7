"""Ranges of bytes and what they are: a tree that is worked out as far as somebody looks.

Rules
- The ranges inside a range tile it: each begins where the one before ends, and nothing is left over.
- What lies elsewhere stands beside that, in `views`: the decoded form of a frame, a chunk on bytes of another one.
- A fault stands at the range that shows it. Ranges above it know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from zarrlite.errors import ChecksumError, DataError, ShardError, TruncatedError, ZarrliteError
from zarrlite.extensions.config import Json

Role = Literal[
    "document",  # zarr.json
    "part",  # of a chunk in several objects
    "chunk",  # of the array, of a shard
    "shard",
    "index",
    "entry",  # of an index
    "padding",
    "header",  # of a block of N5
    "checksum",
    "compressed",  # whatever a codec has made that has no parts
    "elements",
    "unused",  # space that nothing points at
    "unknown",  # what cannot be said
    "more",  # several that are not shown one by one
]
Kind = Literal["checksum", "index", "size", "data", "part", "outside", "unknown", "unsupported", "unreadable"]
Ranges = Callable[[], Iterable["Range"]]


class Fault(NamedTuple):
    """What is wrong with a range."""

    kind: Kind
    message: str

    @classmethod
    def of(cls, error: Exception) -> Fault:
        """The same as an error says."""
        if isinstance(error, MemoryError):
            return cls("unreadable", "needs more memory than there is")
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
    """The bytes from `start` to `stop` of an object, and what they are."""

    start: int
    stop: int
    what: str
    role: Role
    owner: str = ""  # the codec or the storage transformer that put it there
    detail: dict[str, Json] = field(default_factory=dict)
    fault: Fault | None = None
    children: Ranges = field(default=_none, repr=False, compare=False)  # what lies inside
    views: Ranges = field(default=_none, repr=False, compare=False)  # what these bytes are besides

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Range]]:
        """The range and everything inside, each with what stands above it; nothing is kept."""
        yield above, self
        for ranges in (self.children, self.views):
            for child in ranges():
                yield from child.walk((*above, self.what))

    def clip(self, low: int, high: int) -> Range:
        """What of it lies between two positions."""
        if low <= self.start and self.stop <= high:
            return self
        children, start, stop = self.children, max(self.start, low), min(self.stop, high)
        beyond = {"before": low - self.start, "behind": self.stop - high}  # bytes of it that lie elsewhere
        return replace(
            self,
            start=start,
            stop=max(start, stop),
            detail={**self.detail, **{where: n for where, n in beyond.items() if n > 0}},
            children=lambda: (c.clip(low, high) for c in children() if c.start < high and c.stop > low),
        )

    def solid(self, most: int | None = None) -> Range:
        """Worked out now, with at most so many chunks and entries of each shard; fewer of a shard in a shard."""
        inner = most and max(4, most // 4)
        children = tuple(child.solid(inner) for child in _fold(self.children(), most))
        views = tuple(view.solid(inner) for view in self.views())
        return replace(self, children=lambda: children, views=lambda: views)

    def to_json(self) -> dict[str, Json]:
        """As JSON, with everything inside."""
        found: dict[str, Json] = {"start": self.start, "stop": self.stop, "what": self.what, "role": self.role}
        if self.owner:
            found["owner"] = self.owner
        if self.detail:
            found["detail"] = self.detail
        if self.fault:
            found["fault"] = self.fault._asdict()
        for name, ranges in (("children", self.children), ("views", self.views)):
            inside = [child.to_json() for child in ranges()]
            if inside:
                found[name] = inside
        return found


def guarded(ranges: Iterable[Range], start: int, stop: int) -> Iterator[Range]:
    """The same ranges; if they end in an error, what is left says so."""
    at = start
    try:
        for r in ranges:
            at = r.stop
            yield r
    except (ZarrliteError, OSError, MemoryError) as error:
        yield Range(at, stop, "what cannot be read", "unknown", fault=Fault.of(error))


def _fold(ranges: Iterable[Range], most: int | None) -> Iterator[Range]:
    """The same ranges; of chunks, entries and gaps the first ones and those at fault, the others together."""
    shown = count = 0
    first = last = Range(0, 0, "", "more")
    for r in ranges:
        if most is None or r.fault or shown < most or r.role not in ("chunk", "part", "entry", "unused"):
            if count:
                yield _together(first, last, count)
            shown, count = shown + 1, 0
            yield r
        else:
            first, last, count = first if count else r, r, count + 1
    if count:
        yield _together(first, last, count)


def _together(first: Range, last: Range, count: int) -> Range:
    if count == 1:
        return first
    detail: dict[str, Json] = {"count": count, "first": first.what, "last": last.what}
    return Range(first.start, last.stop, f"{count} more", "more", first.owner, detail)


def tiles(r: Range) -> bool:
    """Whether the ranges inside tile it, and those inside of them."""
    children = list(r.children())
    if children:
        at = r.start
        for child in children:
            if child.start != at or child.stop < at or not tiles(child):
                return False
            at = child.stop
        if at != r.stop:
            return False
    return all(tiles(view) for view in r.views())

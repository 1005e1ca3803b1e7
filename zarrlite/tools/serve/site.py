"""The responses of a read-only server: values of a store for programs, pages for people.

Rules
- The path of a URL is a percent-encoded key. A path that ends with `/` is a node or a prefix: browsers, which accept
  HTML, get a page; other programs get a list of links to everything directly below it.
- Nothing can be written: only GET, HEAD and OPTIONS are allowed.
- A request for one byte range is honoured (206, or 416 if the range is outside of the value). The response to a request
  for several ranges is the whole value, as RFC 9110 section 14.2 allows.
- An ETag is derived from the version that the store reports; small values without a version are hashed. A response
  contains bytes of one version only: if the value is replaced meanwhile, the response ends early, and clients notice
  that it is too short.
- Keys are checked twice, here and by the store: no path leads out of the root.
- Pages escape every name and every attribute. Their Content-Security-Policy allows one script, identified by its hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, quote, unquote

from zarrlite.adapters.plain import PlainStore
from zarrlite.buffers.ranges import ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import KeyRefusedError, NodeNotFoundError, SelectionError, ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.opening import open as open_node
from zarrlite.stores.base import Store, check_key, check_prefix
from zarrlite.tools.serve import pages
from zarrlite.tools.serve.preview import View, picture

MAX_HASHED: Final = 2**20  # bytes; values up to this size have an ETag even if the store does not report versions
BLOCK: Final = 4 * 2**20  # bytes; larger values are read and sent in blocks of this size
METHODS: Final = "GET, HEAD, OPTIONS"
_RANGE = re.compile(r"bytes=\s*([0-9]*)-([0-9]*)\s*\Z")
_MAX_DIGITS: Final = 18  # digits of an offset; a longer offset is beyond the end of every value
_COMMON: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Length, Content-Range, ETag, Accept-Ranges, Zarrlite-Range",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": "Range, If-Match, If-None-Match, If-Range, Cache-Control",
    "Access-Control-Max-Age": "86400",
    "Content-Length": "0",
}


class Response(NamedTuple):
    """A response: the status, the headers, and the body, which is empty for HEAD."""

    status: int
    headers: Mapping[str, str]
    body: bytes | Blocks = b""


class Blocks:
    """Part of a value, which is read block by block while it is sent."""

    def __init__(self, source: Source, start: int, stop: int) -> None:
        self._source, self._start, self._stop = source, start, stop

    def __iter__(self) -> Iterator[bytes]:
        for start in range(self._start, self._stop, BLOCK):
            found = self._source.read_one(ByteRange(start, min(start + BLOCK, self._stop)))
            if not found:
                return
            yield bytes(found)

    def close(self) -> None:
        """Close the source of the value."""
        self._source.close()


class Site:
    """Answers the requests for one hierarchy.

    Parameters
    ----------
    node : Array or Group
        The node that is served at the root path.
    plain_view : bool
        Whether to serve the plain view, for readers that do not support the extensions.
    """

    def __init__(self, node: Array | Group, *, plain_view: bool = False) -> None:
        self.store: Store = PlainStore(node, consolidate=True) if plain_view else node._base
        self.plain_view = plain_view

    def respond(self, method: str, target: str, headers: Mapping[str, str], origin: str = "") -> Response:
        """Answer a request.

        Parameters
        ----------
        method : str
            The HTTP method.
        target : str
            The path below the root, percent-encoded, and the query if there is one.
        headers : mapping
            The headers of the request, with names in lower case.
        origin : str
            The URL of the root without a trailing slash, for the examples on pages.

        Returns
        -------
        Response
            The response. An error of the library becomes a response, too.
        """
        if method == "OPTIONS":
            return Response(204, {**_COMMON, **_PREFLIGHT})
        if method not in ("GET", "HEAD"):
            return _text(405, "this server is read-only", {"Allow": METHODS})
        path, _, query = target.partition("?")
        name = unquote(path.removeprefix("/"), errors="surrogateescape")
        try:
            if not name or name.endswith("/"):
                answer = self._directory(name, query, headers, origin)
            else:
                answer = self._value(name, headers, is_head=method == "HEAD")
        except KeyRefusedError as error:
            answer = _text(404, f"not found: {error.message}")
        except SelectionError as error:
            answer = _text(400, str(error))
        except ZarrliteError as error:
            answer = _text(500, str(error))
        if method == "HEAD":
            if isinstance(answer.body, Blocks):
                answer.body.close()
            return answer._replace(body=b"")
        return answer

    # Values

    def _value(self, key: str, headers: Mapping[str, str], *, is_head: bool) -> Response:
        source = self.store.source(check_key(key))
        answer: Response | None = None
        try:
            size = source.size()
            answer = self._missing(key) if size is None else self._found(key, source, size, headers, is_head)
            return answer
        finally:
            if answer is None or not isinstance(answer.body, Blocks):
                source.close()

    def _found(self, key: str, source: Source, size: int, headers: Mapping[str, str], is_head: bool) -> Response:
        common = {**_COMMON, "Accept-Ranges": "bytes", "Content-Type": _content_type(key), "Cache-Control": "no-cache"}
        tag = self._tag(source, size)
        if tag is not None:
            common["ETag"] = tag
        if not _matches(headers.get("if-match", "*"), tag):
            return Response(412, {**common, "Content-Length": "0"})
        if "if-none-match" in headers and _matches(headers["if-none-match"].replace("W/", ""), tag):
            return Response(304, common)
        wanted = None if is_head else _requested(headers.get("range", ""), size)
        if wanted is None or headers.get("if-range", tag) != tag:
            return Response(200, {**common, "Content-Length": str(size)}, Blocks(source, 0, size))
        start, stop = wanted
        if start >= size:
            return Response(416, {**common, "Content-Range": f"bytes */{size}", "Content-Length": "0"})
        part = {"Content-Length": str(stop - start), "Content-Range": f"bytes {start}-{stop - 1}/{size}"}
        return Response(206, {**common, **part}, Blocks(source, start, stop))

    def _tag(self, source: Source, size: int) -> str | None:
        """Return the ETag of a value. Returns None if the value has no known version and is too large to be hashed."""
        version: Any = source.version()
        if version is None and size <= MAX_HASHED:
            version = bytes(source.read_one() or b"")
        if version is None:
            return None
        seed = version if isinstance(version, bytes) else f"{self.plain_view} {version}".encode()
        return f'"{hashlib.sha256(seed).hexdigest()[:32]}"'

    def _missing(self, key: str) -> Response:
        if any(self.store.list_dir(f"{key}/")):
            location = quote(key.rpartition("/")[2], safe="", errors="surrogateescape")
            return Response(302, {**_COMMON, "Location": f"./{location}/", "Content-Length": "0"})
        return _text(404, f"not found: {key}")

    # Directories

    def _directory(self, prefix: str, query: str, headers: Mapping[str, str], origin: str) -> Response:
        path = check_prefix(prefix).rstrip("/")
        options = parse_qs(query, keep_blank_values=True, max_num_fields=300)
        node: Array | Group | None = None
        problem = ""
        try:
            node = open_node(self.store, mode="r", path=path)
        except NodeNotFoundError:
            pass
        except ZarrliteError as error:
            problem = str(error)
        if isinstance(node, Array) and "picture" in options:
            content, low, high = picture(node, View.parse(node, options))
            return _answer("image/png", content, {"Zarrlite-Range": f"{low}/{high}"})
        if node is not None and "list" not in options and "text/html" in headers.get("accept", ""):
            page = pages.node_page(node, path, f"{origin}/{quote(path)}".rstrip("/"), options, self.plain_view)
            return _html(page)
        keys, prefixes = self.store.list_dir(prefix)
        if node is None and not keys and not prefixes:
            return _text(404, f"not found: {prefix}")
        return _html(pages.listing(prefix, sorted([*prefixes, *keys]), problem))


def _matches(header: str, tag: str | None) -> bool:
    """Whether a header with a list of ETags contains this one, or is `*`."""
    return header.strip() == "*" or any(text.strip() == tag for text in header.split(","))


def _requested(header: str, size: int) -> tuple[int, int] | None:
    """Return the bounds of the bytes that a Range header requests. The start may be beyond the end of the value.

    Returns None if the whole value is to be sent.
    """
    found = _RANGE.match(header)
    if found is None or found.groups() == ("", ""):
        return None
    first, last = (_offset(text) if text else None for text in found.groups())
    if first is None:
        return (max(0, size - (last or 0)), size) if last else (size, size)
    if last is None:
        return first, size
    return None if last < first else (first, min(last + 1, size))


def _offset(digits: str) -> int:
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS


def _content_type(key: str) -> str:
    return "application/json" if key.endswith(".json") else "application/octet-stream"


def _answer(kind: str, body: bytes, headers: Mapping[str, str]) -> Response:
    return Response(200, {**_COMMON, "Content-Type": kind, "Content-Length": str(len(body)), **headers}, body)


def _text(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = message.encode(errors="backslashreplace") + b"\n"
    return _answer("text/plain; charset=utf-8", body, headers or {})._replace(status=status)


def _html(page: str) -> Response:
    headers = {"Content-Security-Policy": pages.POLICY, "Vary": "Accept", "Cache-Control": "no-cache"}
    return _answer("text/html; charset=utf-8", page.encode(errors="backslashreplace"), headers)

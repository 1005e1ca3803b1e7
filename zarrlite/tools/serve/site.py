"""The answers of a read-only server: values of a store for programs, pages for people.

Rules
- A path is a key, percent-encoded. A path that ends with `/` is a node or a prefix, and answered by a page.
- Every answer is complete before it is sent, and only reads: GET, HEAD and OPTIONS are the methods.
- One byte range is honoured (206, or 416 if it is outside of the value). Several ranges get the whole value, as
  RFC 9110 section 14.2 allows.
- Keys are checked twice, here and by the store: no path leads out of the root.
- Pages escape every name and every attribute, and forbid scripts by their Content-Security-Policy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote, unquote

from zarrlite.adapters.plain import plain
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import KeyRefusedError, ZarrliteError
from zarrlite.names import DOCUMENT
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.opening import open as open_node
from zarrlite.stores.base import Store, check_key, check_prefix
from zarrlite.tools.serve.pages import node_page, prefix_page
from zarrlite.tools.serve.preview import preview

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
MAX_HASHED: Final = 2**20  # bytes; values up to this size have an ETag
_CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Length, Content-Range, ETag, Accept-Ranges",
}
_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Range, If-None-Match",
    "Access-Control-Max-Age": "86400",
}
_PAGE: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'",
    "X-Content-Type-Options": "nosniff",
}


class Response(NamedTuple):
    """An answer: the status, the headers, and the body, which is empty for HEAD."""

    status: int
    headers: Mapping[str, str]
    body: Buffer = b""


class Site:
    """The answers for one hierarchy.

    Parameters
    ----------
    node : Array or Group
        The node that becomes the root.
    plain_view : bool
        Whether values are those of the plain view, for readers without the extensions.
    """

    def __init__(self, node: Array | Group, *, plain_view: bool = False) -> None:
        self.store: Store = plain(node) if plain_view else node._base
        self.plain_view = plain_view

    def respond(self, method: str, target: str, headers: Mapping[str, str], origin: str = "") -> Response:
        """Answer a request.

        Parameters
        ----------
        method : str
            The method.
        target : str
            The path, percent-encoded, perhaps with a query.
        headers : mapping
            The headers of the request, with names in lower case.
        origin : str
            The scheme and host of the server, for the examples on pages.

        Returns
        -------
        Response
            The answer; errors are answers too.
        """
        if method == "OPTIONS":
            return Response(204, {**_CORS, **_PREFLIGHT})
        if method not in ("GET", "HEAD"):
            return _text(405, "this server is read-only", {"Allow": "GET, HEAD, OPTIONS"})
        path, _, query = target.partition("?")
        name = unquote(path.lstrip("/"), errors="surrogateescape")
        try:
            if not name or name.endswith("/"):
                answer = self._page(name, query, origin)
            else:
                answer = self._value(name, headers)
        except KeyRefusedError as error:
            answer = _text(404, f"not found: {error.message}")
        except ZarrliteError as error:
            answer = _text(500, str(error))
        return answer._replace(body=b"") if method == "HEAD" else answer

    # Values

    def _value(self, key: str, headers: Mapping[str, str]) -> Response:
        check_key(key)
        size = self.store.size(key)
        if size is None:
            return self._missing(key)
        common = {**_CORS, "Accept-Ranges": "bytes", "Content-Type": _content_type(key)}
        whole = self.store.get(key) if size <= MAX_HASHED else None
        if whole is not None:
            size = len(whole)  # the value may have been replaced meanwhile
            common["ETag"] = f'"{hashlib.sha256(whole).hexdigest()[:32]}"'
            if common["ETag"] in headers.get("if-none-match", ""):
                return Response(304, common)
        wanted = _requested(headers.get("range", ""), size)
        if wanted is None:
            body = whole if whole is not None else self.store.get(key)
            return self._missing(key) if body is None else Response(200, {**common, **_length(body)}, body)
        if wanted.start >= size:
            return Response(416, {**common, "Content-Range": f"bytes */{size}", "Content-Length": "0"})
        body = wanted.of(whole) if whole is not None else self.store.get(key, wanted)
        if body is None or not len(body):
            return self._missing(key)
        last = wanted.start + len(body) - 1
        return Response(206, {**common, **_length(body), "Content-Range": f"bytes {wanted.start}-{last}/{size}"}, body)

    def _missing(self, key: str) -> Response:
        keys, prefixes = self.store.list_dir(f"{key}/")
        if keys or prefixes:
            return Response(301, {**_CORS, "Location": f"/{quote(key)}/", "Content-Length": "0"})
        return _text(404, f"not found: {key}")

    # Pages

    def _page(self, prefix: str, query: str, origin: str) -> Response:
        path = check_prefix(prefix).rstrip("/")
        try:
            node = (
                open_node(self.store, mode="r", path=path) if self.store.size(prefix + DOCUMENT) is not None else None
            )
        except ZarrliteError as error:
            return _html(200, prefix_page(path, *self.store.list_dir(prefix), problem=str(error)))
        if node is None:
            listing = self.store.list_dir(prefix)
            return _html(200, prefix_page(path, *listing)) if any(listing) else _text(404, f"not found: {path}/")
        options = parse_qs(query, keep_blank_values=True)
        if isinstance(node, Array) and "preview" in options:
            return Response(200, {**_CORS, "Content-Type": "image/png"}, preview(node, options["preview"][0]))
        return _html(200, node_page(node, path, f"{origin}/{quote(path)}".rstrip("/"), self.plain_view))


def _requested(header: str, size: int) -> ByteRange | None:
    """Return the range that a header requests. Returns None for a whole value."""
    found = _RANGE.match(header)
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:  # the last bytes; none of them cannot be satisfied
        return ByteRange(max(0, size - int(last)), size) if int(last) else ByteRange(size, size)
    if not last:
        return ByteRange(int(first), max(size, int(first)))
    return None if int(last) < int(first) else ByteRange(int(first), min(int(last) + 1, max(size, int(first))))


def _content_type(key: str) -> str:
    return "application/json" if key.endswith(".json") else "application/octet-stream"


def _length(body: Buffer) -> dict[str, str]:
    return {"Content-Length": str(len(body))}


def _text(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = message.encode(errors="backslashreplace") + b"\n"
    return Response(
        status, {**_CORS, "Content-Type": "text/plain; charset=utf-8", **_length(body), **(headers or {})}, body
    )


def _html(status: int, page: str) -> Response:
    body = page.encode(errors="backslashreplace")
    return Response(status, {**_PAGE, "Content-Type": "text/html; charset=utf-8", **_length(body)}, body)

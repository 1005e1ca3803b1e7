"""A small HTTP server on the loopback interface, which serves a dict and counts the bytes that it sends."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from email.utils import formatdate
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote


class WebServer:
    """A server whose URLs are the keys of `values`. Its attributes may be changed while it runs."""

    def __init__(self, values: MutableMapping[str, bytes]) -> None:
        self.values = values
        self.url = ""
        self.requests: list[tuple[str, str, str | None]] = []  # method, key, range
        self.bytes_sent = 0
        self.honours_ranges = True
        self.has_versions = True  # whether responses have the headers ETag and Last-Modified
        self.lists = True
        self.status: dict[str, int] = {}  # key -> status of all responses to requests for it

    def reset(self) -> None:
        self.requests.clear()
        self.bytes_sent = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: WebServer

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        web, key = self.web, unquote(self.path).strip("/")
        wanted = self.headers.get("Range")
        web.requests.append((self.command, key, wanted))
        status, headers, body = 200, dict[str, Any](), web.values.get(key)
        if key in web.status:
            status, body = web.status[key], b"no"
        elif body is None:
            page = self._page(key) if web.lists else None
            status, body = (404, b"missing") if page is None else (200, page)
            headers["Content-Type"] = "text/html"
        else:
            if web.has_versions:
                headers = {"ETag": f'"{sha256(body).hexdigest()[:16]}"', "Last-Modified": formatdate(0, usegmt=True)}
            if web.honours_ranges:
                headers["Accept-Ranges"] = "bytes"
                if wanted is not None:
                    status, body = self._part(wanted, body, headers)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)
            web.bytes_sent += len(body)

    def _part(self, wanted: str, body: bytes, headers: dict[str, Any]) -> tuple[int, bytes]:
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
        assert match is not None
        first, last = match.groups()
        if first:
            start, stop = int(first), min(int(last) + 1 if last else len(body), len(body))
        else:
            start, stop = max(0, len(body) - int(last)), len(body)
        if start >= stop:
            return 416, b""
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(body)}"
        return 206, body[start:stop]

    def _page(self, folder: str) -> bytes | None:
        prefix = f"{folder}/" if folder else ""
        names = {key[len(prefix) :] for key in self.web.values if key.startswith(prefix)}
        links = {name.split("/", 1)[0] + "/" * ("/" in name) for name in names}
        if folder and not links:
            return None
        lines = "".join(f'<a href="{quote(link)}">{link}</a>\n' for link in sorted(links))
        return f'<html><a href="?C=N">sort</a>\n<a href="../">up</a>\n{lines}</html>'.encode()

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serving(values: MutableMapping[str, bytes]) -> Iterator[WebServer]:
    web = WebServer(values)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"web": web}))
    server.daemon_threads = True
    web.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""Servers for a `Site`: one of the standard library, and a WSGI application for others.

Rules
- The server of the standard library speaks HTTP/1.1 with one thread for each connection, and listens on loopback unless
  it is told otherwise.
- Answers are the same, whichever server sends them.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import quote_from_bytes

from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.tools.serve.site import Site

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def application(node: Array | Group, *, plain: bool = False) -> Application:
    """Return a WSGI application that serves a node.

    Parameters
    ----------
    node : Array or Group
        The node that becomes the root.
    plain : bool, optional
        Whether to serve the plain view, for readers without the extensions.

    Returns
    -------
    callable
        The application, for any WSGI server.

    Examples
    --------
    >>> import zarrlite
    >>> app = application(zarrlite.create_group("memory://"))
    >>> answer = app({"REQUEST_METHOD": "GET", "PATH_INFO": "/zarr.json"}, lambda status, headers: print(status))
    200 OK
    """
    site = Site(node, plain_view=plain)

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        path = environ.get("PATH_INFO", "/").encode("latin-1")
        target = _quoted(path, environ.get("QUERY_STRING", ""))
        origin = f"{environ.get('wsgi.url_scheme', 'http')}://{environ.get('HTTP_HOST', '')}"
        answer = site.respond(environ["REQUEST_METHOD"], target, headers, origin)
        start_response(f"{answer.status} {http.client.responses[answer.status]}", list(answer.headers.items()))
        return [bytes(answer.body)]

    return serve


def _quoted(path: bytes, query: str) -> str:
    """Return the path of a WSGI environment, which is decoded already, as a target."""
    return quote_from_bytes(path) + (f"?{query}" if query else "")


class Server(ThreadingHTTPServer):
    """The server of the standard library for a site."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], site: Site) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.site = site
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Bind the address without looking up its name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that clients close."""


class Handler(BaseHTTPRequestHandler):
    """Sends the answers of a site."""

    protocol_version = "HTTP/1.1"
    server_version = "zarrlite"
    sys_version = ""
    timeout = 60
    disable_nagle_algorithm = True
    server: Server

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        origin = f"http://{headers.get('host', '')}"
        answer = self.server.site.respond(self.command, self.path, headers, origin)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers and answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if len(answer.body):
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_DELETE = do_PATCH = _answer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing: a viewer makes thousands of requests."""


def run(node: Array | Group, host: str = "127.0.0.1", port: int = 0, *, plain: bool = False) -> Server:
    """Start a server and return it; its `serve_forever` answers requests until `shutdown`.

    Parameters
    ----------
    node : Array or Group
        The node that becomes the root.
    host : str, optional
        The address to listen on; by default only this machine can reach it.
    port : int, optional
        The port; 0 chooses a free one.
    plain : bool, optional
        Whether to serve the plain view, for readers without the extensions.

    Returns
    -------
    Server
        The server; `server_address` has its host and port.
    """
    return Server((host, port), Site(node, plain_view=plain))

"""Servers for a `Site`: one based on the standard library, and a WSGI application for other servers.

Rules
- The server based on the standard library speaks HTTP/1.1 with one thread for each connection, and listens on loopback
  unless `host` is another address.
- Responses are the same, whichever server sends them. The application works below any prefix (`SCRIPT_NAME`).
- If a response cannot be completed, the connection is closed before the announced length is reached, so that clients
  report an error.
"""

from __future__ import annotations

import http.client
import logging
import re
import socket
import sys
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final, Self
from urllib.parse import quote_from_bytes, urlsplit

from zarrlite.errors import DependencyError
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.tools.serve.site import Blocks, Response, Site

THREADS: Final = 16  # waitress threads that answer requests; further requests wait
MAX_CONNECTIONS: Final = 1000  # connections that waitress accepts; further clients wait until one is closed
_HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def application(node: Array | Group, *, plain: bool = False) -> Application:
    """Return a WSGI application that serves a node.

    Parameters
    ----------
    node : Array or Group
        The node that is served at the root path.
    plain : bool, optional
        Whether to serve the plain view, for readers that do not support the extensions.

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
        # a WSGI server decodes the percent-encoded path, and passes its bytes as Latin-1 text
        path, prefix = (quote_from_bytes(environ.get(k, "").encode("latin-1")) for k in ("PATH_INFO", "SCRIPT_NAME"))
        query = environ.get("QUERY_STRING", "")
        host = environ.get("HTTP_HOST") or f"{environ.get('SERVER_NAME', '')}:{environ.get('SERVER_PORT', '')}"
        origin = _origin(environ.get("wsgi.url_scheme", "http"), host) + prefix
        if not path and prefix:  # redirect, since links on the page are relative to a path that ends with a slash
            start_response("302 Found", [("Location", f"{prefix}/"), ("Content-Length", "0")])
            return []
        answer = site.respond(environ["REQUEST_METHOD"], path + (f"?{query}" if query else ""), headers, origin)
        start_response(f"{answer.status} {http.client.responses[answer.status]}", list(answer.headers.items()))
        return answer.body if isinstance(answer.body, Blocks) else [answer.body]

    return serve


def _origin(scheme: str, host: str) -> str:
    """Return the URL of the host that a client's Host header names, or of localhost if the header is malformed."""
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else f"{scheme}://localhost"


class Server(ThreadingHTTPServer):
    """A server for a site, based on the standard library."""

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
        """Ignore connections that clients close. Other errors are reported as usual."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Sends the responses of a site."""

    protocol_version = "HTTP/1.1"
    server_version = "zarrlite"
    sys_version = ""
    timeout = 60
    disable_nagle_algorithm = True
    server: Server

    def __getattr__(self, name: str) -> Any:
        """Return the handler of an HTTP method. The site responds to every method, to most of them with an error."""
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if "content-length" in headers or "transfer-encoding" in headers:
            self.close_connection = True  # the body is not read, and must not be parsed as the next request
        target = self.path
        if not target.startswith("/"):  # a whole URL, as sent to proxies
            parts = urlsplit(target)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        origin = _origin("http", headers.get("host", ""))
        answer = self.server.site.respond(self.command, target, headers, origin)
        try:
            self._send(answer)
        finally:
            if isinstance(answer.body, Blocks):
                answer.body.close()

    def _send(self, answer: Response) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        rest = int(answer.headers.get("Content-Length", 0))
        for block in answer.body if isinstance(answer.body, Blocks) else [answer.body]:
            self.wfile.write(block)
            rest -= len(block)
        if rest and self.command != "HEAD":
            self.close_connection = True  # the value was replaced, so the rest that the client waits for will not come

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing, since a viewer makes thousands of requests."""


def run(node: Array | Group, host: str = "127.0.0.1", port: int = 0, *, plain: bool = False) -> Server:
    """Return a server that listens on an address. Its `serve_forever` answers requests until `shutdown` is called.

    Parameters
    ----------
    node : Array or Group
        The node that is served at the root path.
    host : str, optional
        The address to listen on; by default only this machine can reach it.
    port : int, optional
        The port; 0 chooses a free one.
    plain : bool, optional
        Whether to serve the plain view, for readers that do not support the extensions.

    Returns
    -------
    Server
        The server; its `server_address` contains the host and the port.
    """
    return Server((host, port), Site(node, plain_view=plain))


class WaitressServer:
    """A waitress server that runs `application`, with the interface of `Server`."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.server_address = (server.effective_host, server.effective_port)
        self.serve_forever = server.run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()


def run_waitress(node: Array | Group, host: str = "127.0.0.1", port: int = 0, *, plain: bool = False) -> WaitressServer:
    """Return a waitress server, which serves many clients with a fixed number of threads.

    The parameters are those of `run`. Raises a DependencyError if waitress is not installed.
    """
    try:
        from waitress.server import create_server  # type: ignore[import-untyped]
    except ImportError as error:
        raise DependencyError("this server needs waitress: pip install 'zarrlite[serve]'") from error
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # otherwise, waitress logs every delayed request
    app = application(node, plain=plain)
    options = {"threads": THREADS, "connection_limit": MAX_CONNECTIONS, "ident": "zarrlite"}
    return WaitressServer(create_server(app, host=host, port=port, **options))

"""A small S3 server that counts requests, and misbehaves in the ways that a test chooses.

It checks no signatures, and keeps one bucket in memory. Without faults, it behaves correctly. Each of the faults also
occurs with real servers, proxies and networks.
"""

from __future__ import annotations

import hashlib
import random
import re
import threading
import time
import urllib.parse
from collections.abc import Callable
from datetime import timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from zarrlite.stores import object as object_module
from zarrlite.stores.object import ObjectStore

BUCKET = "bucket"


class BadServer(ThreadingHTTPServer):
    """The server. `faults` contains the names of the active faults; `log` contains one line for each request.

    - "range ignored": the response to a request for a range contains the whole value
    - "condition ignored": If-Match and If-None-Match have no effect
    - "If-Match ignored", "If-None-Match ignored": the header has no effect in PUT requests
    - "cut": in half of all responses, the connection breaks in the middle of the body
    - "unavailable": half of all requests get a response with the status 503
    - "slow": one in twelve responses is sent 0.6 seconds late
    - "lost": half of all changes are made, but their responses are not sent
    - "late": every other change to a value gets no response, and is made only when the next change to it arrives
    - "weak ETag", "no ETag": ETags are weak or missing; "no time": all modification times are equal
    - "replaced": after half of all GET requests, the value is replaced with `replace(key, value)`
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.values: dict[str, tuple[bytes, str, float]] = {}  # key -> value, ETag, modification time
        self.late: dict[str, bytes] = {}  # changes that have not been made yet
        self.faults: set[str] = set()
        self.log: list[str] = []
        self.replace: Callable[[str, bytes], bytes] = lambda key, value: value
        self.guard = threading.Lock()
        self.random = random.Random(0)
        self.under_way = self.most = 0
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client has closed the connection

    def __enter__(self) -> BadServer:
        object_module._honours_conditions.clear()  # an earlier server on the same port may have left an entry
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self.server_close()

    def behave(self, *faults: str) -> None:
        """Switch to these faults, and forget all values and requests."""
        with self.guard:
            self.faults = set(faults)
            self.values.clear()
            self.log.clear()
            self.random = random.Random(0)

    def put(self, key: str, value: bytes) -> str:
        tag = f'"{hashlib.md5(value).hexdigest()}"'
        self.values[key] = (value, tag, time.time())
        return tag

    def chance(self, fraction: float) -> bool:
        """Decide at random whether this request goes wrong. `fraction` is the probability."""
        with self.guard:
            return self.random.random() < fraction

    def requests(self) -> list[str]:
        """Return the requests since the last call."""
        with self.guard:
            log, self.log = self.log, []
            self.most = 0
            return log

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def store(self, *, timeout: float = 60, retries: int = 12, **options: Any) -> ObjectStore:
        """Return a store on this server that retries requests after very short waits."""
        from obstore.store import S3Store

        config: Any = {"endpoint": self.url, "skip_signature": True, "region": "us-east-1"}
        backoff = {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=4), "base": 2}
        retry: Any = {"max_retries": retries, "retry_timeout": timedelta(seconds=120), "backoff": backoff}
        client: Any = {"allow_http": True, "timeout": timedelta(seconds=timeout)}
        return ObjectStore(S3Store(BUCKET, config=config, client_options=client, retry_config=retry), **options)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BadServer

    def log_message(self, *args: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(6, 1, 1)  # sets TCP_NODELAY, because headers and body are sent separately

    def parse(self) -> tuple[str, dict[str, str]]:
        path, _, query = self.path.partition("?")
        key = urllib.parse.unquote(path).removeprefix(f"/{BUCKET}").strip("/")
        return key, dict(urllib.parse.parse_qsl(query, keep_blank_values=True))

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def note(self, key: str) -> None:
        """Log the request."""
        described = " ".join(
            [
                self.command,
                key,
                *(self.headers[name].replace("bytes=", "") for name in ("Range",) if name in self.headers),
                *(name for name in ("If-Match", "If-None-Match") if name in self.headers),
            ]
        )
        with self.server.guard:
            self.server.log.append(described)

    def spoiled(self) -> bool:
        """Delay or refuse the request if a fault requires this. Returns whether an error has been sent."""
        server = self.server
        if "slow" in server.faults and server.chance(1 / 12):
            time.sleep(0.6)
        if "unavailable" in server.faults and server.chance(1 / 2):
            self.error(503, "SlowDown")
            return True
        return False

    def do_GET(self) -> None:
        with self.server.guard:
            self.server.under_way += 1
            self.server.most = max(self.server.most, self.server.under_way)
        try:
            self._get()
        finally:
            with self.server.guard:
                self.server.under_way -= 1

    do_HEAD = do_GET

    def _get(self) -> None:
        key, query = self.parse()
        if not key:
            self.list(query)
            return
        server = self.server
        self.note(key)
        if self.spoiled():
            return
        if key not in server.values:
            self.error(404, "NoSuchKey")
            return
        value, tag, changed = server.values[key]
        if "condition ignored" not in server.faults and self.headers.get("If-Match", tag) != tag:
            self.error(412, "PreconditionFailed")
            return
        headers = {"ETag": tag, "Last-Modified": formatdate(changed, usegmt=True)}
        if "weak ETag" in server.faults:
            headers["ETag"] = "W/" + tag
        if "no ETag" in server.faults:
            del headers["ETag"]
        if "no time" in server.faults:
            headers["Last-Modified"] = formatdate(0, usegmt=True)
        status, body = 200, value
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted and "range ignored" not in server.faults:
            first, last = wanted.groups()
            start = int(first) if first else max(0, len(value) - int(last))
            stop = min(len(value), int(last) + 1) if first and last else len(value)
            if start >= stop:
                self.error(416, "InvalidRange")
                return
            status, body = 206, value[start:stop]
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(value)}"
        if "cut" in server.faults and self.command == "GET" and len(body) > 1 and server.chance(1 / 2):
            headers["Content-Length"] = str(len(body))
            self.answer(status, body[: len(body) // 2], headers)
            self.close_connection = True
            return
        if self.command == "HEAD":
            headers["Content-Length"] = str(len(body))
        self.answer(status, body, headers)
        if "replaced" in server.faults and self.command == "GET" and server.chance(1 / 2):
            server.put(key, server.replace(key, value))

    def list(self, query: dict[str, str]) -> None:
        self.note(f"?{query.get('prefix', '')}")
        prefix = query.get("prefix", "")
        found = sorted(key for key in self.server.values if key.startswith(prefix))
        folders: list[str] = []
        if "delimiter" in query:
            folders = sorted(
                {prefix + key[len(prefix) :].split("/")[0] + "/" for key in found if "/" in key[len(prefix) :]}
            )
            found = [key for key in found if "/" not in key[len(prefix) :]]
        items = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.server.values[key][0])}</Size>"
            f"<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>{self.server.values[key][1]}</ETag></Contents>"
            for key in found
        ) + "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in folders)
        self.answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>".encode())

    def do_PUT(self) -> None:
        key, _ = self.parse()
        value = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        self.note(key)
        if self.spoiled():
            return
        with server.guard:
            is_late = "late" in server.faults and key not in server.late
            if key in server.late:
                server.put(key, server.late.pop(key))
            if "condition ignored" not in server.faults:
                stored = server.values.get(key)
                is_refused = "If-None-Match ignored" not in server.faults and stored is not None
                if self.headers.get("If-None-Match") == "*" and is_refused:
                    self.error(412, "PreconditionFailed")
                    return
                is_refused = "If-Match ignored" not in server.faults and (
                    stored is None or self.headers.get("If-Match") != stored[1]
                )
                if "If-Match" in self.headers and is_refused:
                    self.error(412, "PreconditionFailed")
                    return
            if is_late:
                server.late[key] = value
                self.close_connection = True
                return
            tag = server.put(key, value)
        if "lost" in server.faults and server.chance(1 / 2):
            self.close_connection = True
            return
        self.answer(200, headers={"ETag": tag})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        keys = [urllib.parse.unquote(key) for key in re.findall("<Key>(.*?)</Key>", body)]
        self.note(f"?delete {len(keys)}")
        if self.spoiled():
            return
        for key in keys:
            self.server.values.pop(key, None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

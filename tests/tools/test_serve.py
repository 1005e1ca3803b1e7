"""The server: values by ranges for programs, pages for people, and nothing outside of the root."""

from __future__ import annotations

import http.client
import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from wsgiref.validate import validator

import numpy as np
import pytest
from PIL import Image

import zarrlite
from zarrlite.tools import serve

DATA = np.arange(6000, dtype="i4").reshape(60, 100)
PADDED = [{"name": "pad", "configuration": {"location": "start", "nbytes": 8}}]
CHUNK = "/x/y/c/0/0"
STORED = 8 + 10 * 20 * 4  # bytes of a chunk, with its padding


class Client:
    """A connection to a server."""

    def __init__(self, server: Any) -> None:
        self.address = server.server_address[:2]

    def __call__(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(*self.address)
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return found


@pytest.fixture
def hierarchy(tmp_path: Path) -> zarrlite.Group:
    (tmp_path / "secret").write_text("outside of the root")
    group = zarrlite.create_group(tmp_path / "root.zarr", attributes={"<b>": "<script>alert(1)</script>"})
    group.create_array("x/y", data=DATA, chunks=(10, 20), compressors=PADDED)
    return group


def running(group: zarrlite.Group, **options: Any) -> Iterator[Client]:
    server = serve.run(group, **options)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Client(server)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client(hierarchy: zarrlite.Group) -> Iterator[Client]:
    yield from running(hierarchy)


@pytest.fixture
def plain_client(hierarchy: zarrlite.Group) -> Iterator[Client]:
    yield from running(hierarchy, plain=True)


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [("bytes=0-3", 0, 4), ("bytes=5-", 5, None), ("bytes=-7", -7, None), ("bytes=800-9999", 800, None)],
)
def test_a_range_is_answered_with_its_bytes(client: Client, header: str, start: int, stop: int | None) -> None:
    _, _, whole = client(CHUNK)
    status, headers, body = client(CHUNK, Range=header)
    first = range(STORED)[start]
    assert (status, body) == (206, whole[start:stop])
    assert headers["Content-Range"] == f"bytes {first}-{first + len(body) - 1}/{STORED}"
    assert headers["Content-Length"] == str(len(body))


def test_a_range_outside_of_the_value_is_not_satisfiable(client: Client) -> None:
    for header in (f"bytes={STORED}-", "bytes=99999-100000", "bytes=-0"):
        status, headers, body = client(CHUNK, Range=header)
        assert (status, headers["Content-Range"], body) == (416, f"bytes */{STORED}", b"")


@pytest.mark.parametrize("header", ["bytes=0-1,4-5", "bytes=9-3", "items=0-1", "bytes=-", "nonsense"])
def test_other_range_headers_get_the_whole_value(client: Client, header: str) -> None:
    status, _, body = client(CHUNK, Range=header)
    assert (status, len(body)) == (200, STORED)


def test_head_has_the_headers_of_get_without_the_body(client: Client) -> None:
    status, headers, body = client(CHUNK, "HEAD")
    assert (status, headers["Content-Length"], headers["Accept-Ranges"], body) == (200, str(STORED), "bytes", b"")


def test_pages_of_other_origins_may_read(client: Client) -> None:
    assert client(CHUNK)[1]["Access-Control-Allow-Origin"] == "*"
    status, headers, _ = client(CHUNK, "OPTIONS")
    assert (status, headers["Access-Control-Allow-Headers"]) == (204, "Range, If-None-Match")


def test_an_unchanged_value_is_not_sent_again(client: Client, hierarchy: zarrlite.Group) -> None:
    tag = client(CHUNK)[1]["ETag"]
    assert client(CHUNK, If_None_Match=tag)[0] == 304
    hierarchy["x/y"][0, 0] = 99
    assert client(CHUNK, If_None_Match=tag)[0] == 200


def test_a_missing_value_is_not_found_and_nothing_is_written(client: Client) -> None:
    assert client("/x/y/c/9/9")[0] == 404
    assert client("/nothing/")[0] == 404
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        status, headers, _ = client(CHUNK, method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/secret", "/x/../../secret", "/..%2fsecret", "//etc/passwd", "/%00", "/x\\..\\secret"],
)
def test_no_path_leads_out_of_the_root(client: Client, path: str) -> None:
    status, _, body = client(path)
    assert status == 404
    assert b"outside" not in body


def test_pages_escape_what_comes_from_the_store(client: Client) -> None:
    status, headers, body = client("/")
    assert status == 200
    assert b"<script>" not in body
    assert b"&lt;script&gt;" in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_pages_link_members_and_show_how_to_read_them(client: Client) -> None:
    assert b'href="x/"' in client("/")[2]
    assert client("/x")[0] == 301
    page = client("/x/y/")[2].decode()
    for text in ("zarrlite.open(", "zarrita", "zarr3://", "?preview="):
        assert text in page


def test_the_preview_is_a_picture_of_the_array(client: Client) -> None:
    status, headers, body = client("/x/y/?preview=")
    assert (status, headers["Content-Type"]) == (200, "image/png")
    pixels = np.asarray(Image.open(io.BytesIO(body)))
    assert pixels.shape == DATA.shape
    assert (pixels[0, 0], pixels[-1, -1]) == (0, 255)


def test_a_preview_of_another_position_is_checked(client: Client) -> None:
    assert client("/x/y/?preview=1")[0] == 500
    assert client("/x/y/?preview=../..")[0] == 500


def test_the_plain_view_is_read_by_zarrlite_and_zarr_python(plain_client: Client) -> None:
    import zarr

    host, port = plain_client.address
    url = f"http://{host}:{port}"
    document = zarrlite.open(url, mode="r", path="x/y").metadata.to_json()
    assert [codec["name"] for codec in document["codecs"]] == ["bytes"]
    assert (zarrlite.open(url, mode="r", path="x/y")[3:17, 5:60] == DATA[3:17, 5:60]).all()
    store = zarr.storage.FsspecStore.from_url(url, read_only=True)
    assert (zarr.open_array(store, path="x/y", mode="r")[3:17, 5:60] == DATA[3:17, 5:60]).all()


def test_many_clients_are_answered_at_once(client: Client) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda i: client(CHUNK, Range=f"bytes={i}-{i + 3}"), range(400)))
    whole = client(CHUNK)[2]
    for i, (status, _, body) in enumerate(answers):
        assert (status, body) == (206, whole[i : i + 4])


def test_the_application_follows_wsgi(hierarchy: zarrlite.Group) -> None:
    application = validator(serve.application(hierarchy))
    found: list[str] = []
    environ = {
        "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": CHUNK, "QUERY_STRING": "", "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(), "wsgi.errors": io.StringIO(), "wsgi.multithread": True,
        "wsgi.multiprocess": False, "wsgi.run_once": False, "HTTP_RANGE": "bytes=0-3",
    }  # fmt: skip
    body = application(environ, lambda status, headers, *_: found.append(status))
    assert b"".join(body) == client_bytes(hierarchy)[:4]
    body.close()
    assert found == ["206 Partial Content"]


def client_bytes(group: zarrlite.Group) -> bytes:
    return bytes(group.store.get(CHUNK[1:]))

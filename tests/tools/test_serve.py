"""The server: byte ranges of values for programs, pages for people, and no access to anything outside of the root."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote
from wsgiref.validate import validator

import numpy as np
import pytest
from PIL import Image

import zarrlite
from zarrlite.stores import files
from zarrlite.tools import serve
from zarrlite.tools.serve import pages, site

DATA = np.arange(6000, dtype="i4").reshape(60, 100)
PADDED = [{"name": "pad", "configuration": {"location": "start", "nbytes": 8}}]
CHUNK = "/x/y/c/0/0"
PAGE = {"Accept": "text/html"}
LIMIT = 60  # seconds; a request that takes longer fails the test
STORED = 8 + 10 * 20 * 4  # bytes of a stored chunk with its padding


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
    for header in (f"bytes={STORED}-", "bytes=99999-100000", "bytes=-0", f"bytes={'9' * 5000}-"):
        status, headers, body = client(CHUNK, Range=header)
        assert (status, headers["Content-Range"], body) == (416, f"bytes */{STORED}", b"")


@pytest.mark.parametrize("header", ["bytes=0-1,4-5", "bytes=9-3", "items=0-1", "bytes=-", "nonsense"])
def test_unsupported_range_headers_get_the_whole_value(client: Client, header: str) -> None:
    status, _, body = client(CHUNK, Range=header)
    assert (status, len(body)) == (200, STORED)


def test_head_has_the_headers_of_get_without_the_body(client: Client) -> None:
    status, headers, body = client(CHUNK, "HEAD")
    assert (status, headers["Content-Length"], headers["Accept-Ranges"], body) == (200, str(STORED), "bytes", b"")


def test_pages_of_other_origins_may_read(client: Client) -> None:
    assert client(CHUNK)[1]["Access-Control-Allow-Origin"] == "*"
    status, headers, _ = client(CHUNK, "OPTIONS")
    assert status == 204
    assert headers["Access-Control-Allow-Headers"].startswith("Range, If-Match, If-None-Match, If-Range")


def test_an_unchanged_value_is_not_sent_again(client: Client, hierarchy: zarrlite.Group) -> None:
    tag = client(CHUNK)[1]["ETag"]
    assert client(CHUNK, If_None_Match=tag)[0] == 304
    hierarchy["x/y"][0, 0] = 99
    assert client(CHUNK, If_None_Match=tag)[0] == 200


def test_values_that_are_replaced_have_another_tag(client: Client, hierarchy: zarrlite.Group) -> None:
    tag = client(CHUNK, Range="bytes=0-0")[1]["ETag"]
    assert client(CHUNK, If_Match=tag)[0] == client(CHUNK, If_Match="*")[0] == 200
    assert client(CHUNK, If_Range=tag, Range="bytes=0-3")[0] == 206
    assert client(CHUNK, If_None_Match=f'"other", W/{tag}')[0] == client(CHUNK, If_None_Match="*")[0] == 304
    hierarchy["x/y"][0, 0] = 99
    assert client(CHUNK, If_Match=tag)[0] == 412
    status, _, body = client(CHUNK, If_Range=tag, Range="bytes=0-3")
    assert (status, len(body)) == (200, STORED)
    assert client(CHUNK, If_Range="Wed, 21 Oct 2015 07:28:00 GMT", Range="bytes=0-3")[0] == 200


def test_tags_of_files_do_not_need_their_content(hierarchy: zarrlite.Group, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    read_file = files.read
    monkeypatch.setattr(files, "read", lambda fd, start, stop: read.append(stop - start) or read_file(fd, start, stop))
    answer = serve.Site(hierarchy).respond("GET", CHUNK, {"range": "bytes=4-7"})
    assert (answer.status, len(b"".join(answer.body)), "ETag" in answer.headers) == (206, 4, True)
    assert read == [4]


def test_large_values_are_sent_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "BLOCK", 100)
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=DATA.shape, compressors=None)
    answer = serve.Site(array).respond("GET", "/c/0/0", {"range": "bytes=50-449"})
    assert [len(block) for block in answer.body] == [100] * 4
    for client in running(array):
        assert client("/c/0/0")[2] == DATA.tobytes()


def test_a_value_in_memory_has_a_tag() -> None:
    array = zarrlite.create_array("memory://", data=DATA, chunks=(10, 20))
    answer = serve.Site(array).respond("HEAD", "/c/0/0", {})
    assert answer.headers["ETag"].startswith('"')


def test_a_chunk_in_parts_has_a_tag_of_all_parts(tmp_path: Path) -> None:
    parts = [{"key_suffix": ".head", "size": 8}, {"key_suffix": ""}]
    transformers = [{"name": "concat-parts", "configuration": {"parts": parts}}]
    array = zarrlite.create_array(tmp_path, data=DATA, compressors=PADDED, storage_transformers=transformers)
    target = serve.Site(array, plain_view=True)
    tags = [target.respond("HEAD", "/c/0/0", {}).headers["ETag"] for _ in range(2)]
    assert tags[0] == tags[1]
    (tmp_path / "c/0/0.head").write_bytes(b"another!")
    assert target.respond("HEAD", "/c/0/0", {}).headers["ETag"] != tags[0]


def test_decoded_chunks_have_tags_of_their_elements(tmp_path: Path) -> None:
    array = zarrlite.create_array(
        tmp_path, data=DATA, chunks=(10, 20), compressors=[*PADDED, {"name": "crc32c"}, "zstd"]
    )
    target = serve.Site(array, plain_view=True)
    tag = target.respond("GET", "/c/0/0", {"range": "bytes=0-3"}).headers["ETag"]
    array[0, 0] = 7
    answer = target.respond("GET", "/c/0/0", {"range": "bytes=0-3", "if-none-match": tag})
    assert (answer.status, b"".join(answer.body)) == (206, (7).to_bytes(4, "little"))


def test_large_values_of_stores_without_versions_have_no_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "MAX_HASHED", 100)
    target = serve.Site(zarrlite.create_array("memory://", data=DATA, chunks=(60, 100), compressors=None))
    assert "ETag" not in target.respond("GET", "/c/0/0", {}).headers
    assert target.respond("GET", "/c/0/0", {"if-match": '"x"'}).status == 412
    assert target.respond("GET", "/c/0/0", {"if-none-match": '"x"'}).status == 200
    whole = target.respond("GET", "/c/0/0", {"range": "bytes=0-3", "if-range": '"x"'})
    assert (whole.status, whole.headers["Content-Length"]) == (200, str(DATA.nbytes))


def test_links_out_of_the_root_are_refused(client: Client, hierarchy: zarrlite.Group, tmp_path: Path) -> None:
    (tmp_path / "root.zarr/link").symlink_to(tmp_path)
    (tmp_path / "root.zarr/file").symlink_to(tmp_path / "secret")
    for path in ("/link/secret", "/link/", "/file"):
        for headers in ({}, PAGE):
            status, _, body = client(path, **headers)
            assert (status in (404, 500), b"outside of the root" in body) == (True, False)


def test_a_missing_value_is_not_found_and_nothing_is_written(client: Client) -> None:
    assert client("/x/y/c/9/9")[0] == 404
    assert client("/nothing/")[0] == 404
    for method in ("PUT", "POST", "DELETE", "PATCH", "PROPFIND", "TRACE"):
        status, headers, _ = client(CHUNK, method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_the_body_of_a_request_is_not_taken_for_a_request(client: Client) -> None:
    hidden = f"GET {CHUNK} HTTP/1.1\r\nHost: x\r\n\r\n"
    for line in (f"Content-Length: {len(hidden)}", "Transfer-Encoding: chunked"):
        with socket.create_connection(client.address) as connection:
            connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n{hidden}".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/secret", "/x/../../secret", "/..%2fsecret", "//etc/passwd", "/%00", "/x\\..\\secret"],
)
def test_no_path_leads_out_of_the_root(client: Client, path: str) -> None:
    status, _, body = client(path)
    assert status == 404
    assert b"outside" not in body


def test_browsers_get_pages_and_programs_get_listings(client: Client) -> None:
    status, headers, page = client("/x/y/", **PAGE)
    assert (status, headers["Vary"]) == (200, "Accept")
    for text in (b"zarrlite.open(", b"zarrita", b"zarr3://", b"tensorstore", b'class="preview"', b"<svg"):
        assert text in page
    assert re.findall(rb'href="(.*?)"', client("/x/y/")[2]) == [b"c/", b"zarr.json"]
    assert client("/x/y/?list", **PAGE)[2] == client("/x/y/")[2]
    assert re.findall(rb'href="(.*?)"', client("/x/y/c/", **PAGE)[2]) == [b"%d/" % i for i in range(6)]


def test_a_prefix_without_a_slash_leads_to_its_page(client: Client) -> None:
    status, headers, _ = client("/x")
    assert (status, headers["Location"]) == (302, "./x/")


def test_the_tree_links_all_nodes_and_names_refused_ones(client: Client, hierarchy: zarrlite.Group) -> None:
    hierarchy.store.set("bad/zarr.json", b"{}")
    page = client("/", **PAGE)[2].decode()
    assert re.findall(r'<a href="([^"]*/)">', page) == ["bad/", "x/", "x/y/"]
    assert "60 × 100 int32" in page
    assert "refused: bad/zarr.json#/node_type" in page
    assert b"bad/zarr.json#/node_type" in client("/bad/", **PAGE)[2]


def test_trees_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_NODES", 3)
    group = zarrlite.create_group(tmp_path)
    for i in range(5):
        group.create_group(f"g{i}")
    page = serve.Site(group).respond("GET", "/", {"accept": "text/html"}).body.decode()
    assert "Only the first 3 nodes are shown." in page
    assert 'href="g2/"' in page
    assert 'href="g3/"' not in page


HOSTILE = [
    '"><script>alert(1)</script>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "&lt;b&gt;",
    "a\nb",
    "\u202ex",
    "%2e%2e",
    "?picture",
    "#x",
]


class Markup(HTMLParser):
    """The tags, links and event handlers of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@pytest.mark.parametrize("plain", [False, True])
def test_names_of_hostile_stores_inject_nothing(tmp_path: Path, plain: bool) -> None:
    group = zarrlite.create_group(tmp_path / "h", attributes=dict.fromkeys(HOSTILE, HOSTILE[0]))
    for name in HOSTILE:
        folder = tmp_path / "h" / name.replace("/", "\u2215")
        folder.mkdir()
        document = {**json.loads((tmp_path / "h" / "zarr.json").read_text()), "attributes": {name: name}}
        (folder / "zarr.json").write_text(json.dumps(document))
        zarrlite.create_array(
            folder, name="x", data=DATA, dimension_names=[name, HOSTILE[0]], attributes={name: [name]}
        )
    target = serve.Site(group, plain_view=plain)
    for path in [
        "/",
        *(f"/{quote(name.replace('/', chr(0x2215)), safe='')}/{rest}" for name in HOSTILE for rest in ("", "x/")),
    ]:
        for headers in ({"accept": "text/html"}, {}):
            answer = target.respond("GET", path, headers, "http://x")
            assert answer.status == 200, (path, answer.body)
            markup = Markup(answer.body.decode())
            assert markup.tags.count("script") == ("accept" in headers)
            assert markup.handlers == []
            assert not [link for link in markup.links if re.match(r"(?!https?:)[a-z]+:|//", link, re.I)]
            assert answer.headers["Content-Security-Policy"] == pages.POLICY


def test_requests_inject_nothing_into_pages(client: Client) -> None:
    for answer in (
        client("/x/y/?rows=%3Cscript%3E&i0=%22%3E", **PAGE),
        client("/%3Cscript%3E/", **PAGE),
        client("/", **PAGE, Host='x"><script>'),
    ):
        is_page = answer[1]["Content-Type"].startswith("text/html")
        assert answer[2].count(b"<script>") == 1 if is_page else answer[1]["Content-Type"].startswith("text/plain")
        assert answer[1]["X-Content-Type-Options"] == "nosniff"


# Pictures


def pixels(node: zarrlite.Array, query: str = "") -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """Return the grey level of each pixel in a picture (0 if transparent), and the headers of the response."""
    answer = serve.Site(node).respond("GET", f"/?picture&{query}", {})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/png"), answer.body
    image = Image.open(io.BytesIO(answer.body))
    image.load()
    assert image.convert("RGBA").getpixel((0, 0))[3] == (255 if np.asarray(image)[0, 0] else 0)
    return np.asarray(image), dict(answer.headers)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
     "complex64", "complex128", "bfloat16", "float8_e4m3", "int4", "datetime64[s]", "timedelta64[ms]"],
)  # fmt: skip
def test_every_numeric_data_type_has_a_picture(dtype: str) -> None:
    array = zarrlite.create_array({}, shape=(2, 3), dtype=dtype, chunks=(2, 2))
    array[...] = np.array([[0, 1, 1], [1, 0, 1]]).astype(array.dtype)
    levels, headers = pixels(array)
    assert levels.tolist() == [[1, 255, 255], [255, 1, 255]]
    assert headers["Zarrlite-Range"].count("/") == 1


def test_missing_values_are_transparent() -> None:
    values = np.array([[np.nan, -1.5, np.inf], [2.5, -np.inf, np.nan]])
    levels, headers = pixels(zarrlite.create_array({}, data=values))
    assert levels.tolist() == [[0, 1, 0], [255, 0, 0]]
    assert headers["Zarrlite-Range"] == "-1.5/2.5"
    times = np.array([0, "NaT"], "M8[s]")
    assert pixels(zarrlite.create_array({}, data=times))[0].tolist() == [[1, 0]]
    assert pixels(zarrlite.create_array({}, data=np.full((2, 2), np.nan)))[0].tolist() == [[0, 0], [0, 0]]
    extreme = np.array([-1.7e308, 0, 1.7e308])
    assert pixels(zarrlite.create_array({}, data=extreme))[0].tolist() == [[1, 128, 255]]


def test_pictures_show_any_two_dimensions_and_any_window() -> None:
    values = np.arange(2 * 3 * 4 * 5, dtype="u1").reshape(2, 3, 4, 5)
    array = zarrlite.create_array({}, data=values, chunks=(1, 2, 2, 2))
    for query, expected in (
        ("", values[0, 0]),
        ("i0=1&i1=2", values[1, 2]),
        ("rows=0&columns=1&i2=3&i3=4", values[:, :, 3, 4]),
        ("rows=3&columns=1&i0=1", values[1, :, 0].T),
        ("y=1:3&x=2:5&i1=1", values[0, 1, 1:3, 2:5]),
    ):
        levels, headers = pixels(array, query)
        assert headers["Zarrlite-Range"] == f"{expected.min()}/{expected.max()}"
        assert np.array_equal(
            np.argsort(levels, axis=None, kind="stable"), np.argsort(expected, axis=None, kind="stable")
        )
    assert pixels(zarrlite.create_array({}, data=np.arange(9)), "x=2:8")[0].shape == (1, 6)


@pytest.mark.parametrize(
    "query",
    [
        "rows=9",
        "rows=0&columns=0",
        "i0=60",
        "y=5:3",
        "y=0:61",
        "x=-1:4",
        "i0=x",
        "columns=99999999999999999999999",
        "y=1",
    ],
)
def test_a_picture_outside_of_the_array_is_refused(client: Client, query: str) -> None:
    status, _, body = client(f"/x/y/?picture&{query}")
    assert (status, b"must be" in body) == (400, True)
    assert client(f"/x/y/?{query}", **PAGE)[0] == 200


def test_pictures_of_large_arrays_read_little() -> None:
    array = zarrlite.create_array({}, shape=(10**7, 10**7), dtype="u2", chunks=(1000, 1000))
    array[0, :3] = [5, 6, 7]
    levels, headers = pixels(array)
    assert levels.shape == (512, 512)
    assert headers["Zarrlite-Range"] == "0/7"
    page = serve.Site(array).respond("GET", "/", {"accept": "text/html"}).body.decode()
    assert "[0:512, 0:512]" in page


def test_arrays_without_numbers_have_no_picture() -> None:
    for array in (
        zarrlite.create_array({}, data=np.array(["a", "b"], np.dtypes.StringDType())),
        zarrlite.create_array({}, data=np.float64(1)),
        zarrlite.create_array({}, shape=(0, 5), dtype="i4"),
    ):
        assert serve.Site(array).respond("GET", "/?picture", {}).status == 400
        page = serve.Site(array).respond("GET", "/", {"accept": "text/html"})
        assert (page.status, b"preview" in page.body.split(b"<main>")[1].split(b"<script>")[0]) == (200, False)


def test_a_damaged_chunk_is_an_error_of_the_picture_only(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA)
    (tmp_path / "c/0/0").write_bytes(b"damaged")
    answer = serve.Site(array).respond("GET", "/?picture", {})
    assert (answer.status, b"c/0/0" in answer.body) == (500, True)
    assert serve.Site(array).respond("GET", "/", {"accept": "text/html"}).status == 200


def test_the_plain_view_is_read_by_zarrlite_and_zarr_python(plain_client: Client) -> None:
    import zarr

    host, port = plain_client.address
    url = f"http://{host}:{port}"
    document = zarrlite.open(url, mode="r", path="x/y").metadata.to_json()
    assert [codec["name"] for codec in document["codecs"]] == ["bytes"]
    assert (zarrlite.open(url, mode="r", path="x/y")[3:17, 5:60] == DATA[3:17, 5:60]).all()
    store = zarr.storage.FsspecStore.from_url(url, read_only=True)
    assert (zarr.open_array(store, path="x/y", mode="r")[3:17, 5:60] == DATA[3:17, 5:60]).all()


def test_200_clients_at_once_leave_nothing_behind(client: Client) -> None:
    whole = client(CHUNK)[2]
    together = threading.Barrier(200)

    def read(number: int) -> None:
        connection = http.client.HTTPConnection(*client.address)
        together.wait(LIMIT)
        for start in range(number, number + 5):
            connection.request("GET", CHUNK, headers={"Range": f"bytes={start}-{start + 3}"})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (206, whole[start : start + 4])
        connection.close()

    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    with ThreadPoolExecutor(200) as pool:
        list(pool.map(read, range(200)))
    end = time.monotonic() + LIMIT
    while (len(os.listdir("/proc/self/fd")), threading.active_count()) > before:
        assert time.monotonic() < end
        time.sleep(0.05)


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

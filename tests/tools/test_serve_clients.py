"""Other programs read from the server: zarrita.js in a browser, tensorstore, obstore, zarr-python and xarray."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import chromium
import numpy as np
import obstore
import plain_examples
import pytest
import tensorstore
import xarray as xr
import zarr
from plain_examples import Example
from required import lacking
from zarrita_page import Zarrita, zarrita

import zarrlite
from zarrlite import n5, tiff
from zarrlite.adapters.zarr_stores import ZarrStore
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed, Zstd
from zarrlite.tools import serve
from zarrlite.tools.serve import pages
from zarrlite.tools.serve.site import Response, Site

DATA = np.arange(600, dtype="i4").reshape(20, 30)
INDEX = 6 * 16 + 4  # bytes; size of the index in a shard with six inner chunks


@contextlib.contextmanager
def serving(node: Any, **options: Any) -> Iterator[str]:
    """Serve a node, and yield the URL of its root."""
    server = serve.run(node, **options)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield "http://{}:{}".format(*server.server_address[:2])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples") / "root.zarr"


@pytest.fixture(scope="module")
def examples(folder: Path) -> list[Example]:
    return plain_examples.write(folder)


@pytest.fixture(scope="module")
def url(folder: Path, examples: list[Example]) -> Iterator[str]:
    with serving(zarrlite.open(folder, mode="r"), plain=True) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Zarrita]:
    with zarrita() as page:
        yield page


def differing(examples: list[Example], read: Any) -> list[str]:
    """Return the paths of the examples in which a client does not read the elements that were written."""
    return [e.path for e in examples if not np.array_equal(np.asarray(read(e)), e.values)]


def test_there_are_examples_of_all_proposals(examples: list[Example]) -> None:
    counts = {name: sum(e.path.startswith(f"{name}/") for e in examples) for name in plain_examples.PROPOSALS}
    assert all(count >= 5 for count in counts.values()), counts


def test_zarr_python_reads_all_examples(folder: Path, examples: list[Example]) -> None:
    root = zarr.open_group(ZarrStore(zarrlite.plain(folder)), mode="r")
    assert differing(examples, lambda e: root[e.path][e.part or ...]) == []


def test_zarr_python_reads_all_examples_over_http(url: str, examples: list[Example]) -> None:
    root = zarr.open_group(zarr.storage.FsspecStore.from_url(url, read_only=True), mode="r")
    assert differing(examples, lambda e: root[e.path][e.part or ...]) == []


def test_tensorstore_reads_all_examples_over_http(url: str, examples: list[Example]) -> None:
    def read(example: Example) -> Any:
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": f"{url}/{example.path}/"}}
        return tensorstore.open(spec, read=True).result()[example.part or ...].read().result()

    assert differing(examples, read) == []


def test_zarrita_in_a_browser_reads_all_examples(url: str, examples: list[Example], browser: Zarrita) -> None:
    assert differing(examples, lambda e: browser.read(f"{url}/{e.path}", e.part)) == []
    assert browser.page.errors == []


def test_obstore_reads_ranges(url: str, examples: list[Example]) -> None:
    store = obstore.store.HTTPStore.from_url(url, client_options={"allow_http": True})
    example = examples[0]
    array = zarr.open_array(zarr.storage.ObjectStore(store, read_only=True), path=example.path, mode="r")
    assert np.array_equal(array[example.part or ...], example.values)
    key = f"{example.path}/zarr.json"
    whole = bytes(obstore.get(store, key).bytes())
    assert bytes(obstore.get_range(store, key, start=5, end=25)) == whole[5:25]
    assert [bytes(part) for part in obstore.get_ranges(store, key, starts=[0, 9], ends=[4, 30])] == [
        whole[:4],
        whole[9:30],
    ]
    head = obstore.head(store, key)
    assert (head["size"], obstore.get(store, key).meta["e_tag"]) == (len(whole), head["e_tag"])
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "nothing/zarr.json")


def test_xarray_and_zarrlite_find_the_members_of_a_served_group(tmp_path: Path) -> None:
    dataset = xr.Dataset({"t": (("y", "x"), DATA)}, coords={"x": np.arange(30.0)})
    dataset.to_zarr(tmp_path, zarr_format=3, consolidated=False)
    with serving(zarrlite.open(tmp_path, mode="r"), plain=True) as url:
        assert sorted(zarrlite.open_group(url, mode="r")) == ["t", "x"]
        xr.testing.assert_identical(xr.open_dataset(url, engine="zarrlite").load(), dataset)
        xr.testing.assert_identical(xr.open_dataset(url, engine="zarr").load(), dataset)


def test_listings_are_complete_for_programs(tmp_path: Path) -> None:
    group = zarrlite.create_group(tmp_path)
    names = sorted(["a b", "ü", "x.y", "c:d", "%41", *(f"n{i}" for i in range(600))])
    for name in names:
        group.create_group(name)
    with serving(group) as url:
        root = zarr.open_group(zarr.storage.FsspecStore.from_url(url, read_only=True), mode="r", use_consolidated=False)
        assert sorted(name for name in root if name.startswith("n")) == [n for n in names if n[0] == "n"]


# The HTML page


@pytest.fixture
def tab() -> Iterator[chromium.Page]:
    program = chromium.find()
    if program is None:
        lacking("chromium is not installed")
    with chromium.browser(program) as page:
        yield page


def put(tab: chromium.Page, selector: str, value: int, event: str) -> None:
    """Set the value of a field, and dispatch an event for it."""
    field = f"document.querySelector('{selector}')"
    tab.evaluate(f"{field}.value = {value}; {field}.dispatchEvent(new Event('{event}', {{bubbles: true}}))")


def test_the_page_shows_slices_in_a_browser(tmp_path: Path, tab: chromium.Page) -> None:
    values = np.arange(3 * 40 * 60, dtype="f4").reshape(3, 40, 60)
    zarrlite.create_group(tmp_path).create_array(
        "a/x", data=values, chunks=(1, 20, 20), dimension_names=["z", "y", "x"]
    )
    with serving(zarrlite.open(tmp_path, mode="r")) as url:
        tab.open(f"{url}/a/x/", dark=True)
        tab.wait("document.querySelector('figure img').naturalWidth === 60")
        assert tab.evaluate("Object.values(document.querySelector('.scale').dataset).join()") == "0,2399"
        put(tab, "input[type=range]", 2, "input")
        tab.wait("document.querySelector('.scale').dataset.low === '4800'")
        put(tab, "input[type=range]", 2, "change")
        tab.wait("location.search.includes('i0=2') && document.readyState === 'complete'")
        assert tab.evaluate("document.querySelector('figcaption code').textContent") == "[2, 0:40, 0:60]"
        tab.click("a[title='zoom in']")
        tab.wait("document.querySelector('figcaption code')?.textContent === '[2, 10:30, 15:45]'")
        tab.wait("document.querySelector('figure img').naturalWidth === 30")
        put(tab, "select[name=rows]", 0, "change")
        tab.wait("document.querySelector('figcaption code')?.textContent === '[0:3, 0, 0:60]'")
        tab.click("nav a")
        tab.wait("location.pathname === '/' && document.querySelectorAll('.tree li').length === 2")
        tab.open(url, width=390)
        assert tab.evaluate("document.documentElement.scrollWidth <= 390")
    assert tab.errors == []


def test_hostile_names_run_nothing_in_a_browser(tmp_path: Path, tab: chromium.Page) -> None:
    names = [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)<\u2215script>",
        '"onload="alert(1)',
        "javascript:alert(1)",
    ]
    attributes = {name: f"</script>{name}" for name in names}
    group = zarrlite.create_group(tmp_path, attributes=attributes)
    for name in names:
        (tmp_path / name).mkdir()
        zarrlite.create_array(tmp_path / name, data=DATA, attributes=attributes, dimension_names=names[:2])
    tab.call("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => { window.attacked = true; };")
    with serving(group) as url:
        for path in ("/", "/?list", *(f"/{quote(name, safe='')}/" for name in names)):
            tab.open(url + path)
            assert tab.evaluate("window.attacked === undefined && document.scripts.length < 2"), path
        tab.open(url)
        for number in range(1, 5):
            tab.click(f".tree li:nth-child({number}) a")
            tab.wait("document.querySelector('figure img')?.naturalWidth === 30")
            assert tab.evaluate("window.attacked === undefined")
            tab.open(url)


def test_the_python_examples_of_a_page_run(tmp_path: Path) -> None:
    group = zarrlite.create_group(tmp_path)
    group.create_array("x", data=DATA, dimension_names=["y", "x"])
    with serving(group, plain=True) as url:
        for node, path in ((group, url), (group["x"], f"{url}/x")):
            for name, code in pages.examples(node, path).items():
                if code.startswith("import ") and "zarrita" not in code:
                    namespace: dict[str, Any] = {}
                    exec(code, namespace)
                    found = next(namespace[n] for n in ("array", "group", "dataset") if n in namespace)
                    array = found if path.endswith("/x") else found["x"]
                    assert np.array_equal(np.asarray(array[...]), DATA), name


# Requests


class Recorder:
    """Records the path and the response size of each GET request, but ignores the HEAD requests that zarrita adds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[tuple[str, int]] = []
        respond = Site.respond

        def record(site: Site, method: str, target: str, headers: Any, origin: str = "") -> Response:
            answer = respond(site, method, target, headers, origin)
            if method == "GET":
                self.requests.append((target, int(answer.headers.get("Content-Length", 0))))
            return answer

        monkeypatch.setattr(Site, "respond", record)


@pytest.mark.parametrize("client", ["zarrita", "tensorstore"])
def test_an_inner_chunk_of_a_shard_with_a_header_in_parts_takes_two_small_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, browser: Zarrita, client: str
) -> None:
    parts = [{"key_suffix": ".head", "size": 64}, {"key_suffix": ""}, {"key_suffix": ".index", "size": INDEX}]
    zarrlite.create_array(
        tmp_path, data=DATA, chunks=(10, 30),
        codecs=[ShardingIndexed((5, 10), (Bytes(), Zstd(), Pad("end", 9)), (Bytes(), Crc32c())), Pad("start", 64)],
        storage_transformers=[{"name": "concat-parts", "configuration": {"parts": parts}}],
    )  # fmt: skip
    part = (slice(5, 9), slice(11, 19))
    recorder = Recorder(monkeypatch)
    with serving(zarrlite.open(tmp_path, mode="r"), plain=True) as url:
        if client == "zarrita":
            values = browser.read(url, part)
        else:
            spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": url + "/"}}
            values = tensorstore.open(spec, read=True).result()[part].read().result()
    assert np.array_equal(values, DATA[part])
    (index, index_size), (chunk, chunk_size) = [item for item in recorder.requests if "zarr.json" not in item[0]]
    assert (index, chunk) == ("/c/0/0", "/c/0/0")
    assert (index_size, chunk_size < 5 * 10 * 4) == (INDEX, True)


# Applications


@pytest.mark.parametrize("option", ["--waitress", None])
def test_the_command_serves(tmp_path: Path, option: str | None) -> None:
    if option is not None and importlib.util.find_spec("waitress") is None:
        lacking("waitress is not installed")
    zarrlite.create_array(tmp_path, data=DATA, chunks=(5, 10), compressors=[Pad("start", 8)])
    command = [sys.executable, "-m", "zarrlite", "serve", str(tmp_path), "--plain", "--port", "0"]
    with subprocess.Popen(command + ([option] if option else []), stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().split()[0].rstrip("/")
            assert (zarrlite.open_array(url, mode="r")[3:17, 5:20] == DATA[3:17, 5:20]).all()
            store = zarr.storage.FsspecStore.from_url(url, read_only=True)
            assert (zarr.open_array(store, mode="r")[...] == DATA).all()
        finally:
            process.terminate()


def first_line(*arguments: object) -> str:
    command = [sys.executable, "-m", "zarrlite", "serve", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        url = line.split()[0].rstrip("/")
        assert (zarrlite.open_array(url, mode="r")[3:17, 5:20] == DATA[3:17, 5:20]).all()
        process.terminate()
    return line


def test_the_command_serves_n5_and_tiff(tmp_path: Path) -> None:
    n5.create_array(tmp_path / "a.n5", shape=DATA.shape, dtype="i4", chunks=(5, 10))[...] = DATA
    assert f"serves {tmp_path}/a.n5 (Ctrl-C to stop)" in first_line(tmp_path / "a.n5", "--plain")
    tiff.create_array(tmp_path / "images", data=DATA.astype("u2"), chunks=(5, 10))
    (tmp_path / "images/zarr.json").unlink()
    first_line(tmp_path / "images", "--plain")


@pytest.mark.parametrize("port", ["occupied", "99999"])
def test_the_command_reports_a_port_that_it_cannot_use(tmp_path: Path, port: str) -> None:
    zarrlite.create_group(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        number = str(other.getsockname()[1]) if port == "occupied" else port
        command = [sys.executable, "-m", "zarrlite", "serve", str(tmp_path), "--port", number]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0, "Traceback" in done.stderr) == (True, False)
    assert (f"127.0.0.1:{number}" if port == "occupied" else "--port must be") in done.stderr


def test_the_application_works_below_a_prefix(tmp_path: Path) -> None:
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args: Any) -> None: ...

    group = zarrlite.create_group(tmp_path)
    group.create_array("a b/x", data=DATA)
    application = serve.application(group, plain=True)

    def mounted(environ: dict[str, Any], start_response: Any) -> Any:
        assert environ["PATH_INFO"].startswith("/data")
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = "/data", environ["PATH_INFO"].removeprefix("/data")
        return application(environ, start_response)

    with make_server("127.0.0.1", 0, mounted, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/data"
        request = urllib.request.Request(url, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request) as answer:
            assert answer.url == url + "/"
            page = answer.read().decode()
        assert f"zarrlite.open(&quot;{url}&quot;" in page
        assert 'href="a%20b/x/"' in page
        with urllib.request.urlopen(f"{url}/a%20b/x/?list") as answer:
            assert 'href="zarr.json"' in answer.read().decode()
        with urllib.request.urlopen(f"{url}/a%20b/x/zarr.json") as answer:
            assert json.load(answer)["shape"] == [20, 30]
        server.shutdown()
        thread.join()

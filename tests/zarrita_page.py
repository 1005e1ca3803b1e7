"""zarrita.js in headless Chromium: a page from another origin that reads arrays from a server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import chromium
import numpy as np
from required import lacking

_IMPORTS = {
    "zarrita": "/zarrita/dist/src/index.js",
    "@zarrita/storage/fetch": "/@zarrita/storage/dist/src/fetch.js",
    "fflate": "/fflate/esm/browser.js",
    **{f"numcodecs/{name}": f"/numcodecs/dist/{name}.js" for name in ("blosc", "gzip", "lz4", "zlib", "zstd")},
}
_SCRIPT = """
import * as zarr from "zarrita";
window.zarr = zarr;
window.read = async (url, bounds) => {
  const array = await zarr.open.v3(new zarr.FetchStore(url), { kind: "array" });
  const found = await zarr.get(array, bounds.map(([start, stop]) => zarr.slice(start, stop)));
  if (typeof found !== "object") return { shape: [], values: [Number(found)] };
  const { data, shape, stride } = found;
  const extend = (offsets, n, i) => offsets.flatMap((p) => Array.from({ length: n }, (_, k) => p + k * stride[i]));
  const offsets = shape.reduce(extend, [0]); // of the elements in row-major order: the result may be transposed
  return { shape, values: offsets.map((p) => Number(data[p])) };
};
"""
_PAGE = (
    f'<!doctype html><title>zarrita</title><script type="importmap">{json.dumps({"imports": _IMPORTS})}</script>'
    f'<script type="module">{_SCRIPT}</script>'
)


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(_PAGE.encode())

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


class Zarrita:
    """Reads arrays by their URLs."""

    def __init__(self, page: chromium.Page) -> None:
        self.page = page

    def read(self, url: str, part: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        """Return part of an array, as numbers."""
        bounds = [[s.start, s.stop] for s in part]
        found = json.loads(self.page.evaluate(f"read({json.dumps(url)}, {bounds}).then(JSON.stringify)"))
        return np.array(found["values"]).reshape(found["shape"])


@contextmanager
def zarrita() -> Iterator[Zarrita]:
    """Open the page in a browser, which is closed when the context ends."""
    modules = Path(os.environ.get("ZARRITA", "."), "node_modules")
    program = chromium.find()
    if program is None:
        lacking("chromium is not installed")
    if not (modules / "zarrita").is_dir():
        lacking("zarrita is not installed in the folder that ZARRITA names")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(modules)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with chromium.browser(program) as page:
            page.open(f"http://127.0.0.1:{server.server_address[1]}/")
            page.wait("window.read")
            yield Zarrita(page)
    finally:
        server.shutdown()
        server.server_close()

"""Headless Chromium, driven over a pipe: opens a page, evaluates, clicks where an element is drawn, takes a picture."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIMIT = 60  # seconds until a page must show what is waited for
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
for end, wanted in zip(ends, (3, 4)):
    os.dup2(end, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """One tab."""

    def __init__(self, send: Any, receive: Any) -> None:
        self._send, self._receive, self._number, self._session = send, receive, 0, {}
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol; events that come meanwhile are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        self._send.write(json.dumps(message).encode() + b"\0")
        self._send.flush()
        while True:
            answer = json.loads(self._read())
            if answer.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(answer["params"]["exceptionDetails"]))
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> bytes:
        found = bytearray()
        while (byte := self._receive.read(1)) != b"\0":
            assert byte, "chromium ended"
            found += byte
        return bytes(found)

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str) -> None:
        end = time.monotonic() + LIMIT
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Move the mouse to the middle of an element and press it: what lies there gets the click."""
        text = json.dumps(selector)
        self.evaluate(f"document.querySelector({text}).scrollIntoView({{block: 'center'}})")
        box = self.evaluate(f"JSON.stringify(document.querySelector({text}).getBoundingClientRect())")
        at = json.loads(box)
        place = {"x": at["x"] + at["width"] / 2, "y": at["y"] + at["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser(program: str) -> Iterator[Page]:
    """A browser with one tab. It reads commands from file 3 and writes to file 4."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe --no-first-run"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [program, *options.split(), f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(to_read), str(from_write), *words],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        try:
            with open(to_write, "wb") as send, open(from_read, "rb") as receive:
                page = Page(send, receive)
                yield page
                page._session = {}
                page.call("Browser.close")
        finally:
            process.terminate()
            process.wait(LIMIT)

"""Headless Chromium, driven through a pipe: open a page, evaluate JavaScript, click elements, take screenshots."""

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

LIMIT = 60  # seconds; a condition that takes longer to become true fails the test
# Chromium reads commands from descriptor 3 and writes responses to descriptor 4. The ends of the pipes may already have
# these numbers, so they are first duplicated to numbers above 9: `dup2` then overwrites neither of them.
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3]]
for end, descriptor in zip(ends, (3, 4)):
    os.dup2(end, descriptor)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """Return the path of the browser. Returns None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class NavigationError(Exception):
    """The page was left while an expression was evaluated in it."""


class Page:
    """One tab, with the exceptions that its scripts raised and the URLs that it requested."""

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
        """Send a DevTools command, and return its result. Events that arrive before the result are recorded."""
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
                if "navigated" in answer.get("error", {}).get("message", ""):
                    raise NavigationError
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> bytes:
        """Read one message; messages end with a zero byte."""
        message = bytearray()
        while (byte := self._receive.read(1)) != b"\0":
            assert byte, "chromium exited"
            message += byte
        return bytes(message)

    def open(self, place: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        url = place if isinstance(place, str) else place.resolve().as_uri()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        try:
            result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        except NavigationError:
            return self.evaluate(expression)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + LIMIT
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, expression
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Click the centre of an element. If another element covers it, that element receives the click."""
        text = json.dumps(selector)
        self.evaluate(f"document.querySelector({text}).scrollIntoView({{block: 'center'}})")
        box = json.loads(self.evaluate(f"JSON.stringify(document.querySelector({text}).getBoundingClientRect())"))
        centre = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **centre)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def browser(program: str) -> Iterator[Page]:
    """Start a browser with one tab, and close it when the context ends."""
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe --no-first-run"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [program, *options.split(), f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(command_read), str(answer_write), *words],
            pass_fds=(command_read, answer_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        try:
            with open(command_write, "wb") as send, open(answer_read, "rb") as receive:
                page = Page(send, receive)
                yield page
                page._session = {}
                page.call("Browser.close")
        finally:
            process.terminate()
            process.wait(LIMIT)

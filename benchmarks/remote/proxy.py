"""A proxy in a separate process that delays the bytes it forwards.

Rules
- Half of the delay is added on the way to the server, the other half on the way back. Any number of connections,
  requests and responses can be in flight at the same time; the throughput is not limited.
- Opening a connection is not delayed, because clients keep their connections open, as they would with a real server.
- Even with a delay of zero, all bytes pass through the proxy, so its cost is part of every measurement.

`python -m benchmarks.remote.proxy PORT DELAY...` listens on a loopback port for each delay in milliseconds, forwards
everything to PORT, and prints its ports. The process exits when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]


class Proxy:
    """The proxy's process, as a context manager. `ports` maps each delay in milliseconds to a port."""

    def __init__(self, port: int, delays: Sequence[int]) -> None:
        arguments = [sys.executable, "-m", "benchmarks.remote.proxy", str(port), *map(str, delays)]
        self._process = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ports = self._process.stdout.readline().split()
        self.ports = dict(zip(delays, map(int, ports), strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()  # closes the proxy's standard input, and waits for the proxy to exit


class _Way(asyncio.Protocol):
    """One end of a connection: the bytes that it receives are sent by the other end, after the delay."""

    other: _Way
    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, delay: float) -> None:
        self._loop = loop
        self._delay = delay  # seconds
        self._under_way: deque[bytes] = deque()  # data in flight; an empty value marks the end of the connection
        self._is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._delay:
            self._under_way.append(data)
            self._loop.call_later(self._delay, self._arrive)
        else:
            self.other.send(data)

    def _arrive(self) -> None:
        self.other.send(self._under_way.popleft())

    def send(self, data: bytes) -> None:
        """Send data that has arrived; empty data marks the end of the connection."""
        if not data:
            self.transport.close()
        elif not self._is_closed:
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_closed = True
        self.data_received(b"")


class _Client(_Way):
    """The client's end of a connection; it opens the connection to the server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, delay: float, port: int) -> None:
        super().__init__(loop, delay)
        self._port = port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()
        self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            _, server = await self._loop.create_connection(
                lambda: _Way(self._loop, self._delay), "127.0.0.1", self._port
            )
        except OSError:
            self.transport.abort()
            return
        self.other, server.other = server, self
        self.transport.resume_reading()


async def _serve(port: int, delays: Sequence[int]) -> None:
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(lambda half=delay / 2000: _Client(loop, half, port), "127.0.0.1", 0, backlog=1024)  # type: ignore[misc]
        for delay in delays
    ]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), [int(delay) for delay in sys.argv[2:]]))

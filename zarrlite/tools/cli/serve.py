"""`zarrlite serve`: serve an array or a hierarchy over HTTP."""

from __future__ import annotations

import argparse
from typing import Any

from zarrlite.adapters.plain import open_any
from zarrlite.errors import ArgumentError, NodeNotFoundError, StoreError
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import open_location, open_node

HELP = "serve an array or a hierarchy over HTTP"
EXAMPLE = "zarrlite serve experiment.zarr --plain"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of a node")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1, for this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000; 0: a free one)")
    parser.add_argument("--plain", action="store_true", help="serve ordinary Zarr v3, for every reader")
    parser.add_argument("--waitress", action="store_true", help="use the waitress server, for many clients")


def run(args: argparse.Namespace, console: Console) -> int:
    from zarrlite.tools import serve  # imported late, since only this command needs it

    if not 0 <= args.port < 2**16:
        raise ArgumentError(f"--port must be a number from 0 to 65535, not {args.port}")
    node = _open(args.location)
    try:
        if args.waitress:
            server: Any = serve.run_waitress(node, args.host, args.port, plain=args.plain)
        else:
            server = serve.run(node, args.host, args.port, plain=args.plain)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot listen on {args.host}:{args.port}: {reason}") from None
    host, port = server.server_address[:2]
    console.print(f"http://{f'[{host}]' if ':' in host else host}:{port}/ serves {args.location} (Ctrl-C to stop)")
    with server:
        server.serve_forever()
    return 0


def _open(location: str) -> Array | Group:
    try:
        return open_node(location)
    except NodeNotFoundError:
        try:
            return open_any(open_location(location))  # also opens N5 containers and folders of TIFF files
        except NodeNotFoundError:
            pass
        raise

"""`zarrlite serve`: serve an array or a hierarchy over HTTP."""

from __future__ import annotations

import argparse

from zarrlite.errors import DependencyError, StoreError
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import open_node

HELP = "serve an array or a hierarchy over HTTP"
EXAMPLE = "zarrlite serve experiment.zarr --plain"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of a node")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 chooses a free one (8000)")
    parser.add_argument("--plain", action="store_true", help="show ordinary Zarr v3, which every reader knows")
    parser.add_argument("--waitress", action="store_true", help="use the server waitress, for many clients")


def run(args: argparse.Namespace, console: Console) -> int:
    node = open_node(args.location)
    if args.waitress:
        return _run_waitress(node, args, console)
    from zarrlite.tools import serve  # late: only this command needs it

    try:
        server = serve.run(node, args.host, args.port, plain=args.plain)
    except OSError as error:
        raise StoreError(f"cannot listen on {args.host}:{args.port}: {error.strerror}") from None
    host, port = server.server_address[:2]
    console.print(f"http://{host!s}:{port}/ serves {args.location} (Ctrl-C ends)")
    with server:
        server.serve_forever()
    return 0


def _run_waitress(node: object, args: argparse.Namespace, console: Console) -> int:
    try:
        import waitress  # type: ignore[import-untyped]
    except ImportError as error:
        raise DependencyError("--waitress needs waitress: pip install 'zarrlite[serve]'") from error
    from zarrlite.tools import serve

    console.print(f"http://{args.host}:{args.port}/ serves {args.location} (Ctrl-C ends)")
    waitress.serve(serve.application(node, plain=args.plain), host=args.host, port=args.port, threads=16)  # type: ignore[arg-type]
    return 0

"""`zarrlite demo`: show a short tour."""

from __future__ import annotations

import argparse

from zarrlite.tools import demo
from zarrlite.tools.cli.console import Console

HELP = "show a short tour"
EXAMPLE = "zarrlite demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the tour has no options."""


def run(args: argparse.Namespace, console: Console) -> int:
    if console.as_json:
        lines: list[str] = []
        demo.main(lambda text: lines.extend(text.split("\n")))
        console.json({"lines": lines})
    else:
        demo.main(console.print)
    return 0

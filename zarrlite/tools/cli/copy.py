"""`zarrlite copy`: an array or a hierarchy, stored object by stored object, as they are."""

from __future__ import annotations

import argparse
import itertools

from zarrlite import threads
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import JOURNAL, open_node, split
from zarrlite.tools.cli.transfer import Transfer

HELP = "copy an array or a hierarchy as it is stored"
EXAMPLE = "zarrlite copy experiment.zarr/raw backup.zarr"
_BATCH = 64  # objects between two notes of how far it is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a path or file:// URL of an array or group")
    parser.add_argument("target", help="where the copy will be; an interrupted copy is gone on with")
    parser.add_argument("--overwrite", action="store_true", help="replace the node that is there")


def run(args: argparse.Namespace, console: Console) -> int:
    source = open_node(args.source)
    target, path = split(args.target)
    transfer = Transfer(source, target, path, {"command": "copy"})
    origin, prefix = key_prefix(source.path), key_prefix(path)
    objects = [(key, size) for key, size, _ in transfer.objects if not f"/{key}".endswith(f"/{JOURNAL}")]
    # documents last, from the leaves up: what can be opened is complete
    objects.sort(key=lambda each: (_is_document(each[0]), -each[0].count("/")))
    data = [each for each in objects if not _is_document(each[0])]
    documents = objects[len(data) :]
    done = transfer.begin(overwrite=args.overwrite)

    def move(each: tuple[str, int]) -> None:
        value = source.store.get(origin + each[0])
        if value is not None:
            target.set(prefix + each[0], value)

    with transfer.running(), console.progress("copy", len(objects)) as progress:
        progress.advance(done)
        rest = iter(data[done:])
        while batch := list(itertools.islice(rest, _BATCH)):
            threads.run(move, batch, sum(size for _, size in batch))
            transfer.advance(len(batch))
            progress.advance(len(batch))
        transfer.check_source()
        for each in documents:
            move(each)
            progress.advance()
    transfer.end()
    total = sum(size for _, size in objects)
    if console.as_json:
        console.json({"objects": len(objects), "bytes": total, "objects_done_before": done})
    else:
        before = f" ({done} of them before)" if done else ""
        console.print(f"copied {len(objects)} objects{before}, {total} bytes")
    return 0


def _is_document(key: str) -> bool:
    return f"/{key}".endswith(f"/{DOCUMENT}")

"""`zarrlite copy`: copy the stored objects of an array or a hierarchy without re-encoding them."""

from __future__ import annotations

import argparse
import itertools

from zarrlite import threads
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.stores import Store
from zarrlite.stores.base import slowest_place
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import JOURNAL, open_node, split
from zarrlite.tools.cli.transfer import Transfer

HELP = "copy an array or a hierarchy without re-encoding it"
EXAMPLE = "zarrlite copy experiment.zarr/raw backup.zarr"
_BATCH = 64  # objects; progress is recorded after each batch, and an interrupted batch is copied again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a path or URL of an array or group")
    parser.add_argument("target", help="the location of the copy; rerun the same command to resume an interrupted copy")
    parser.add_argument("--overwrite", action="store_true", help="replace the node at the target")


def run(args: argparse.Namespace, console: Console) -> int:
    source = open_node(args.source)
    target, path = split(args.target)
    with target:  # completes a zip file
        return _copy(source, target, path, args, console)


def _copy(source: Array | Group, target: Store, path: str, args: argparse.Namespace, console: Console) -> int:
    transfer = Transfer(source, target, path, {"command": "copy"})
    source_prefix, target_prefix = key_prefix(source.path), key_prefix(path)
    objects = [(key, size) for key, size, _ in transfer.objects if not f"/{key}".endswith(f"/{JOURNAL}")]
    # documents last, and members before their groups: a node that can be opened is complete
    objects.sort(key=lambda item: (_is_document(item[0]), -item[0].count("/")))
    data = [item for item in objects if not _is_document(item[0])]
    documents = objects[len(data) :]
    done = transfer.begin(overwrite=args.overwrite)

    def copy_object(item: tuple[str, int]) -> None:
        key, _ = item
        value = source.store.get(source_prefix + key)
        if value is not None:
            target.set(target_prefix + key, value)

    with transfer.running(), console.progress("copy", len(objects)) as progress:
        progress.advance(done)
        remaining = iter(data[done:])
        while batch := list(itertools.islice(remaining, _BATCH)):
            threads.run(copy_object, batch, sum(size for _, size in batch), slowest_place(source.store, target))
            transfer.advance(len(batch))
            progress.advance(len(batch))
        transfer.check_source()
        for _, level in itertools.groupby(documents, key=lambda item: item[0].count("/")):
            batch = list(level)
            threads.run(copy_object, batch, 0, slowest_place(source.store, target))
            progress.advance(len(batch))
    transfer.end()
    total = sum(size for _, size in objects)
    if console.as_json:
        console.json({"objects": len(objects), "bytes": total, "objects_done_before": done})
    else:
        earlier = f" ({done} of them in an earlier run)" if done else ""
        console.print(f"copied {len(objects)} objects{earlier}, {total} bytes")
    return 0


def _is_document(key: str) -> bool:
    return f"/{key}".endswith(f"/{DOCUMENT}")

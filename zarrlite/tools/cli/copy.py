"""`zarrlite copy`: copy the stored objects of an array or a hierarchy without re-encoding them."""

from __future__ import annotations

import argparse

from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import open_node, split
from zarrlite.tools.transfer.copying import Copy

HELP = "copy an array or a hierarchy without re-encoding it"
EXAMPLE = "zarrlite copy experiment.zarr/raw backup.zarr"
DASK_HELP = "run on the workers of a dask cluster: the address of its scheduler, or local"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a path or URL of an array or group")
    parser.add_argument("target", help="the location of the copy; rerun the same command to resume an interrupted copy")
    parser.add_argument("--overwrite", action="store_true", help="replace the node at the target")
    parser.add_argument("--dask", metavar="ADDRESS", help=DASK_HELP)


def run(args: argparse.Namespace, console: Console) -> int:
    source = open_node(args.source)
    target, path = split(args.target)
    with target:  # a zip file is complete once its store is closed
        job = Copy(source, target, path)
        with console.progress("copy", job.total) as progress:
            done = job.run(overwrite=args.overwrite, dask=args.dask, advance=progress.advance)
    if console.as_json:
        console.json({"objects": job.total, "bytes": job.nbytes, "objects_done_before": done})
    else:
        earlier = f" ({done} of them in an earlier run)" if done else ""
        console.print(f"copied {job.total} objects{earlier}, {job.nbytes} bytes")
    return 0

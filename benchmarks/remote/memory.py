"""`python -m benchmarks.remote.memory CONTESTANT read|write PORT BUCKET PATH IMAGE`: print the peak memory in MiB."""

from __future__ import annotations

import sys

from benchmarks.contestants import load
from benchmarks.processes import measure, print_and_exit
from benchmarks.remote.place import Place

if __name__ == "__main__":
    name, operation, port, bucket, path, image = sys.argv[1:]
    print_and_exit(measure(load(name, remote=True), operation, Place(int(port), bucket, path), image))

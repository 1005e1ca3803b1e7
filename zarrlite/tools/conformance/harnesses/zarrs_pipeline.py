"""zarr-python with the codec pipeline of zarrs, which needs a store on disk.

In strict mode the pipeline raises an error where it would otherwise fall back to zarr-python's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import zarr
from loop import Json, values
from zarr.storage import LocalStore
from zarr_python import Opened, answer_with
from zarrs.pipeline import UnsupportedDataTypeError, UnsupportedMetadataError
from zarrs.utils import DiscontiguousArrayError, UnsupportedVIndexingError

UNSUPPORTED = (DiscontiguousArrayError, UnsupportedDataTypeError, UnsupportedMetadataError, UnsupportedVIndexingError)


@contextmanager
def on_disk(message: Json) -> Iterator[Opened]:
    """Write the values of a message into a temporary folder, and open it as a store."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for key, value in values(message).items():
            (root / key).parent.mkdir(parents=True, exist_ok=True)
            (root / key).write_bytes(value)
        files = (path for path in root.rglob("*") if path.is_file())
        yield LocalStore(folder), lambda: {p.relative_to(root).as_posix(): p.read_bytes() for p in files}


zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True})
about = f"{version('zarrs')} in zarr-python {zarr.__version__}"
answer_with("zarrs", about, on_disk, unsupported=UNSUPPORTED)

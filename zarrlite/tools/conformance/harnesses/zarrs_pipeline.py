"""zarr-python with the codec pipeline of zarrs, which needs a store on disk.

In strict mode, this pipeline raises an error where it would otherwise fall back to zarr-python's own pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from loop import Json, in_folder
from zarr_python import Opened, answer_with, zarr
from zarrs.pipeline import UnsupportedDataTypeError, UnsupportedMetadataError
from zarrs.utils import DiscontiguousArrayError, UnsupportedVIndexingError

UNSUPPORTED = (DiscontiguousArrayError, UnsupportedDataTypeError, UnsupportedMetadataError, UnsupportedVIndexingError)


@contextmanager
def on_disk(message: Json) -> Iterator[Opened]:
    with in_folder(message) as (folder, contents):
        yield zarr.storage.LocalStore(folder), contents


zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True})
about = f"{version('zarrs')} in zarr-python {zarr.__version__}"
answer_with("zarrs", about, on_disk, unsupported=UNSUPPORTED)

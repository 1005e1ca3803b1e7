"""zarr-python with its own codec pipelines, and with that of zarrs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import zarr
from zarr.core import codec_pipeline
from zarr.core.buffer import cpu
from zarr.storage import MemoryStore

from benchmarks.contestants.base import Contestant, Unsupported
from benchmarks.data import Array

FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"


class ZarrPython(Contestant):
    """zarr-python with its default settings."""

    name = "zarr-python"
    atomic = True
    packages: tuple[str, ...] = ("zarr", "numcodecs")
    cold_import = "import zarr"
    cold_read = "import zarr; print(zarr.open_array({path!r}, mode='r')[{i}, {j}])"

    def memory(self, files: Mapping[str, bytes]) -> Any:
        return MemoryStore({key: cpu.Buffer.from_bytes(value) for key, value in files.items()})

    def files(self, place: Any) -> dict[str, bytes]:
        return {key: value.to_bytes() for key, value in place._store_dict.items()}

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        return zarr.open_array(place, mode="r+" if write else "r")

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array[selection] for selection in selections]

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array.oindex[selection] for selection in selections]

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        for selection, value in zip(selections, values, strict=True):
            array[selection] = value

    def open_all(self, paths: Sequence[str]) -> list[Any]:
        return [zarr.open_array(path, mode="r") for path in paths]

    def open_dataset(self, place: Any) -> Any:
        import xarray

        return xarray.open_dataset(place, engine="zarr", consolidated=True)

    def members(self, path: str) -> dict[str, Any]:
        return dict(zarr.open_group(path, mode="r").members())

    def describe(self, array: Any) -> tuple[Any, ...]:
        return array.shape, str(array.dtype), array.chunks


class FusedZarrPython(ZarrPython):
    """zarr-python 3.3 or later with its synchronous codec pipeline, which is not its default."""

    name = "zarr-python fused"
    packages = ()
    cold_read = f"""
import zarr
zarr.config.set({{{{'codec_pipeline.path': {FUSED!r}}}}})
print(zarr.open_array({{path!r}}, mode='r')[{{i}}, {{j}}])
"""

    def __init__(self) -> None:
        if not hasattr(codec_pipeline, "FusedCodecPipeline"):
            raise ImportError(f"zarr-python {zarr.__version__} has no FusedCodecPipeline")

    def session(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = zarr.config.set({"codec_pipeline.path": FUSED})
        return context


try:
    import zarrs
    from zarrs.pipeline import UnsupportedMetadataError
    from zarrs.utils import DiscontiguousArrayError, UnsupportedVIndexingError
except ImportError:  # zarrs is optional; only the class Zarrs requires it
    zarrs = None  # type: ignore[assignment]


class Zarrs(ZarrPython):
    """zarr-python with the codec pipeline of zarrs, in strict mode: it never falls back to zarr-python's pipeline."""

    name = "zarrs"
    atomic = False
    packages = ("zarrs",)
    cold_import = "import zarr, zarrs"
    cold_read = """
import zarr
zarr.config.set({{'codec_pipeline.path': 'zarrs.ZarrsCodecPipeline', 'codec_pipeline.strict': True}})
print(zarr.open_array({path!r}, mode='r')[{i}, {j}])
"""

    def __init__(self) -> None:
        if zarrs is None:
            raise ImportError("zarrs is not installed")

    def session(self) -> AbstractContextManager[Any]:
        settings = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}
        context: AbstractContextManager[Any] = zarr.config.set(settings)
        return context

    def memory(self, files: Mapping[str, bytes]) -> Any:
        raise Unsupported("zarrs cannot access a store in the memory of Python")

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        try:
            return super().get(array, selections)
        except (DiscontiguousArrayError, UnsupportedVIndexingError, UnsupportedMetadataError) as error:
            raise Unsupported("needs zarr-python's own pipeline") from error

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        try:
            return super().get_orthogonal(array, selections)
        except (DiscontiguousArrayError, UnsupportedVIndexingError, UnsupportedMetadataError) as error:
            raise Unsupported("needs zarr-python's own pipeline") from error

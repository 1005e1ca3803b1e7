"""Every chunk a picture: Zarr arrays whose chunks are TIFF files, and folders of TIFF files seen as Zarr arrays.

Rules
- One file, one chunk, one strip: what `suffix`, `pad` and the codecs `bytes` and `zstd` can say, and nothing more.
- `header` is what both ways share: how a picture is described. `create_array` and `open_array` write pictures,
  `open_folder` reads those of others.
"""

from zarrlite.formats.tiff.arrays import create_array, open_array
from zarrlite.formats.tiff.folder import open_folder
from zarrlite.formats.tiff.headers import Header, header

__all__ = ["Header", "create_array", "header", "open_array", "open_folder"]

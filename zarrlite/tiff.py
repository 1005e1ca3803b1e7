"""Every chunk a picture: arrays whose chunks are TIFF files, and folders of TIFF files opened as arrays."""

from zarrlite.formats.tiff import Header, create_array, header, open_array, open_folder

__all__ = ["Header", "create_array", "header", "open_array", "open_folder"]

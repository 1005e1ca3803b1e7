"""N5: read where it lies, and written so that readers of N5 read it."""

from zarrlite.formats.n5 import N5Store, array_document, create_array, n5_header, open, write_documents  # noqa: A004

__all__ = ["N5Store", "array_document", "create_array", "n5_header", "open", "write_documents"]

"""Laws that stores, codecs, chunk key encodings and storage transformers must obey, as base classes for pytest."""

from zarrlite.tools.testing.codecs import (
    ArrayArrayLaws,
    ArrayBytesLaws,
    BytesBytesLaws,
    CodecLaws,
    check_json,
    damaged,
    same_elements,
    selections,
)
from zarrlite.tools.testing.key_encodings import KeyEncodingLaws, coordinates, mutations
from zarrlite.tools.testing.storage_transformers import StorageTransformerLaws
from zarrlite.tools.testing.stores import ReadingLaws, StoreLaws, in_threads

__all__ = [
    "ArrayArrayLaws",
    "ArrayBytesLaws",
    "BytesBytesLaws",
    "CodecLaws",
    "KeyEncodingLaws",
    "ReadingLaws",
    "StorageTransformerLaws",
    "StoreLaws",
    "check_json",
    "coordinates",
    "damaged",
    "in_threads",
    "mutations",
    "same_elements",
    "selections",
]

"""Descriptions of the bytes that codecs store, for `explain`, `fsck` and the pictures.

Rules
- A description is optional, and reading and writing never use it. If a codec has no description, its bytes are shown as
  a whole, or as elements.
- A description names bytes but does not check them. Decoding finds damage.

Shards are described in shards/anatomy.py, storage transformers in storage_transformers/anatomy.py.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from zarrlite.buffers.ranges import Buffer
from zarrlite.extensions.config import Json

FieldRole = Literal["header", "padding", "checksum"]


class Field(NamedTuple):
    """A fixed number of bytes with a meaning of its own."""

    what: str  # as shown to users
    size: int  # bytes
    role: FieldRole = "header"
    form: str = ""  # format of the number for `struct`, such as ">H"; empty if it is not a number
    configured: Buffer | None = None  # bytes in the metadata; different stored bytes are reported, but not as a fault
    fields: tuple[Field, ...] = ()  # smaller fields that make up this one


class Anatomy:
    """The inner structure of an encoded chunk. Each kind of structure is a subclass."""


class Header(Anatomy):
    """A header, followed by the value of an inner chain or by the codec's own elements.

    `what` is a noun for the encoded chunk, whose header is shown as "<what> header". `inner` is the `Pipeline` that
    decodes the bytes after the header; if it is None, this codec stores its elements there. `detail` contains facts
    from the header.
    """

    def __init__(
        self, what: str, fields: tuple[Field, ...], inner: Any = None, detail: dict[str, Json] | None = None
    ) -> None:
        self.field = Field(f"{what} header", sum(field.size for field in fields), fields=fields)
        self.what = what
        self.inner = inner
        self.detail = detail or {}

"""Lists of codecs: which ones make a chain.

Rules
- "exactly one array -> bytes codec" (core spec, Codecs), array -> array codecs before, bytes -> bytes codecs after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json
from zarrlite.extensions.extension import Ignored
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec

_REPAIR = {"name": "bytes", "configuration": {"endian": "little"}}
_STAGES = (ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec)


def check_chain(codecs: Sequence[Codec | Ignored]) -> None:
    """Refuse a list that is not array -> array*, array -> bytes, bytes -> bytes*; pointers are relative to the list."""
    stage = serializers = 0
    for i, codec in enumerate(codecs):
        if isinstance(codec, Ignored):
            continue
        kind = next((n for n, cls in enumerate(_STAGES) if isinstance(codec, cls)), -1)
        serializers += kind == 1
        if kind < stage or serializers > 1:
            raise MetadataError(
                f"{codec.name} cannot stand here: the order is array -> array codecs, exactly one array -> bytes "
                "codec, bytes -> bytes codecs",
                pointer=f"/{i}",
                kind="conflict",
            )
        stage = kind
    if not serializers:
        raise MetadataError(
            'has no array -> bytes codec; add one, such as {"name": "bytes", "configuration": {"endian": "little"}}, '
            "before the bytes -> bytes codecs",
            kind="missing",
        )


def parse_chain(values: Sequence[Json], pointer: str, context: Context) -> tuple[Codec | Ignored, ...]:
    """A chain of codecs from its JSON list; in lenient mode a forgotten array -> bytes codec is put in."""
    codecs: tuple[Codec | Ignored, ...] = registry.codecs.parse_list(values, pointer, context)
    try:
        check_chain(codecs)
    except MetadataError as error:
        if context.strict or error.kind != "missing":
            raise error.under(pointer, context.document) from None
        context.warn("has no array -> bytes codec; bytes, little endian, is put in", pointer)
        at = 1 + max((i for i, codec in enumerate(codecs) if isinstance(codec, ArrayArrayCodec)), default=-1)
        codecs = (*codecs[:at], registry.codecs.coerce(_REPAIR), *codecs[at:])
    return codecs

"""Validation of codec chains.

Rules (core spec, Codecs)
- A chain has "exactly one array -> bytes codec", array -> array codecs before it and bytes -> bytes codecs after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json
from zarrlite.extensions.extension import Ignored
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, ArraySpec, BytesBytesCodec, Codec

_STAGES = (ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec)


def check_chain(codecs: Sequence[Codec | Ignored]) -> None:
    """Raise MetadataError, with a JSON pointer relative to the list, unless the codecs form a valid chain."""
    stage = serializers = 0
    for i, codec in enumerate(codecs):
        if isinstance(codec, Ignored):
            continue
        # core spec, Codecs: "exactly one array -> bytes codec"
        kind = next((n for n, cls in enumerate(_STAGES) if isinstance(codec, cls)), -1)
        serializers += kind == 1
        if kind < stage or serializers > 1:
            raise MetadataError(
                f"{codec.name} is not allowed in this position: the order is array -> array codecs, exactly one "
                "array -> bytes codec, bytes -> bytes codecs",
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


def fit_chain(codecs: Sequence[Codec | Ignored], spec: ArraySpec) -> tuple[Codec | Ignored, ...]:
    """Choose the settings that a chain leaves open, for a new array. Returns the chain with these settings.

    In an invalid chain, codecs after the fault are not changed. The fault is reported when the pipeline is created.
    """
    chain = list(codecs)
    for i, codec in enumerate(chain):
        if isinstance(codec, Ignored):
            continue
        chain[i] = codec = codec.fitted(spec)
        if isinstance(codec, ArrayArrayCodec):
            try:
                spec = codec.encoded_spec(spec)
            except MetadataError:
                break
    return tuple(chain)


def parse_chain(values: Sequence[Json], pointer: str, context: Context) -> tuple[Codec | Ignored, ...]:
    """Parse a JSON list of codecs."""
    codecs: tuple[Codec | Ignored, ...] = registry.codecs.parse_list(values, pointer, context)
    try:
        check_chain(codecs)
    except MetadataError as error:
        raise error.under(pointer, context.document) from None
    return codecs

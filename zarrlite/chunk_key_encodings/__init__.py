"""The chunk key encodings, one module for each."""

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.chunk_key_encodings.default import DefaultKeys
from zarrlite.chunk_key_encodings.fanout import FanoutKeys
from zarrlite.chunk_key_encodings.suffix import SuffixKeys
from zarrlite.chunk_key_encodings.template import TemplateKeys
from zarrlite.chunk_key_encodings.v2 import V2Keys

__all__ = ["ChunkKeyEncoding", "DefaultKeys", "FanoutKeys", "SuffixKeys", "TemplateKeys", "V2Keys"]

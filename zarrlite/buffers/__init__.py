"""Bytes on their way: ranges, sources, values in pieces, scratch memory."""

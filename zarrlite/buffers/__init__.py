"""Bytes in transit: ranges, sources, values in pieces, scratch memory."""

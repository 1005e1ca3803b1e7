"""The engine: the kinds of codec, their chain, and a chain that is bound to a chunk."""

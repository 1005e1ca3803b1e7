"""The engine: the kinds of codec, codec chains, and chains bound to a chunk shape."""

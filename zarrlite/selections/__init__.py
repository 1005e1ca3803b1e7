"""Which elements are meant: a numpy-style index, its normal form, and the parts of chunks."""

"""The chunks of an array: one, and many at once."""

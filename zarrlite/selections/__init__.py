"""Selections of elements: numpy-style indices, their normal form, and its projection onto chunks."""

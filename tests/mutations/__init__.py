"""Planted bugs, and the share of them that the corpus alone catches."""

"""Planted bugs, and the share of them that the conformance corpus alone catches."""

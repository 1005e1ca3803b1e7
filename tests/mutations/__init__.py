"""Planted bugs: how many of them the corpus alone catches."""

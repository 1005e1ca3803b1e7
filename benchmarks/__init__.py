"""Benchmark zarrlite, its peers and a hand-written limit on the same files in one run; see README.md."""

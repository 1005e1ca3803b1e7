"""Benchmark zarrlite, its peers and a hand-written baseline (`limit`) on the same files in one run; see README.md."""

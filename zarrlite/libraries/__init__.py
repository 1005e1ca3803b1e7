"""Compiled libraries for zstd and CRC32C. For each of the two, one module chooses among the installed packages."""

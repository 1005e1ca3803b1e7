"""The compiled libraries for zstd and CRC32C: one module for each chooses among the installed packages."""

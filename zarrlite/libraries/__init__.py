"""The compiled libraries for zstd and CRC32C: a module for each chooses among those that are installed."""

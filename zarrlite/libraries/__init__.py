"""The compiled libraries for zstd and CRC32C: one module for each, which chooses by what can be imported."""

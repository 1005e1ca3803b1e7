"""The benchmark for data in an object store: an S3 server on this machine, behind a proxy that adds latency."""

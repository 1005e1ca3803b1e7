"""The benchmark of data in an object store: an S3 server on this machine, after a proxy that delays its answers."""

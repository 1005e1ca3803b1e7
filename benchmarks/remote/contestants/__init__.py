"""The contestants of the remote benchmark: those of the local one, with their stores for S3."""

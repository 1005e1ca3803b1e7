"""The contestants of the remote benchmark: those of the local one, with their S3 stores."""

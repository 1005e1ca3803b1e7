"""The location of an array or a group: the port of a proxy, a bucket, and a path in the bucket."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.remote.server import KEY, REGION, SECRET


class Place(NamedTuple):
    """A node in a bucket that is accessed through a proxy."""

    port: int
    bucket: str
    path: str

    @property
    def endpoint(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def s3_store(self, prefix: str | None = None) -> Any:
        """Return a new obstore client, with its own connections, for the bucket or for a prefix in it."""
        from obstore.store import S3Store

        config: Any = {"endpoint": self.endpoint, "access_key_id": KEY, "secret_access_key": SECRET, "region": REGION}
        return S3Store(self.bucket, prefix=prefix, config=config, client_options={"allow_http": True})

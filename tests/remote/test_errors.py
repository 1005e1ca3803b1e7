"""A missing bucket, missing or wrong credentials, refused access and a missing key are distinguished."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from remote.servers import Nginx, SeaweedFS

import zarrlite
from zarrlite import (
    AccessError,
    ArgumentError,
    BucketNotFoundError,
    CredentialsError,
    KeyRefusedError,
    NodeNotFoundError,
    ObjectStore,
    StoreError,
)

READS: dict[str, Callable[[ObjectStore], Any]] = {
    "get": lambda store: store.get("a/b"),
    "range": lambda store: store.get("a/b", zarrlite.ByteRange(1, 3)),
    "several": lambda store: store.get_partial_values([("a", zarrlite.ByteRange(-1)), ("b", zarrlite.ByteRange(2, 2))]),
    "size": lambda store: store.size("a/b"),
    "source": lambda store: store.source("a/b").read_one(),
    "list": lambda store: list(store.list()),
    "list_dir": lambda store: store.list_dir(""),
    "open": lambda store: zarrlite.open(store, mode="r"),
}
WRITES: dict[str, Callable[[ObjectStore], Any]] = {
    "set": lambda store: store.set("a/b", b"1"),
    "set new": lambda store: store.set("a/b", b"1", new=True),
    "update": lambda store: store.update("a/b", lambda old: b"1"),
    "erase": lambda store: store.erase("a/b"),
    "erase several": lambda store: store.erase_values(["a/b", "c"]),
    "create": lambda store: zarrlite.create_group(store),
}
OPERATIONS = {**READS, **WRITES}


@pytest.fixture
def settings(seaweedfs: SeaweedFS) -> dict[str, Any]:
    return {**seaweedfs.settings(), "retries": 1}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_missing_bucket_is_an_error(settings: dict[str, Any], operation: Any) -> None:
    store = ObjectStore("s3://no-such-bucket/a", **settings)
    with pytest.raises(BucketNotFoundError) as caught:
        operation(store)
    assert str(caught.value) == "s3://no-such-bucket does not exist: there is no such bucket"


def test_an_array_in_a_missing_bucket_never_reads_as_fill_values(settings: dict[str, Any]) -> None:
    metadata = zarrlite.create_array(None, shape=(8, 8), dtype="u1", chunks=(4, 4)).metadata
    for codec in ("raw", "sharded"):
        array = zarrlite.Array(ObjectStore("s3://no-such-bucket/a", **settings), codec, metadata)
        for read in (lambda: array[...], lambda: array[1, 1], lambda: array.oindex[[1], [2]]):
            with pytest.raises(BucketNotFoundError):
                read()


def test_a_missing_container_of_azure_is_an_error(make_azure: Any) -> None:
    here = make_azure()
    store = ObjectStore("az://no-such-container/a", **{k: here._options[k] for k in ("endpoint", "credentials")})
    for operation in ("get", "size", "set", "update", "erase", "list"):
        with pytest.raises(BucketNotFoundError, match="az://no-such-container does not exist"):
            OPERATIONS[operation](store)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_wrong_credentials_are_an_error(settings: dict[str, Any], operation: Any) -> None:
    for wrong in ({"secret_access_key": "wrong"}, {"access_key_id": "unknown"}):
        credentials = {**settings["credentials"], **wrong}
        store = ObjectStore(f"s3://{SeaweedFS.bucket}/a", **{**settings, "credentials": credentials})
        # the response to a HEAD request has the status 403, but no body that names the cause
        with pytest.raises((CredentialsError, AccessError), match=r"credentials were refused|access was refused"):
            operation(store)
        with pytest.raises(CredentialsError, match=r"the credentials were refused: (SignatureDoes|InvalidAccessKeyId)"):
            store.get("a")


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_refused_access_is_an_error(settings: dict[str, Any], operation: Any) -> None:
    anonymous = {"endpoint": settings["endpoint"], "anonymous": True, "retries": 1}
    with pytest.raises(AccessError, match="access was refused"):
        operation(ObjectStore(f"s3://{SeaweedFS.bucket}/a", **anonymous))


@pytest.mark.parametrize("operation", ["get", "set", "list", "open", "create"])
def test_missing_credentials_are_an_error(settings: dict[str, Any], operation: str, monkeypatch: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as unused:  # an unused port in place of the cloud's metadata service
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        options = {"endpoint": settings["endpoint"], "config": {"metadata_endpoint": endpoint}, "retries": 1}
        with pytest.raises(CredentialsError) as caught:
            OPERATIONS[operation](ObjectStore(f"s3://{SeaweedFS.bucket}/a", **options))
    assert "there are no credentials; set them in the environment, or pass storage_options" in str(caught.value)


def test_a_missing_key_is_not_an_error(make_s3: Any, make_azure: Any) -> None:
    for make in (make_s3, make_azure):
        store = make()
        assert store.get("a") is None
        assert store.size("a") is None
        store.erase("a")
        with pytest.raises(NodeNotFoundError):
            zarrlite.open(store, mode="r")
        array = zarrlite.create_array(store, shape=(4,), dtype="u1", fill_value=7)
        assert array[...].tolist() == [7, 7, 7, 7]


def test_403_means_a_missing_key_only_if_missing_status_includes_it(settings: dict[str, Any]) -> None:
    anonymous = {"endpoint": settings["endpoint"], "anonymous": True, "retries": 1}
    url = f"s3://{SeaweedFS.bucket}/a"
    with pytest.raises(AccessError, match=r"missing_status=\(403, 404\)"):
        ObjectStore(url, **anonymous).get("a")
    store = ObjectStore(url, missing_status=(403, 404), **anonymous)
    assert store.get("a") is None
    assert store.size("a") is None
    assert store.get_partial_values([("a", zarrlite.ByteRange(1, 2))]) == [None]
    for name in ("set", "erase", "erase several", "update", "list"):
        with pytest.raises(AccessError):
            OPERATIONS[name](store)


def test_a_directory_of_an_http_server_is_refused_by_default(nginx: Nginx) -> None:
    name = uuid.uuid4().hex
    (nginx.files / name / "a").mkdir(parents=True)
    with pytest.raises(AccessError):
        ObjectStore(f"{nginx.url}/{name}").get("a")
    assert ObjectStore(f"{nginx.url}/{name}").get("b") is None


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("ftp://a/b", {}, "store must be a URL (s3, gs, az, http, https) or an obstore store, not 'ftp://a/b'"),
        (5, {}, "store must be a URL or an obstore store, not int"),
        ("s3://", {}, "'s3://' must name a bucket: s3://bucket/path"),
        ("s3://bucket/a", {"concurrency": 0}, "concurrency must be a positive integer, not 0"),
        ("https://a/b?c", {}, "'https://a/b?c' must not have a query or a fragment"),
        (
            "https://a/b",
            {"region": "x"},
            "region must not be passed for 'https://a/b', an HTTP server; pass headers instead",
        ),
        (
            "s3://bucket/a",
            {"config": {"nonsense": 1}},
            "'s3://bucket/a' cannot be opened: Configuration key: 'nonsense' is not valid for store 'S3'.",
        ),
    ],
)
def test_wrong_arguments_are_refused(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        ObjectStore(source, **options)
    assert str(caught.value) == message


def test_unknown_storage_options_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match="storage_options must not contain 'anon'; known options: anonymous, endpoint, region"
    ):
        zarrlite.open("s3://bucket/a", storage_options={"anon": True})


def test_a_store_of_obstore_refuses_additional_settings() -> None:
    from obstore.store import MemoryStore

    with pytest.raises(ArgumentError, match="an obstore store already has its settings; do not pass region, retries"):
        ObjectStore(MemoryStore(), region="x", retries=3)


def test_keys_that_the_service_cannot_represent_are_refused(make_s3: Any) -> None:
    with pytest.raises(KeyRefusedError, match="cannot be written"):
        make_s3().set("a\tb", b"1")


def test_an_update_that_erases_needs_a_single_writer(make_s3: Any) -> None:
    store = make_s3()
    store.set("a", b"1")
    with pytest.raises(StoreError, match=r"must not be erased by an update.*single_writer"):
        store.update("a", lambda old: None)
    assert bytes(store.get("a")) == b"1"


def test_chunks_in_parts_need_a_single_writer(make_s3: Any) -> None:
    from zarrlite.storage_transformers import ConcatParts, Part

    parts = [ConcatParts([Part(".head", 4), Part("")])]
    store = make_s3()
    with pytest.raises(StoreError, match=r"'c/0'.*a chunk of several parts needs a single writer.*single_writer"):
        zarrlite.create_array(store, data=np.arange(4), storage_transformers=parts)
    array = zarrlite.create_array(make_s3(single_writer=True), data=np.arange(4), storage_transformers=parts)
    array[1] = 7
    assert array[...].tolist() == [0, 7, 2, 3]
    assert sorted(array.store.list()) == ["c/0", "c/0.head", "zarr.json"]

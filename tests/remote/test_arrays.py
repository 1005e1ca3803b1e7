"""Arrays and groups in object stores and on HTTP servers."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import numpy as np
import pytest
from remote.servers import Azurite, Nginx, SeaweedFS

import zarrlite
from zarrlite import ObjectStore, StoreError
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd

DATA = np.arange(1, 4097, dtype="u2").reshape(64, 64)
CODECS = {
    "raw": [Bytes()],
    "compressed": [Bytes(), Zstd(), Crc32c()],
    "shards": [ShardingIndexed((4, 8), [Bytes(), Zstd()])],
    "raw shards": [ShardingIndexed((4, 8), [Bytes()], index_location="start")],
}


@pytest.fixture(params=["s3", "azure"])
def make_store(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"make_{request.param}")


@pytest.mark.parametrize("codecs", CODECS.values(), ids=CODECS)
def test_an_array_is_written_changed_and_read(make_store: Any, codecs: Any) -> None:
    array = zarrlite.create_array(make_store(), name="a", data=DATA, chunks=(16, 16), codecs=codecs)
    expected = DATA.copy()
    array[3:20, 7] = expected[3:20, 7] = 5
    array[::9, 60] = expected[::9, 60] = 6
    opened = zarrlite.open_array(array.store, mode="r", path="a")
    assert np.array_equal(opened[...], expected)
    assert opened[3, 7] == 5
    assert np.array_equal(opened.oindex[[1, 40], [2, 50]], expected[np.ix_([1, 40], [2, 50])])


def test_urls_and_storage_options_name_a_store_everywhere(seaweedfs: SeaweedFS) -> None:
    url, options = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}", seaweedfs.settings()
    group = zarrlite.create_group(url, attributes={"units": "K"}, storage_options=options)
    array = zarrlite.create_array(url, name="a", data=DATA, chunks=(32, 32), storage_options=options)
    assert zarrlite.open(url, path="a", mode="r", storage_options=options)[5, 6] == DATA[5, 6]
    assert zarrlite.open_array(url, path="a", storage_options=options).shape == (64, 64)
    assert zarrlite.open_group(url, storage_options=options).attrs["units"] == "K"
    assert [path for path, _ in zarrlite.consolidate_metadata(url, storage_options=options).members()] == ["a"]
    copied = zarrlite.copy(array, f"{url}/copy", storage_options=options)
    assert np.array_equal(copied[...], DATA)
    assert group.store == ObjectStore(url, **options)


def test_an_update_to_nothing_leaves_an_empty_chunk_unless_there_is_a_single_writer(make_store: Any) -> None:
    for codecs in CODECS.values():
        store = make_store()
        array = zarrlite.create_array(store, data=DATA, chunks=(16, 16), codecs=codecs)
        array[:16, 1:16] = 0
        array[:16, 0] = 0
        assert "c/0/0" in set(store.list())
        assert not array[:16, :16].any()
        assert np.array_equal(array[16:], DATA[16:])
        array[:16, :16] = 0  # overwrites the whole chunk; the old value is not needed, so the chunk can be erased
        assert "c/0/0" not in set(store.list())
    single = make_store(single_writer=True)
    array = zarrlite.create_array(single, data=DATA, chunks=(16, 16), codecs=CODECS["shards"])
    array[:16, 1:16] = 0
    array[:16, 0] = 0
    assert "c/0/0" not in set(single.list())


def test_an_array_that_shrinks_on_an_object_store_has_fill_values_when_it_grows_again(make_store: Any) -> None:
    array = zarrlite.create_array(make_store(), data=DATA, chunks=(16, 16), codecs=CODECS["shards"])
    array.resize((20, 64))
    array.resize((64, 64))
    assert np.array_equal(array[:20], DATA[:20])
    assert not array[20:].any()


def test_hierarchies_are_created_listed_copied_and_deleted(make_store: Any) -> None:
    store = make_store()
    group = zarrlite.create_group(store)
    for name in ("a", "b/c", "b/d"):
        group.create_array(name, data=DATA[0], chunks=(16,))
    assert [path for path, _ in zarrlite.open_group(store, mode="r").members(None)] == ["a", "b", "b/c", "b/d"]
    other = zarrlite.copy(group["b"], make_store())
    assert sorted(other) == ["c", "d"]
    del group["b"]
    assert sorted(store.list()) == ["a/c/0", "a/c/1", "a/c/2", "a/c/3", "a/zarr.json", "zarr.json"]
    with pytest.raises(zarrlite.NodeExistsError):
        zarrlite.create_array(store, name="a", shape=3, dtype="u1")
    zarrlite.create_array(store, name="a", shape=3, dtype="u1", overwrite=True)
    assert sorted(store.list()) == ["a/zarr.json", "zarr.json"]


def test_a_store_of_obstore_is_a_store(seaweedfs: SeaweedFS) -> None:
    from obstore.store import S3Store

    settings, prefix = seaweedfs.settings(), uuid.uuid4().hex
    config = {"endpoint": settings["endpoint"], "region": settings["region"], **settings["credentials"]}
    theirs = S3Store(SeaweedFS.bucket, prefix=prefix, config=config, client_options={"allow_http": True})
    array = zarrlite.create_array(theirs, name="a", data=DATA, chunks=(16, 16), codecs=CODECS["shards"])
    array[1, 1] = 9
    assert sorted(array.store.list())[:2] == ["a/c/0/0", "a/c/0/1"]
    assert array.store.list_dir("a/") == (["a/zarr.json"], ["a/c/"])
    ours = ObjectStore(f"s3://{SeaweedFS.bucket}/{prefix}", **settings)
    assert array.store.location() == ours.location()
    assert zarrlite.open(ours, path="a", mode="r")[1, 1] == 9
    assert zarrlite.open(pickle.loads(pickle.dumps(array.store)), path="a", mode="r")[1, 1] == 9
    assert zarrlite.open(theirs, path="a", storage_options={"concurrency": 5}).store.limits.concurrency == 5


def test_all_stores_of_a_bucket_share_its_limit(make_s3: Any, make_azure: Any) -> None:
    places = {store.location("x/")[0] for store in (make_s3(), make_s3(), make_s3(single_writer=True))}
    assert len(places) == 1
    assert make_azure().location()[0] not in places


def test_a_hierarchy_on_an_http_server_is_opened_by_consolidated_metadata(nginx: Nginx) -> None:
    name = uuid.uuid4().hex
    group = zarrlite.create_group(nginx.files / name)
    for child in ("a", "b/c"):
        group.create_array(child, data=DATA, chunks=(16, 16), codecs=CODECS["shards"])
    url = f"{nginx.url}/{name}"
    assert np.array_equal(zarrlite.open_array(url, path="b/c")[...], DATA)
    with pytest.raises(StoreError, match="cannot be listed: it is an HTTP server; open the hierarchy in mode 'r' with"):
        list(zarrlite.open_group(url).members())
    zarrlite.consolidate_metadata(nginx.files / name)
    for mode in ("r", "r+", "a"):
        opened = zarrlite.open_group(url, mode=mode)  # type: ignore[arg-type]
        assert [path for path, _ in opened.members(None)] == ["a", "b", "b/c"]
        assert opened["b/c"][5, 6] == DATA[5, 6]
    with pytest.raises(zarrlite.ReadOnlyError):
        zarrlite.open_array(url, path="a", mode="r+")[0, 0] = 1


def test_a_zip_file_in_an_object_store_is_read_in_parts(seaweedfs: SeaweedFS, nginx: Nginx, tmp_path: Any) -> None:
    with zarrlite.ZipStore(tmp_path / "a.zip", mode="w") as archive:
        zarrlite.create_array(archive, name="a", data=DATA, chunks=(16, 16), codecs=CODECS["shards"])
    value = (tmp_path / "a.zip").read_bytes()
    url, options = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}", seaweedfs.settings()
    ObjectStore(url, **options).set("a.zip", value)
    (nginx.files / f"{uuid.uuid4().hex}.zip").write_bytes(value)
    opened = zarrlite.open(f"{url}/a.zip", mode="r", path="a", storage_options=options)
    assert np.array_equal(opened[...], DATA)
    assert opened[40, 50] == DATA[40, 50]
    (found,) = nginx.files.glob("*.zip")
    assert zarrlite.open(f"{nginx.url}/{found.name}", mode="r", path="a")[40, 50] == DATA[40, 50]


def test_azure_has_no_ranges_that_count_from_the_end(make_azure: Any) -> None:
    store = make_azure()
    store.set("a", b"0123456789")
    assert bytes(store.get("a", zarrlite.ByteRange(-3))) == b"789"
    assert Azurite.container in repr(store)


def test_consolidated_metadata_is_dropped_by_a_change_unless_there_is_a_single_writer(make_s3: Any) -> None:
    for single_writer in (False, True):
        store = make_s3(single_writer=single_writer)
        group = zarrlite.create_group(store)
        group.create_array("a", shape=3, dtype="u1")
        zarrlite.consolidate_metadata(store)
        group["a"].attrs["x"] = 1
        opened = zarrlite.open_group(store, mode="r")
        assert (opened.metadata.consolidated is not None) == single_writer
        assert opened["a"].attrs["x"] == 1

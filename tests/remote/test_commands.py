"""Every command accepts the URLs of object stores and HTTP servers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from remote.servers import Nginx, SeaweedFS

import zarrlite
from zarrlite import ObjectStore
from zarrlite.tools.cli.main import main

DATA = np.arange(64, dtype="u2").reshape(8, 8)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def url(seaweedfs: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a group with two arrays. Sets ZARRLITE_STORAGE_OPTIONS for its server."""
    monkeypatch.setenv("ZARRLITE_STORAGE_OPTIONS", json.dumps(seaweedfs.settings()))
    url = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}"
    group = zarrlite.create_group(url, storage_options=seaweedfs.settings())
    group.create_array("a", data=DATA, chunks=(4, 4))
    group.create_array("b/c", data=DATA, chunks=(4, 4), shards=(8, 8))
    return url


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["info", "{}/a"], "uint16"),
        (["info", "{}"], "Group"),
        (["tree", "{}"], "b"),
        (["ls", "{}"], "a"),
        (["ls", "{}/a"], "c/0/1"),
        (["dump", "{}/a"], "63"),
        (["validate", "{}"], ""),
        (["fsck", "{}"], ""),
        (["fsck", "{}", "--repair"], "no problems"),
        (["header", "{}"], "a  uint16 (8, 8)"),
        (["consolidate", "{}"], "the metadata of 3 nodes"),
        (["explain", "{}/b/c", "c/0/0"], "index"),
        (["diff", "{}/a", "{}/a"], ""),
    ],
    ids=lambda value: "-".join(value).replace("{}", "") if isinstance(value, list) else "",
)
def test_commands_read_from_an_object_store(run: Run, url: str, command: list[str], expected: str) -> None:
    code, out, err = run(*(word.format(url) for word in command))
    assert (code, err) == (0, "")
    assert expected in out


def test_copies_go_to_an_object_store_and_back(run: Run, url: str, tmp_path: Path, seaweedfs: SeaweedFS) -> None:
    assert run("copy", url, tmp_path / "down.zarr")[0] == 0
    assert run("copy", tmp_path / "down.zarr", f"{url}-up")[0] == 0
    assert run("copy", f"{url}-up/b", f"{url}/d")[0] == 0
    assert run("reencode", f"{url}/a", f"{url}/e", "--chunks", "8,8")[0] == 0
    assert run("diff", url, f"{url}-up")[0] == 1  # only the first hierarchy contains the nodes d and e
    group = zarrlite.open_group(url, mode="r", storage_options=seaweedfs.settings())
    assert sorted(path for path, _ in group.members(None)) == ["a", "b", "b/c", "d", "d/c", "e"]
    for path in ("a", "b/c", "d/c", "e"):
        assert np.array_equal(group[path][...], DATA)  # type: ignore[index]
    assert run("copy", f"{url}-up", f"{url}/d")[0] != 0  # the target already exists


def test_a_zip_file_in_an_object_store_is_copied(run: Run, url: str, tmp_path: Path, seaweedfs: SeaweedFS) -> None:
    assert run("copy", url, tmp_path / "a.zip")[0] == 0
    ObjectStore(url, **seaweedfs.settings()).set("a.zip", (tmp_path / "a.zip").read_bytes())
    code, out, _ = run("dump", f"{url}/a.zip/b/c")
    assert code == 0
    assert "63" in out
    assert run("copy", f"{url}/a.zip/b/c", tmp_path / "c.zarr")[0] == 0
    assert np.array_equal(zarrlite.open_array(tmp_path / "c.zarr", mode="r")[...], DATA)


def upload(folder: Path, url: str, seaweedfs: SeaweedFS) -> None:
    store = ObjectStore(url, **seaweedfs.settings())
    for file in filter(Path.is_file, folder.rglob("*")):
        if file.name != "zarr.json":
            store.set(file.relative_to(folder).as_posix(), file.read_bytes())


def write_v2(folder: Path) -> None:
    document = {"zarr_format": 2, "shape": DATA.shape, "chunks": DATA.shape, "dtype": "<u2", "compressor": None}
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(document | {"fill_value": 0, "order": "C", "filters": None}))
    (folder / "0.0").write_bytes(DATA.tobytes())


def test_data_of_other_formats_in_an_object_store_is_read_in_place(
    run: Run, url: str, tmp_path: Path, seaweedfs: SeaweedFS
) -> None:
    zarrlite.n5.create_array(tmp_path / "n5", path="a", shape=(8, 8), chunks=(4, 4), dtype="u2")[...] = DATA
    zarrlite.tiff.create_array(tmp_path / "tiff", shape=(8, 8), chunks=(8, 8), dtype="u2")[...] = DATA
    write_v2(tmp_path / "v2")
    commands: list[tuple[str, ...]] = [("n5",), ("tiff",), ("v2", "--write")]
    for name, *options in commands:
        upload(tmp_path / name, f"{url}/{name}", seaweedfs)
        assert run(name, f"{url}/{name}", *options)[0] == 0
        path = f"{name}/a" if name == "n5" else name
        array = zarrlite.open_array(url, path=path, mode="r", storage_options=seaweedfs.settings())
        assert np.array_equal(array, DATA)
        assert "63" in run("dump", f"{url}/{path}")[1]


def test_a_tiff_file_in_an_object_store_is_copied(run: Run, url: str, tmp_path: Path, seaweedfs: SeaweedFS) -> None:
    zarrlite.tiff.create_array(tmp_path / "tiff", shape=(8, 8), chunks=(8, 8), dtype="u2")[...] = DATA
    upload(tmp_path / "tiff", f"{url}/tiff", seaweedfs)
    for source, target in ((f"{url}/tiff/c/0/0.tiff", tmp_path / "down"), (tmp_path / "down/c/0/0.tiff", f"{url}/up")):
        assert run("tiff", source, target)[0] == 0
        assert "63" in run("dump", target)[1]
        code, _, err = run("tiff", source, target)
        assert (code, err) == (2, f"zarrlite tiff: {target} already exists; choose another target\n")


def test_commands_read_from_an_http_server(run: Run, nginx: Nginx) -> None:
    name = uuid.uuid4().hex
    group = zarrlite.create_group(nginx.files / name)
    group.create_array("b/c", data=DATA, chunks=(4, 4))
    zarrlite.consolidate_metadata(nginx.files / name)
    url = f"{nginx.url}/{name}"
    assert run("info", f"{url}/b/c")[0] == 0
    assert "c" in run("tree", url)[1]
    assert "63" in run("dump", f"{url}/b/c")[1]
    code, _, err = run("ls", f"{url}/b/c")
    assert code == 1
    assert "cannot be listed: it is an HTTP server" in err
    code, _, err = run("info", f"{url}/none")
    assert (code, err) == (3, f"zarrlite info: {url}/none is not a Zarr v3 array or group: it has no zarr.json\n")


def test_wrong_options_in_the_environment_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZARRLITE_STORAGE_OPTIONS", "anonymous")
    code, _, err = run("info", "s3://bucket/a")
    assert code == 2
    assert "ZARRLITE_STORAGE_OPTIONS must be a JSON object such as" in err


@pytest.mark.usefixtures("s3_environment")
def test_the_environment_of_the_service_is_enough(run: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZARRLITE_STORAGE_OPTIONS")
    assert run("info", f"{url}/a")[0] == 0
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    code, _, err = run("info", f"{url}/a")
    assert code == 1
    assert "access was refused" in err

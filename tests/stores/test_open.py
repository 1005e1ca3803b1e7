"""open_store: every kind of argument that users may pass as a store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from zarrlite.errors import ArgumentError
from zarrlite.stores import LocalStore, MappingStore, MemoryStore, ReadOnlyStore, open_store


@pytest.mark.parametrize(
    ("argument", "root"),
    [
        ("/data/a", "/data/a"),
        (Path("/data/a"), "/data/a"),
        ("file:///data/a", "/data/a"),
        ("file:/data/a", "/data/a"),
        ("FILE://LocalHost/data/a", "/data/a"),
        ("file:///data/a%20b%2520%C3%A9%3F", "/data/a b%20é?"),
        ("file:///", "/"),
        ("/data/100%25", "/data/100%25"),
        ("/data/a:b", "/data/a:b"),
        ("/data/../a/", "/a"),
        ("/a://b", "/a:/b"),
    ],
)
def test_paths_and_file_uris_open_local_stores(argument: str | Path, root: str) -> None:
    store = open_store(argument)
    assert isinstance(store, LocalStore)
    assert store.root == root
    assert not store.read_only


def test_relative_paths_are_resolved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("a/b.zarr")
    monkeypatch.chdir("/")
    assert store == LocalStore(tmp_path / "a" / "b.zarr")


def test_a_store_is_returned_unchanged() -> None:
    store = MemoryStore()
    assert open_store(store) is store


def test_mappings_are_written_through() -> None:
    mapping: dict[str, bytes] = {}
    store = open_store(mapping)
    assert isinstance(store, MappingStore)
    store.set("a", b"1")
    assert mapping == {"a": b"1"}


def test_named_memory_stores_are_shared_and_others_are_new() -> None:
    for argument in (None, "memory://"):
        assert isinstance(open_store(argument), MemoryStore)
        assert open_store(argument) is not open_store(argument)
    assert open_store("memory://test_open") is open_store("Memory://test_open")
    assert open_store("memory://test_open") is not open_store("memory://test_open/other")


def test_read_only_applies_to_every_kind_of_store(tmp_path: Path) -> None:
    local = open_store(tmp_path, read_only=True)
    assert isinstance(local, LocalStore)
    assert open_store(local, read_only=True) is local
    for argument in (None, "memory://", {}, MemoryStore(), LocalStore(tmp_path)):
        assert isinstance(open_store(argument, read_only=True), ReadOnlyStore)
    assert open_store(f"file://{tmp_path}", read_only=True).read_only


NOT_A_LOCAL_PATH = (
    "must be file:// followed by an absolute path on this machine, with '?' and '#' written as %3F and %23"
)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (
            "nothing://a",
            "store must be a path or a URL that fsspec knows, not 'nothing://a': Protocol not known: nothing",
        ),
        ("file:a", f"'file:a' {NOT_A_LOCAL_PATH}"),
        ("file://host/a", f"'file://host/a' {NOT_A_LOCAL_PATH}"),
        ("file:///a?b", f"'file:///a?b' {NOT_A_LOCAL_PATH}"),
        ("file:///a#b", f"'file:///a#b' {NOT_A_LOCAL_PATH}"),
        ("file:///%FF", "'file:///%FF' must be percent-encoded UTF-8"),
        ("file:///a%00b", "'/a\\x00b' is not the path of a directory"),
        ("", "'' is not the path of a directory"),
        ("/a\ud800", "'/a\\ud800' is not the path of a directory"),
        (b"/data/a", "store must be a Store, a path, a URI, a mapping or None, not bytes"),
        (5, "store must be a Store, a path, a URI, a mapping or None, not int"),
        ((), "store must be a Store, a path, a URI, a mapping or None, not tuple"),
    ],
)
def test_an_argument_that_names_no_store_is_refused(argument: object, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        open_store(argument)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_file_is_refused_as_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for read_only in (False, True):
        with pytest.raises(ArgumentError) as caught:
            open_store(tmp_path / "file", read_only=read_only)
        assert str(caught.value) == f"a store must be a directory, but {str(tmp_path / 'file')!r} is a file"


def test_importing_stores_is_cheap() -> None:
    # an empty module replaces the package, because zarrlite/__init__.py may import more
    script = """
import sys, types, importlib.machinery
package = types.ModuleType("zarrlite"); package.__path__ = [sys.argv[1]]; sys.modules["zarrlite"] = package
import zarrlite.stores
heavy = {"numpy", "pathlib", "urllib.parse", "concurrent.futures", "importlib.metadata", "multiprocessing", "tempfile"}
print(sorted(heavy & set(sys.modules)))
"""
    package = str(Path(sys.modules["zarrlite.stores"].__file__).parent.parent)
    process = subprocess.run([sys.executable, "-S", "-c", script, package], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


@pytest.mark.parametrize("argument", [None, "memory://", "a.zarr", {}, MemoryStore()], ids=repr)
def test_options_of_a_store_that_has_none_are_refused(argument: object) -> None:
    with pytest.raises(ArgumentError) as caught:
        open_store(argument, storage_options={"anonymous": True})
    reason = "only URLs of object stores, HTTP servers and fsspec filesystems have options"
    assert str(caught.value) == f"storage_options must be None for {argument!r}: {reason}"

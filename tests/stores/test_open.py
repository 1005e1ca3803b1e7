"""What users may pass as a store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from zarrlite.errors import ArgumentError
from zarrlite.stores import LocalStore, MappingStore, MemoryStore, ReadOnlyStore, open_store


@pytest.mark.parametrize(
    ("given", "root"),
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
def test_paths_and_file_uris(given: str | Path, root: str) -> None:
    store = open_store(given)
    assert isinstance(store, LocalStore)
    assert store.root == root
    assert not store.read_only


def test_relative_paths_are_those_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("a/b.zarr")
    monkeypatch.chdir("/")
    assert store == LocalStore(tmp_path / "a" / "b.zarr")


def test_stores_pass() -> None:
    store = MemoryStore()
    assert open_store(store) is store


def test_mappings_are_written_through() -> None:
    mapping: dict[str, bytes] = {}
    store = open_store(mapping)
    assert isinstance(store, MappingStore)
    store.set("a", b"1")
    assert mapping == {"a": b"1"}


def test_memory() -> None:
    for given in (None, "memory://"):
        assert isinstance(open_store(given), MemoryStore)
        assert open_store(given) is not open_store(given)
    assert open_store("memory://test_open") is open_store("Memory://test_open")
    assert open_store("memory://test_open") is not open_store("memory://test_open/other")


def test_read_only(tmp_path: Path) -> None:
    local = open_store(tmp_path, read_only=True)
    assert isinstance(local, LocalStore)
    assert open_store(local, read_only=True) is local
    for given in (None, "memory://", {}, MemoryStore(), LocalStore(tmp_path)):
        assert isinstance(open_store(given, read_only=True), ReadOnlyStore)
    assert open_store(f"file://{tmp_path}", read_only=True).read_only


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "s3://bucket/a",
            "'s3://bucket/a': stores are opened by file:// and memory:// URIs and by paths, not by s3://",
        ),
        ("file:a", "'file:a' is not file:///an/absolute/path of this machine (a '?' or '#' is %3F or %23)"),
        (
            "file://host/a",
            "'file://host/a' is not file:///an/absolute/path of this machine (a '?' or '#' is %3F or %23)",
        ),
        ("file:///a?b", "'file:///a?b' is not file:///an/absolute/path of this machine (a '?' or '#' is %3F or %23)"),
        ("file:///a#b", "'file:///a#b' is not file:///an/absolute/path of this machine (a '?' or '#' is %3F or %23)"),
        ("file:///%FF", "'file:///%FF' is not UTF-8 behind its percent signs"),
        ("file:///a%00b", "'/a\\x00b' is not the path of a directory"),
        ("", "'' is not the path of a directory"),
        (b"/data/a", "a store is a Store, a path, a URI, a mutable mapping or None, not bytes"),
        (5, "a store is a Store, a path, a URI, a mutable mapping or None, not int"),
        ((), "a store is a Store, a path, a URI, a mutable mapping or None, not tuple"),
    ],
)
def test_what_is_refused(given: object, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        open_store(given)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_importing_stores_is_cheap() -> None:
    # Loaded without zarrlite/__init__.py, which imports more.
    script = """
import sys, types, importlib.machinery
package = types.ModuleType("zarrlite"); package.__path__ = [sys.argv[1]]; sys.modules["zarrlite"] = package
import zarrlite.stores
heavy = {"numpy", "pathlib", "urllib.parse", "concurrent.futures", "importlib.metadata", "multiprocessing", "tempfile"}
print(sorted(heavy & set(sys.modules)))
"""
    package = str(Path(sys.modules["zarrlite.stores"].__file__).parent.parent)
    done = subprocess.run([sys.executable, "-S", "-c", script, package], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

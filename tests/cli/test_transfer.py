"""`zarrlite copy` and `zarrlite reencode`: the target contains a complete node, or none at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import zarrlite
from zarrlite.stores import LocalStore
from zarrlite.tools.transfer import blocks, copying
from zarrlite.tools.transfer.journal import JOURNAL


@pytest.fixture
def interrupt(monkeypatch):
    """Return a function that makes writes to a directory raise KeyboardInterrupt after the first `count` writes."""

    def interrupt(directory: str, count: int) -> None:
        original = LocalStore.set
        remaining = [count]

        def write(self, key, value):
            if JOURNAL not in key and self.root.endswith(directory):
                remaining[0] -= 1
                if remaining[0] < 0:
                    raise KeyboardInterrupt
            original(self, key, value)

        monkeypatch.setattr(LocalStore, "set", write)
        monkeypatch.setattr(LocalStore, "change", zarrlite.Store.change)  # the default implementation calls `set`

    return interrupt


def files(directory: str) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in Path(directory).rglob("*") if p.is_file()}


@pytest.mark.parametrize("link", ["raw/image/c/1/1", "raw/image/c/1", "raw/image", "raw/image/zarr.json"])
def test_a_symlink_out_of_the_store_is_reported_and_nothing_is_copied(hierarchy, run, link):
    Path("a.zarr", link).rename("outside")
    Path("a.zarr", link).symlink_to(Path("outside").resolve())
    ran = run("copy", "a.zarr", "b.zarr")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"zarrlite copy: '{link}' must not leave ")
    assert not Path("b.zarr").exists()
    ran = run("fsck", "a.zarr", "--json")
    assert ran.code == 1
    (problem,) = ran.json["problems"]
    assert problem["key"].startswith(link)
    assert problem["kind"] == "unreadable"
    assert "but a symlink leads out of it" in problem["message"]


def test_copied_objects_are_identical(hierarchy, run):
    assert run("copy", "a.zarr", "b.zarr") == (
        0,
        f"copied 12 objects, {sum(map(len, files('a.zarr').values()))} bytes\n",
        "",
    )
    assert files("a.zarr") == files("b.zarr")


def test_a_bad_member_is_copied_and_named(hierarchy, run):
    Path("a.zarr/raw/zarr.json").write_bytes(b"{")
    ran = run("copy", "a.zarr", "b.zarr")
    assert ran.code == 0
    assert ran.err.startswith("zarrlite: warning: /: the node 'raw' is copied unchecked: raw/zarr.json#: is not JSON")
    assert files("a.zarr") == files("b.zarr")


def test_a_copy_into_a_hierarchy_creates_the_groups_above(hierarchy, run):
    zarrlite.consolidate_metadata("a.zarr")
    assert run("copy", "a.zarr/raw/image", "a.zarr/deep/er").code == 0
    assert np.array_equal(zarrlite.open("a.zarr", mode="r")["deep/er"], zarrlite.open("a.zarr/raw/image", mode="r"))
    assert run("validate", "a.zarr").code == 0


REFUSED = {
    ("copy", "a.zarr", "b.zarr"): "the target already exists; pass --overwrite to replace it",
    ("copy", "a.zarr", "junk"): "the target must be empty or a Zarr v3 node; choose another target",
    ("copy", "a.zarr", "junk", "--overwrite"): "the target must be empty or a Zarr v3 node; choose another target",
    ("copy", "a.zarr", "a.zarr/x"): "the source and the target must not contain each other; choose another target",
    (
        "copy",
        "a.zarr/raw",
        "a.zarr",
        "--overwrite",
    ): "the source and the target must not contain each other; choose another target",
    (
        "reencode",
        "a.zarr/raw/image",
        "c",
        "--chunks",
        "0",
    ): "--chunks must have 2 lengths of at least 1, such as 64,64, not '0'",
    (
        "reencode",
        "a.zarr/raw/image",
        "c",
        "--chunks",
        "1,2,3",
    ): "--chunks must have 2 lengths of at least 1, such as 64,64, not '1,2,3'",
    (
        "reencode",
        "a.zarr/raw/image",
        "c",
        "--chunks",
        "1,x",
    ): "--chunks must have 2 lengths of at least 1, such as 64,64, not '1,x'",
    (
        "reencode",
        "a.zarr/raw/image",
        "c",
        "--codecs",
        "zstd:9",
    ): "--codecs: '9' must be member=value, as in zstd:level=9",
    ("reencode", "a.zarr/raw/image", "c", "--codecs", "[1"): (
        "--codecs: '[1' is not JSON: Expecting ',' delimiter: line 1 column 3 (char 2)"
    ),
    ("reencode", "a.zarr/raw/image", "c", "--keys", "v2,v2"): "--keys must be a single extension, not 'v2,v2'",
    ("reencode", "a.zarr/raw/image", "c", "--shards", "9,9"): (
        "new array#/codecs/0/configuration/chunk_shape/0: must divide 9, the length of the shard, evenly; 4 does not"
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.items(), ids=map(" ".join, REFUSED))
def test_refused_commands_change_nothing(arguments, message, hierarchy, run):
    run("copy", "a.zarr/raw", "b.zarr")
    Path("junk").mkdir()
    Path("junk/file").write_text("mine")
    before = files(".")
    assert run(*arguments) == (2, "", f"zarrlite {arguments[0]}: {message}\n")
    assert files(".") == before


def test_an_unknown_codec_makes_the_exit_code_4(hierarchy, run):
    assert run("reencode", "a.zarr/raw/image", "c", "--codecs", "nope").code == 4
    assert not os.path.exists("c")


def test_overwrite_replaces_an_existing_node(hierarchy, run):
    zarrlite.create_array("b.zarr", data=np.ones((50, 50)), chunks=(1, 1))
    assert run("copy", "a.zarr", "b.zarr", "--overwrite").code == 0
    assert files("a.zarr") == files("b.zarr")


@pytest.mark.parametrize("count", [0, 5, 10])
def test_an_interrupted_copy_cannot_be_opened_and_is_resumed(count, hierarchy, run, interrupt, monkeypatch):
    monkeypatch.setattr(copying, "_BATCH", 2)
    with monkeypatch.context():
        interrupt("b.zarr", count)
        ran = run("copy", "a.zarr", "b.zarr")
        assert ran == (130, "", "zarrlite copy: interrupted; rerun the same command to resume\n")
        monkeypatch.undo()
    monkeypatch.chdir(hierarchy)
    assert run("info", "b.zarr").code == 3
    other = "zarrlite copy: the target is an unfinished transfer by another command; rerun that, or pass --overwrite\n"
    assert run("copy", "a.zarr/raw", "b.zarr") == (2, "", other)
    resumed = run("copy", "a.zarr", "b.zarr", "--json").json
    assert resumed["objects"] == 12
    # counts the objects in complete batches, but no documents
    assert resumed["objects_done_before"] == {0: 0, 5: 4, 10: 9}[count]
    assert files("a.zarr") == files("b.zarr")


def test_a_copy_is_not_resumed_if_the_source_has_changed(hierarchy, run, interrupt, monkeypatch):
    interrupt("b.zarr", 4)
    assert run("copy", "a.zarr", "b.zarr").code == 130
    monkeypatch.undo()
    monkeypatch.chdir(hierarchy)
    zarrlite.open("a.zarr/raw/image")[...] = 5
    message = "zarrlite copy: the source has changed since the transfer began; pass --overwrite to start over\n"
    assert run("copy", "a.zarr", "b.zarr") == (2, "", message)
    assert run("copy", "a.zarr", "b.zarr", "--overwrite").code == 0
    assert files("a.zarr") == files("b.zarr")


def test_a_copy_is_not_finished_if_the_source_changes_during_it(hierarchy, run, monkeypatch):
    original = LocalStore.set

    def write(self, key, value):
        original(self, key, value)
        if self.root.endswith("b.zarr") and key.endswith("c/1/1"):
            original(LocalStore("a.zarr"), "raw/image/c/0/0", b"another")

    monkeypatch.setattr(LocalStore, "set", write)
    message = "zarrlite copy: the source changed during the transfer; start over with --overwrite\n"
    assert run("copy", "a.zarr", "b.zarr") == (1, "", message)
    assert run("info", "b.zarr").code == 3


def test_a_damaged_journal_is_not_resumed(hierarchy, run):
    for text in ("", "[]", '{"plan": 1}', '{"done": "x"}'):
        Path("b.zarr").mkdir(exist_ok=True)
        Path(f"b.zarr/{JOURNAL}").write_text(text)
        assert run("copy", "a.zarr", "b.zarr").code == 2
    assert run("copy", "a.zarr", "b.zarr", "--overwrite").code == 0
    assert files("a.zarr") == files("b.zarr")


REENCODED = {
    ("--chunks", "3"): {"chunks": (3, 3), "shards": None},
    ("--chunks", "2,5", "--shards", "4,10"): {"chunks": (2, 5), "shards": (4, 10)},
    ("--codecs", "zstd:level=9,crc32c"): {"codecs": ["bytes", "zstd", "crc32c"]},
    ("--codecs", "none"): {"codecs": ["bytes"]},
    ("--codecs", "transpose:order=[1,0],zstd"): {"codecs": ["transpose", "bytes", "zstd"]},
    ("--codecs", '["bytes", {"name": "gzip", "configuration": {"level": 1}}]'): {"codecs": ["bytes", "gzip"]},
    ("--keys", "v2:separator=/"): {"keys": "v2"},
    ("--keys", "suffix:suffix=.bin"): {"keys": "suffix"},
    ("--transformers", "sharding:chunks_per_shard=[2,2]"): {"shards": (8, 8)},
    (
        "--transformers",
        '{"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ""}, {"key_suffix": ".t", "size": 4}]}}',
    ): {"chunks": (4, 4)},
}


@pytest.mark.parametrize(("flags", "expected"), REENCODED.items(), ids=map(" ".join, REENCODED))
def test_reencoded_arrays_have_the_same_values_and_the_requested_metadata(flags, expected, hierarchy, run, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 200)
    zarrlite.open("a.zarr/raw/image").attrs["unit"] = "m"
    ran = run("reencode", "a.zarr/raw/image", "new.zarr", *flags)
    assert (ran.code, ran.err) == (0, "")
    old, new = zarrlite.open("a.zarr/raw/image", mode="r"), zarrlite.open("new.zarr", mode="r")
    assert np.array_equal(old, new)
    assert (new.attrs.asdict(), new.metadata.dimension_names) == ({"unit": "m"}, ("y", "x"))
    actual = {
        "chunks": new.chunks,
        "shards": new.shards,
        "codecs": [c.name for c in new.metadata.codecs],
        "keys": new.metadata.chunk_key_encoding.name,
    }
    assert {name: actual[name] for name in expected} == expected
    assert run("diff", "a.zarr/raw/image", "new.zarr", "--values").code == 0
    assert JOURNAL not in files("new.zarr")


def test_metadata_without_an_option_is_kept(hierarchy, run):
    first = ("--chunks", "2,2", "--shards", "4,4", "--codecs", "crc32c")
    assert run("reencode", "a.zarr/raw/image", "s.zarr", *first).code == 0
    assert run("reencode", "s.zarr", "t.zarr", "--chunks", "1,2").code == 0
    t = zarrlite.open("t.zarr", mode="r")
    assert (t.chunks, t.shards, [c.name for c in t.metadata.codecs[0].codecs]) == ((1, 2), (4, 4), ["bytes", "crc32c"])
    assert run("reencode", "s.zarr", "u.zarr", "--codecs", "none").code == 0
    assert zarrlite.open("u.zarr", mode="r").shards == (4, 4)
    assert run("reencode", "s.zarr", "v.zarr", "--shards", "none").code == 0
    v = zarrlite.open("v.zarr", mode="r")
    assert (v.chunks, v.shards, [c.name for c in v.metadata.codecs]) == ((2, 2), None, ["bytes", "crc32c"])
    assert run("reencode", "s.zarr", "w.zarr").code == 0
    assert files("s.zarr") == files("w.zarr")


PARTS = {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ""}, {"key_suffix": ".t", "size": 4}]}}


@pytest.mark.parametrize(
    "flags",
    [("--chunks", "3,3"), ("--shards", "8,8"), ("--chunks", "3,3", "--transformers", json.dumps(PARTS))],
    ids=["chunks", "shards", "parts"],
)
@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_an_interrupted_reencoding_is_resumed(flags, count, hierarchy, run, interrupt, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100)
    interrupt("new.zarr", count)
    assert run("reencode", "a.zarr/raw/image", "new.zarr", *flags).code == 130
    monkeypatch.undo()
    monkeypatch.chdir(hierarchy)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100)
    assert run("info", "new.zarr").code == 3
    assert run("reencode", "a.zarr/raw/image", "new.zarr", *flags).code == 0
    assert run("diff", "a.zarr/raw/image", "new.zarr", "--values").code == 0
    assert JOURNAL not in files("new.zarr")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_scalars_and_empty_arrays_are_reencoded(shape, hierarchy, run):
    zarrlite.create_array("x.zarr", data=np.ones(shape, "i2"))
    assert run("reencode", "x.zarr", "y.zarr", "--codecs", "gzip").code == 0
    assert np.array_equal(zarrlite.open("y.zarr", mode="r"), np.ones(shape, "i2"))


def test_reencode_refuses_a_group(hierarchy, run):
    message = "a.zarr/raw is a group, not an array; name one of its arrays, such as a.zarr/raw/image"
    assert run("reencode", "a.zarr/raw", "c.zarr") == (3, "", f"zarrlite reencode: {message}\n")


def test_a_target_that_cannot_be_written_is_reported_in_one_line(hierarchy, run):
    Path("file").write_text("")
    ran = run("copy", "a.zarr", "file/b.zarr")
    assert ran == (1, "", f"zarrlite copy: {hierarchy}/file/b.zarr/ cannot be written: Not a directory\n")


# Zip files


@pytest.mark.parametrize("name", ["b.zip", "b.ozx"])
def test_a_hierarchy_is_copied_to_a_zip_file_and_back(hierarchy, run, name):
    ran = run("copy", "a.zarr", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"copied 12 objects, {sum(map(len, files('a.zarr').values()))} bytes\n"
    assert sorted(os.listdir()) == ["a.zarr", name]
    assert run("copy", name, "c.zarr").code == 0
    assert files("c.zarr") == files("a.zarr")
    assert run("diff", name, "a.zarr").code == 0
    assert run("fsck", name).out == "no problems in 12 objects\n"
    assert run("validate", name).out == "3 documents, 0 faults\n"
    assert run("tree", name).out == run("tree", "a.zarr").out
    assert run("copy", "a.zarr", name).err.startswith("zarrlite copy: the target already exists")
    assert run("copy", "a.zarr", name, "--overwrite").code == 0


def test_a_path_into_a_zip_file_leads_to_a_node(hierarchy, run):
    run("copy", "a.zarr", "b.zip")
    assert "Name            : /raw/image\n" in run("info", "b.zip/raw/image").out
    assert run("copy", "a.zarr/raw", "b.zip/second").code == 0
    assert run("reencode", "b.zip/raw/image", "c.zip/x", "--chunks", "5,5").code == 0
    assert run("dump", "c.zip/x").out == run("dump", "a.zarr/raw/image").out
    assert run("explain", "b.zip/second/image", "c/0/0").code == 0
    assert run("info", "b.zip/none").err == "zarrlite info: b.zip/none does not exist\n"
    assert run("info", "none.zip").err == "zarrlite info: none.zip does not exist\n"
    assert sorted(os.listdir()) == ["a.zarr", "b.zip", "c.zip"]


def test_an_interrupted_copy_leaves_the_old_zip_file(hierarchy, run, monkeypatch):
    run("copy", "a.zarr", "b.zip")
    before = Path("b.zip").read_bytes()

    def interrupted(self, key, value, new=False):
        if key.endswith("c/1/1"):
            raise KeyboardInterrupt
        return original(self, key, value, new)

    original = zarrlite.ZipStore.set
    monkeypatch.setattr(zarrlite.ZipStore, "set", interrupted)
    ran = run("copy", "a.zarr", "b.zip", "--overwrite")
    assert (ran.code, ran.err) == (130, "zarrlite copy: interrupted; the zip file was not changed\n")
    assert Path("b.zip").read_bytes() == before
    assert sorted(os.listdir()) == ["a.zarr", "b.zip"]


@pytest.mark.parametrize("codecs", ["blosc", "bytes,blosc", "blosc:shuffle=shuffle:cname=zstd"])
def test_blosc_without_settings_shuffles_the_elements_of_the_source(codecs, hierarchy, run):
    assert run("reencode", "a.zarr/raw/image", "b.zarr", "--codecs", codecs).code == 0
    codec = zarrlite.open("b.zarr", mode="r").metadata.codecs[-1]
    assert (codec.name, codec.cname, codec.shuffle, codec.typesize) == ("blosc", "zstd", "shuffle", 8)
    assert run("diff", "a.zarr/raw/image", "b.zarr", "--values").code == 0

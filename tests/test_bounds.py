"""Time and memory are in proportion to what is stored, read or asked for, whatever a document or a chunk claims.

Memory is limited by the operating system, in a process of its own; costs are counted. Nothing here is timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import zarrlite

ROOT = Path(zarrlite.__file__).parents[1]
PRELUDE = """
import json, resource, numpy as np, zarrlite
from zarrlite import MemoryStore

def limit_memory(megabytes):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20,) * 2)

def document(node_type, **members):
    return {"zarr_format": 3, "node_type": node_type, **members}
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of memory need Linux")


def run(code: str, **environment: str) -> str:
    """Run code in a process of its own, and return its output."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("call", ["list(group.members(None))", "group.tree()", "group.info", "group._repr_html_()"])
def test_a_long_chain_of_consolidated_groups_costs_no_more_than_its_text(call: str) -> None:
    run(f"""
        paths = ["a"]
        while len(paths) < 1500:
            paths.append(paths[-1] + "/a")
        copies = {{"kind": "inline", "must_understand": False, "metadata": {{path: document("group") for path in paths}}}}
        root = document("group", consolidated_metadata=copies)
        store = MemoryStore({{"zarr.json": json.dumps(root).encode()}})
        group = zarrlite.open_group(store, mode="r")
        limit_memory(128)
        {call}
    """)


def test_a_deep_hierarchy_is_walked_without_recursion() -> None:
    run("""
        from zarrlite.layout import check
        group = json.dumps(document("group")).encode()
        store = MemoryStore({"/".join(["a"] * n + ["zarr.json"]): group for n in range(1200)})
        group = zarrlite.open_group(store, mode="r")
        assert group.nmembers(None) == 1199
        assert group.tree().count("\\n") == 1199
        assert list(check(store)) == []
        zarrlite.copy(group, MemoryStore())
        zarrlite.consolidate_metadata(store)
    """)


def test_only_the_attributes_that_are_shown_are_formatted() -> None:
    run("""
        attributes = {str(i): list(range(100)) for i in range(20_000)}
        group = zarrlite.create_group(MemoryStore(), attributes=attributes)
        array = zarrlite.create_array(MemoryStore(), shape=(), dtype="i1", attributes=attributes)
        limit_memory(16)
        assert len(group._repr_html_()) < 10_000
        assert len(array._repr_html_()) < 50_000
    """)


@pytest.mark.parametrize("length", [2**63 - 1, 10**18])
def test_shapes_beyond_every_float_are_described(length: int, capsys: Any, tmp_path: Path) -> None:
    from zarrlite.tools.cli.main import main

    array = zarrlite.create_array(tmp_path / "a", shape=(length,) * 64, chunks=(1,) * 64, dtype="f8")
    size = f"about 2**{(8 * length**64).bit_length() - 1}"
    assert size in str(array.info)
    assert size in array._repr_html_()
    assert array.to_svg().startswith("<svg")
    assert main(["info", str(tmp_path / "a")]) == 0
    assert main(["info", "--storage", "--json", str(tmp_path / "a")]) == 0

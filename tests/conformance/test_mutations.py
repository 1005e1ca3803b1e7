"""The planted bugs in tests/mutations: the list matches the code, and a run reports which of them are caught.

`python -m tests.mutations` plants all of them.
"""

from __future__ import annotations

import collections

import pytest

from tests.mutations.run import PLANTED, ROOT, Planted, copied, plant

FUTURE = "from __future__ import annotations"
HARMLESS = Planted("codecs/crc32c.py", FUTURE, f"{FUTURE}  # harmless", [])
SAMPLE = PLANTED[:: len(PLANTED) // 3][:3]


@pytest.mark.parametrize("bug", [*PLANTED, HARMLESS], ids=lambda bug: f"{bug.file}: {bug.old}")
def test_every_bug_can_be_planted(bug: Planted) -> None:
    assert (ROOT / "zarrlite" / bug.file).read_text("utf-8").count(bug.old) == 1
    assert bug.new != bug.old


def test_every_module_that_implements_the_format_has_bugs() -> None:
    assert len(PLANTED) >= 60
    planted = collections.Counter(bug.file.split("/")[0].removesuffix(".py") for bug in PLANTED)
    assert set(planted) >= {
        *("metadata", "extensions", "names", "pipeline", "shards", "selections", "buffers", "chunks", "stores"),
        *("data_types", "chunk_grids", "chunk_key_encodings", "codecs", "storage_transformers"),
    }
    files = {bug.file for bug in PLANTED}
    assert files >= {f"extensions/{name}.py" for name in ("config", "extension", "registry")}
    assert files >= {"shards/format.py", "shards/writing.py", "selections/selection.py", "buffers/source.py"}
    assert "buffers/ranges.py" in files
    codecs = {bug.file for bug in PLANTED if bug.file.startswith("codecs/")}
    modules = {f"codecs/{path.name}" for path in (ROOT / "zarrlite/codecs").glob("*.py")}
    assert modules - codecs == {"codecs/__init__.py", "codecs/n5_lz4.py", "codecs/zarr_names.py"}


def test_readme_of_the_fixtures_states_the_number_of_bugs() -> None:
    readme = (ROOT / "spec_fixtures/README.md").read_text("utf-8")
    assert f"{len(PLANTED)} small bugs are listed in `tests/mutations/planted.json`" in readme


def test_corpus_catches_bugs_but_not_harmless_changes() -> None:
    with copied() as directory:
        assert plant(HARMLESS, directory) == ""
        for bug in SAMPLE:
            assert plant(bug, directory).startswith(("core/", "optional/", "proposals/")), bug

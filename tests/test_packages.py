"""The packages: what a wheel and a source distribution contain, and their metadata."""

from __future__ import annotations

import email
import importlib.metadata
import re
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import hatchling.build
import pytest

from zarrlite.tools.conformance import cases

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "spec_fixtures"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, zipfile.ZipFile]:
    """Build the wheels of zarrlite and of zarrlite-conformance."""
    folder = tmp_path_factory.mktemp("wheels")
    built = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, root in {"zarrlite": ROOT, "zarrlite-conformance": CORPUS}.items():
            patch.chdir(root)
            built[name] = zipfile.ZipFile(folder / hatchling.build.build_wheel(str(folder)))
    return built


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_string(wheel.read(name).decode())


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_of_the_library_has_all_of_its_files_and_no_cases(wheels):
    names = {name for name in wheels["zarrlite"].namelist() if ".dist-info/" not in name}
    assert names == files(ROOT / "zarrlite")
    assert "zarrlite/py.typed" in names
    assert sum(info.compress_size for info in wheels["zarrlite"].infolist()) < 800_000  # bytes


def test_the_wheel_of_the_corpus_has_every_case(wheels, tmp_path):
    wheels["zarrlite-conformance"].extractall(tmp_path)
    packed = cases.load(tmp_path / "zarrlite_conformance")
    assert [case.data for case in packed.cases] == [case.data for case in cases.load().cases]
    assert not list(tmp_path.rglob("*.py"))
    assert metadata(wheels["zarrlite-conformance"])["Version"] == packed.version
    assert (CORPUS / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_description_has_no_relative_links(wheels):
    text = metadata(wheels["zarrlite"]).get_payload()
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert targets
    assert all(target.startswith(("https://", "#")) for target in targets)
    for target in targets:
        file = target.removeprefix("https://zarrlite.example/source/").partition("#")[0]
        assert file.startswith("https://") or (ROOT / file).exists()


def test_the_metadata_names_every_tested_version_of_python(wheels):
    read = metadata(wheels["zarrlite"])
    versions = {name.rpartition(" ")[2] for name in read.get_all("Classifier") if ":: 3." in name}
    assert versions == {"3.11", "3.12", "3.13", "3.14"}
    assert read["Author"] == "zarrlite developers"
    assert len(read.get_all("Project-URL")) == 5


def test_every_extra_is_documented():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs/install.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(project["optional-dependencies"])


def test_the_source_distribution_has_what_the_tests_need(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / hatchling.build.build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("zarrlite/__init__.py", "tests/conftest.py", "spec_fixtures/suite.json", "docs/cli.md", "LICENSE"):
        assert name in names
    assert {"mkdocs.yml", "SECURITY.md", "CITATION.cff"} <= names


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert importlib.metadata.version("zarrlite") == version
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == version
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()

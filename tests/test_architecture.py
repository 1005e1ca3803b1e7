"""The layers of the package: which module may import which, checked on the import graph.

Rules
- `LAYERS` orders the packages and top-level modules of `zarrlite/`. A module may import only from its own package and
  from lower ones. Imports under `if TYPE_CHECKING:` count like any other.
- There are no import cycles. Imports inside functions do not count here, because they run after both modules are
  loaded.
- An import inside a function may refer to a higher layer only if `UPWARD` lists it. Each entry of `UPWARD` must exist.
- `NOT_YET` lists the current violations and is compared exactly: a change that fixes one removes its entry.

The graph is read from the source with `ast`. Modules that are loaded by a computed name (the table of built-in
extensions in `extensions.registry`, lazy names of a package) are not in the graph; `import_module("zarrlite.x")` is.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "zarrlite"

# From the lowest to the highest layer; within a line, each name is higher than the names to its left.
LAYERS = (
    ("errors", "names", "tuning", "guard", "threads", "cached"),
    ("extensions", "selections", "buffers", "libraries"),
    ("data_types", "chunk_grids", "chunk_key_encodings", "stores"),
    ("pipeline",),
    ("shards",),
    ("codecs",),
    ("storage_transformers",),
    ("metadata",),
    ("formats",),
    ("chunks",),
    ("nodes",),
    ("n5", "tiff", "v2", "dtype"),
    ("core",),
    ("adapters",),
    ("tools",),
    ("__init__", "bridge", "layout", "storage", "testing", "__main__"),
)
TOP_LEVEL_MODULES = {*LAYERS[0], "n5", "tiff", "v2", "dtype", *LAYERS[-1]}  # all other names are folders
RANK = {room: rank for rank, room in enumerate(room for layer in LAYERS for room in layer)}

# The permitted imports from a higher layer, all of them inside functions, as (importer, imported).
UPWARD = {
    ("nodes.array", "adapters.dask"),  # `to_dask` uses the adapter
    ("nodes.opening", "tools.transfer.copying"),  # `copy(dask=...)` uses the journal of the `copy` command
    ("nodes.node", "tools.pictures"),  # `_repr_html_` draws the node
    ("tools.cli.main", "__init__"),  # `zarrlite --version` prints `__version__`
}

# Programs that users run by their path; they may use only the public names of the library.
PROGRAMS = ("tools.conformance.harnesses", "tools.demo")

NOT_YET: set[str] = set()


class Import(NamedTuple):
    """An import of one module of the package by another."""

    importer: str  # names are relative to the package: "stores.base", "stores"; the package itself is "__init__"
    imported: str
    in_function: bool


def find_modules(root: Path) -> dict[str, Path]:
    """Return the modules of the package in `root`, by their names relative to it."""
    modules = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if len(parts) > 1 and parts[-1] == "__init__":
            parts = parts[:-1]
        modules[".".join(parts)] = path
    return modules


def read_imports(root: Path) -> set[Import]:
    """Return every import of one module of the package in `root` by another one."""
    modules = find_modules(root)
    imports = set()
    for importer, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        folder = (root.name, *path.parent.relative_to(root).parts)
        for node, in_function in _walk(tree):
            for name in _imported_names(node, folder):
                imported = _resolve(name, root.name, modules)
                if imported is not None and imported != importer:
                    imports.add(Import(importer, imported, in_function))
    return imports


def _walk(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node of a module, and whether it is inside a function."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, in_function = pending.pop()
        yield node, in_function
        in_function = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        pending.extend((child, in_function) for child in ast.iter_child_nodes(node))


def _imported_names(node: ast.AST, folder: tuple[str, ...]) -> list[str]:
    """Return the absolute names that a node imports: "zarrlite.stores.base", or "zarrlite.stores.base.Store"."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        parts = folder[: len(folder) + 1 - node.level] if node.level else ()
        base = ".".join((*parts, *([node.module] if node.module else [])))
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and _name_of(node.func) == "import_module":
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def _name_of(function: ast.expr) -> str:
    """Return the last name of a dotted expression, such as "import_module" in `importlib.import_module`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _resolve(name: str, package: str, modules: Iterable[str]) -> str | None:
    """Return the module that an absolute dotted name denotes or belongs to. Returns None for other packages."""
    first, *parts = name.split(".")
    if first != package:
        return None
    while parts and ".".join(parts) not in modules:
        parts.pop()
    return ".".join(parts) or "__init__"


def find_circles(imports: Iterable[Import]) -> list[list[str]]:
    """Return each set of modules that import each other, directly or through others, as a sorted list."""
    graph: dict[str, set[str]] = {}
    for importer, imported, in_function in imports:
        if not in_function:
            graph.setdefault(importer, set()).add(imported)
    reached = {module: _reachable(graph, module) for module in graph}
    circles = {
        tuple(sorted(other for other in reached[module] if module in reached.get(other, ())))
        for module in graph
        if module in reached[module]
    }
    return [list(circle) for circle in sorted(circles)]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that `start` imports, directly or through others."""
    reached: set[str] = set()
    pending = [start]
    while pending:
        new = graph.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached


def find_violations(root: Path, upward: Set[tuple[str, str]] = frozenset()) -> set[str]:
    """Return one sentence for each violation of this module's rules by the package in `root`."""
    violations = set()
    for module, path in find_modules(root).items():
        room = module.split(".")[0]
        if room not in RANK:
            violations.add(f"{room} is not in the list of layers")
        elif (path.parent == root) != (room in TOP_LEVEL_MODULES):
            violations.add(f"{room} must be a {'module' if room in TOP_LEVEL_MODULES else 'folder'}")
    imports = read_imports(root)
    unused = set(upward)
    for importer, imported, in_function in imports:
        if not _points_upwards(importer, imported):
            continue
        if not in_function:
            violations.add(f"{importer} imports {imported}")
        elif (importer, imported) not in upward:
            violations.add(f"{importer} imports {imported} in a function")
        else:
            unused.discard((importer, imported))
    violations |= {f"{importer} no longer imports {imported} in a function" for importer, imported in unused}
    violations |= {f"circle: {', '.join(circle)}" for circle in find_circles(imports)}
    return violations


def _points_upwards(importer: str, imported: str) -> bool:
    """Whether an import violates the order of the layers. Packages without a layer are reported separately."""
    if importer.startswith(PROGRAMS):
        return False
    low, high = importer.split(".")[0], imported.split(".")[0]
    return low in RANK and high in RANK and RANK[high] > RANK[low]


def test_modules_import_only_from_lower_layers() -> None:
    assert find_violations(PACKAGE, UPWARD) == NOT_YET


def test_the_contributors_page_lists_the_packages_in_order() -> None:
    page = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`\w+(?:/|\.py)`.*?) \|", page, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)(?:/|\.py)`", cell)]
    assert listed == sorted(listed, key=RANK.__getitem__)
    assert {module.split(".")[0] for module in find_modules(PACKAGE)} & RANK.keys() <= set(listed)


# Python imports a package before its submodules. The graph does not contain these imports, so this test actually
# imports each module, in a process of its own.
IMPORT_EACH_FIRST = """
import importlib, os, sys, traceback, numpy
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""


def test_every_module_can_be_the_first_to_be_imported() -> None:
    names = [f"zarrlite.{name}" for name in find_modules(PACKAGE) if not name.startswith((*PROGRAMS, "__main__"))]
    command = [sys.executable, "-c", IMPORT_EACH_FIRST, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], done.stderr


def make_package(folder: Path, sources: dict[str, str]) -> Path:
    """Write a package named zarrlite with these files, and return its root."""
    root = folder / "zarrlite"
    for name, source in {"__init__.py": "", **sources}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return root


def test_an_upward_import_planted_in_the_library_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "zarrlite"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    path = root / "errors.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nfrom zarrlite.tools.layout import Fault\n", encoding="utf-8")
    new = find_violations(root, UPWARD) - NOT_YET
    assert "errors imports tools.layout" in new


@pytest.mark.parametrize(
    ("statement", "imported"),
    [
        ("import zarrlite", "__init__"),
        ("import zarrlite.stores.base", "stores.base"),
        ("import numpy, zarrlite.stores.base as base", "stores.base"),
        ("from zarrlite import stores", "stores"),
        ("from zarrlite import open_array", "__init__"),
        ("from zarrlite.stores import base", "stores.base"),
        ("from zarrlite.stores import LocalStore", "stores"),
        ("from zarrlite.stores.base import Store", "stores.base"),
        ("from zarrlite.stores.base import *", "stores.base"),
        ("from .. import stores", "stores"),
        ("from ..stores import base", "stores.base"),
        ("from ..stores.base import Store", "stores.base"),
        ("if TYPE_CHECKING:\n    from zarrlite.stores.base import Store", "stores.base"),
        ("try:\n    import zarrlite.stores\nexcept ImportError:\n    pass", "stores"),
        ("class Held:\n    from zarrlite.stores import base", "stores.base"),
        ("base = importlib.import_module('zarrlite.stores.base')", "stores.base"),
    ],
)
def test_an_upward_import_is_reported_in_every_form(tmp_path: Path, statement: str, imported: str) -> None:
    sources = {
        "stores/__init__.py": "",
        "stores/base.py": "",
        "buffers/__init__.py": "",
        "buffers/ranges.py": statement,
    }
    root = make_package(tmp_path, sources)
    assert find_violations(root) == {f"buffers.ranges imports {imported}"}


def test_relative_imports_of_a_package_start_at_its_own_folder(tmp_path: Path) -> None:
    sources = {"nodes/__init__.py": "from .array import Array\nfrom ..tools import cli", "nodes/array.py": ""}
    root = make_package(tmp_path, {**sources, "tools/__init__.py": "", "tools/cli.py": ""})
    assert read_imports(root) == {Import("nodes", "nodes.array", False), Import("nodes", "tools.cli", False)}


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("nodes/array.py", "metadata.documents", True),
        ("nodes/array.py", "nodes.group", True),
        ("nodes/array.py", "errors", True),
        ("buffers/source.py", "selections.selection", True),
        ("selections/sparse.py", "buffers.source", False),
        ("data_types/core.py", "stores.base", False),
        ("formats/tiff/parse.py", "nodes.array", False),
        ("errors.py", "names", False),
        ("threads.py", "errors", True),
        ("tools/cli/n5.py", "n5", True),
        ("n5.py", "tools.layout", False),
    ],
)
def test_only_imports_from_higher_layers_are_reported(
    tmp_path: Path, importer: str, imported: str, allowed: bool
) -> None:
    target = imported.replace(".", "/") + ".py"
    root = make_package(tmp_path, {target: "", importer: f"import zarrlite.{imported}"})
    name = importer.removesuffix(".py").replace("/", ".")
    assert find_violations(root) == (set() if allowed else {f"{name} imports {imported}"})


def test_an_import_cycle_under_type_checking_is_reported(tmp_path: Path) -> None:
    late = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from zarrlite.nodes.array import Array"
    sources = {"nodes/array.py": "from zarrlite.nodes import group", "nodes/group.py": "import zarrlite.nodes.info"}
    root = make_package(tmp_path, {**sources, "nodes/info.py": late, "nodes/node.py": "import zarrlite.nodes.array"})
    assert find_violations(root) == {"circle: nodes.array, nodes.group, nodes.info"}


def test_two_import_cycles_are_two_violations(tmp_path: Path) -> None:
    sources = {"nodes/a.py": "import zarrlite.nodes.b", "nodes/b.py": "import zarrlite.nodes.a, zarrlite.chunks.c"}
    sources |= {"chunks/c.py": "import zarrlite.chunks.d", "chunks/d.py": "import zarrlite.chunks.c"}
    assert find_violations(make_package(tmp_path, sources)) == {
        "circle: nodes.a, nodes.b",
        "circle: chunks.c, chunks.d",
    }


def test_an_import_cycle_through_a_function_is_allowed(tmp_path: Path) -> None:
    late = "def parent(self):\n    from zarrlite.nodes.group import Group"
    root = make_package(tmp_path, {"nodes/array.py": late, "nodes/group.py": "import zarrlite.nodes.array"})
    assert find_violations(root) == set()


@pytest.mark.parametrize("function", ["def draw(self):", "async def draw(self):", "class Node:\n  def draw(self):"])
def test_an_upward_import_in_a_function_must_be_listed(tmp_path: Path, function: str) -> None:
    node = f"{function}\n    from zarrlite.tools import pictures"
    root = make_package(tmp_path, {"nodes/node.py": node, "tools/pictures.py": ""})
    assert find_violations(root) == {"nodes.node imports tools.pictures in a function"}
    assert find_violations(root, {("nodes.node", "tools.pictures")}) == set()


def test_a_listed_upward_import_must_exist_and_be_in_a_function(tmp_path: Path) -> None:
    listed = {("nodes.node", "tools.pictures")}
    root = make_package(tmp_path, {"nodes/node.py": "", "tools/pictures.py": ""})
    assert find_violations(root, listed) == {"nodes.node no longer imports tools.pictures in a function"}
    (root / "nodes/node.py").write_text("import zarrlite.tools.pictures", encoding="utf-8")
    assert "nodes.node imports tools.pictures" in find_violations(root, listed)


@pytest.mark.parametrize(
    ("name", "violation"),
    [
        ("helpers.py", "helpers is not in the list of layers"),
        ("helpers/text.py", "helpers is not in the list of layers"),
        ("stores.py", "stores must be a folder"),
        ("errors/base.py", "errors must be a module"),
    ],
)
def test_a_stray_package_is_reported(tmp_path: Path, name: str, violation: str) -> None:
    assert find_violations(make_package(tmp_path, {name: ""})) == {violation}


def test_harnesses_use_the_public_names(tmp_path: Path) -> None:
    root = make_package(tmp_path, {"tools/conformance/harnesses/zarrlite_itself.py": "import zarrlite"})
    assert find_violations(root) == set()

"""The public names of zarrlite: the list, the modules that define them, and when they are loaded."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest

import zarrlite

SOURCE = Path(zarrlite.__file__)
# functions and objects at the top level of zarr-python 3.1
ZARR_PYTHON_NAMES = (
    "array",
    "config",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "print_debug_info",
    "save",
    "save_array",
    "save_group",
    "set_format",
    "set_log_level",
    "tree",
    "zeros",
    "zeros_like",
)


def run(code: str) -> str:
    """Run code in a new interpreter and return what it prints."""
    environment = {"PYTHONPATH": str(SOURCE.parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def type_checker_imports() -> dict[str, str]:
    """Return the names that type checkers see, each with the module it is imported from."""
    found = {}
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "zarrlite":
            for alias in node.names:
                assert alias.asname == alias.name, "a type checker takes only `import X as X` for an export"
                found[alias.name] = node.module or ""
    return found


def test_type_checkers_see_the_names_that_exist_at_run_time() -> None:
    names = {name: f"zarrlite.{module}" for name, module in zarrlite._MODULES.items()}
    assert type_checker_imports() == {**names, **dict.fromkeys(zarrlite._ROOMS, "zarrlite")}


@pytest.mark.parametrize("name", zarrlite.__all__)
def test_every_public_name_comes_from_the_module_that_defines_it(name: str) -> None:
    value = getattr(zarrlite, name)
    assert value.__module__ == f"zarrlite.{zarrlite._MODULES[name]}"
    assert vars(zarrlite)[name] is value


def test_the_public_names_are_sorted_and_can_be_imported_with_a_star() -> None:
    assert zarrlite.__all__ == sorted(zarrlite.__all__)
    names: dict[str, Any] = {}
    exec("from zarrlite import *", names)
    assert {*names} - {"__builtins__"} == {*zarrlite.__all__}


def test_dir_shows_the_public_names_and_the_version_only() -> None:
    assert dir(zarrlite) == sorted([*zarrlite.__all__, "__version__"])
    assert run("import zarrlite, zarrlite.stores; zarrlite.open; print(dir(zarrlite))") == f"{dir(zarrlite)}\n"


@pytest.mark.parametrize("name", [*zarrlite._ROOMS, *zarrlite._TOOLS])
def test_submodules_are_attributes_of_the_package(name: str) -> None:
    assert run(f"import zarrlite; print(zarrlite.{name}.__name__)") == f"zarrlite.{name}\n"


@pytest.mark.parametrize("name", ZARR_PYTHON_NAMES)
def test_no_module_has_the_name_of_a_function_of_zarr_python(name: str) -> None:
    assert importlib.util.find_spec(f"zarrlite.{name}") is None
    assert not isinstance(getattr(zarrlite, name, None), types.ModuleType)


def test_no_name_of_the_installed_zarr_python_is_left_out(zarr: Any) -> None:
    assert {name for name in zarr.__all__ if name.islower()} - {"__version__"} <= {*ZARR_PYTHON_NAMES}
    assert {*zarr.__all__} - {"__version__", *zarrlite.__all__} == {"AsyncArray", "AsyncGroup"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'zarrlite' has no attribute 'opne'$"):
        zarrlite.opne  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'opne' from 'zarrlite'"):
        exec("from zarrlite import opne")


def test_importing_the_package_loads_neither_numpy_nor_the_library() -> None:
    code = "import sys, zarrlite; print(sorted(m for m in sys.modules if m.partition('.')[0] in ('numpy', 'zarrlite')))"
    assert run(code) == "['zarrlite']\n"


def test_loading_a_name_later_leaves_the_others_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*arguments: Any) -> None: ...

    monkeypatch.setattr(zarrlite, "open", other)
    monkeypatch.delitem(vars(zarrlite), "validate", raising=False)
    assert zarrlite.validate(b"{}")
    assert zarrlite.open is other


@pytest.mark.parametrize("name", [name for name in zarrlite.__all__ if name.islower() and name != "config"])
def test_type_hints_of_functions_can_be_resolved(name: str) -> None:
    function = getattr(zarrlite, name)
    hints = typing.get_type_hints(function)
    assert hints.keys() == {*inspect.signature(function).parameters, "return"}

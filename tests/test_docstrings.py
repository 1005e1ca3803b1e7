"""The docstrings of the public names: each is complete, agrees with the signature, and has examples that run."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import zarrlite
from zarrlite.nodes.array import Array, Indexer
from zarrlite.nodes.group import Group
from zarrlite.nodes.info import Info, Tree
from zarrlite.nodes.node import Attributes, Node
from zarrlite.nodes.settings import Configuration

NODE_CLASSES = (Array, Attributes, Configuration, Group, Indexer, Info, Node, Tree)
KEYWORD_TYPES = ("Json", "npt.ArrayLike")  # types of keyword arguments whose names users choose: attributes, members
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "See Also", "Notes", "Examples")


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield every public name of zarrlite, and every public method and property of its nodes."""
    for name in zarrlite.__all__:
        if callable(value := getattr(zarrlite, name)):
            yield name, value
    for cls in NODE_CLASSES:
        if cls.__name__ not in zarrlite.__all__:
            yield cls.__name__, cls
        for name, member in vars(cls).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                yield f"{cls.__name__}.{name}", member


OBJECTS = dict(public_objects())
every_object = pytest.mark.parametrize("name", OBJECTS)


def docstring(value: Any) -> str:
    """Return the docstring of an object, unless it is inherited.

    The parameters of a class may be documented in its own docstring or in that of `__init__`.
    """
    if not isinstance(value, type):
        return inspect.cleandoc(value.__doc__ or "")
    own = inspect.cleandoc(vars(value).get("__doc__") or "")
    constructor = inspect.cleandoc(getattr(vars(value).get("__init__"), "__doc__", None) or "")
    return f"{own}\n\n{constructor}".strip()


def sections(value: Any) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title. The text before the first section has the title ""."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", docstring(value), flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> list[str]:
    """Return the names that a section describes. One line may describe several."""
    heads = [line.partition(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return [name.strip() for head in heads for name in head.split(",")]


def signature(value: Any) -> inspect.Signature:
    """Return the signature that a caller sees, without `self`."""
    found = inspect.signature(value)
    if isinstance(value, type) or "self" not in found.parameters:
        return found
    return found.replace(parameters=[p for p in found.parameters.values() if p.name != "self"])


def parameters(value: Any) -> list[str]:
    """Return the parameters of a function, or those of a class if it defines `__init__`."""
    if isinstance(value, property) or (isinstance(value, type) and "__init__" not in vars(value)):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in signature(value).parameters.values()]


def test_the_examined_objects_are_the_public_ones() -> None:
    assert {*zarrlite.__all__} - {"config"} <= {*OBJECTS}
    assert {
        "Configuration.set",
        "Array.append",
        "Array.shape",
        "Group.create_array",
        "Attributes.put",
        "Node.attrs",
    } <= {*OBJECTS}


@every_object
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert docstring(OBJECTS[name])


@every_object
def test_the_first_line_of_a_docstring_is_a_summary(name: str) -> None:
    lines = docstring(OBJECTS[name]).splitlines()
    assert lines[0].endswith(".")
    assert not "".join(lines[1:2])


@every_object
def test_the_sections_have_the_names_and_the_order_of_numpydoc(name: str) -> None:
    found = [title for title in sections(OBJECTS[name]) if title]
    assert found == sorted(found, key=SECTIONS.index)


@every_object
def test_exactly_the_parameters_of_the_signature_are_documented(name: str) -> None:
    documented = entries(sections(OBJECTS[name]).get("Parameters", ""))
    assert sorted(documented) == sorted(parameters(OBJECTS[name]))


@every_object
def test_results_are_documented(name: str) -> None:
    value = OBJECTS[name]
    if isinstance(value, (type, property)):
        return
    found = sections(value)
    returns_something = signature(value).return_annotation not in (None, "None")
    assert ("Returns" in found or "Yields" in found) == returns_something


@every_object
def test_documented_errors_are_public(name: str) -> None:
    for error in entries(sections(OBJECTS[name]).get("Raises", "")):
        assert issubclass(getattr(zarrlite, error), Exception)


@every_object
def test_every_public_name_but_errors_has_examples(name: str) -> None:
    value = OBJECTS[name]
    if not (isinstance(value, type) and issubclass(value, Exception | Warning)) and value is not Node:
        assert ">>> " in sections(value).get("Examples", "")


@every_object
def test_the_examples_run(name: str) -> None:
    value = OBJECTS[name]
    module = sys.modules[(value.fget if isinstance(value, property) else value).__module__]
    text = doctest.DocTestParser().get_doctest(docstring(value), dict(vars(module)), name, module.__name__, 0)
    report: list[str] = []
    failed, _ = doctest.DocTestRunner().run(text, out=report.append)
    assert not failed, "".join(report)


@every_object
def test_no_public_function_hides_its_keywords(name: str) -> None:
    value = OBJECTS[name]
    if isinstance(value, (type, property)):
        return
    for parameter in signature(value).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            assert parameter.annotation.startswith("Unpack[") or parameter.annotation in KEYWORD_TYPES, parameter

"""`zarrlite validate`: report every fault in a document, a node or a hierarchy.

Rules
- A file is checked as a document; a directory is checked as a node, with everything below it. Directories without a
  document are searched for nodes that cannot be reached; directories below an array are not searched.
- The exit code is 1 if there is a fault, or 4 if all faults are unknown extensions. Repairs made by `--lenient` are
  reported.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from zarrlite import threads
from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import FaultKind, MetadataError, MetadataWarning, NodeNotFoundError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, escape, load_json
from zarrlite.formats.draft_store import find_draft
from zarrlite.formats.v2_store import find_v2
from zarrlite.metadata.validation import validate
from zarrlite.names import DOCUMENT, key_prefix, name_fault, new_name_fault
from zarrlite.stores import Store
from zarrlite.stores.base import place_of
from zarrlite.stores.open import is_zip_path
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import split
from zarrlite.tools.cli.rules import remedy, rule
from zarrlite.tools.cli.schemas import Schemas

HELP = "report every fault in a document, a node or a hierarchy"
EXAMPLE = "zarrlite validate experiment.zarr --lenient"
Documents = dict[str, Any]  # parsed documents by the path of their node; None if a document is not JSON


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "location", help="a metadata document (- for standard input), or a node with all nodes below it"
    )
    parser.add_argument(
        "--lenient", action="store_true", help="repair common omissions in documents, and report each repair"
    )
    parser.add_argument("--schemas", metavar="DIR", help="also check extensions against the JSON Schemas in DIR")


def run(args: argparse.Namespace, console: Console) -> int:
    validator = _Validator(not args.lenient, Schemas(args.schemas) if args.schemas else None)
    if args.location == "-" or (os.path.isfile(args.location) and not is_zip_path(args.location)):
        validator.check_document(_read(args.location), args.location)
    else:
        store, path = split(args.location)
        _check_hierarchy(validator, store, path, args.location)
    return _report(validator, console)


def _read(location: str) -> bytes:
    """Read a document, but at most one byte more than the size limit, which is enough to refuse it."""
    if location == "-":
        return sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    with open(location, "rb") as file:
        return file.read(MAX_DOCUMENT_BYTES + 1)


class _Validator:
    """Collects the faults and repairs of documents."""

    def __init__(self, strict: bool, schemas: Schemas | None) -> None:
        self.strict = strict
        self.schemas = schemas
        self.count = 0  # documents checked
        self.faults: list[tuple[MetadataError, Any]] = []  # a fault, and the parsed document that contains it
        self.repairs: list[tuple[str, MetadataWarning]] = []  # the name of a document, and a repair made to it

    def check_document(self, data: Any, name: str) -> Any:
        """Check a document and return it parsed. Returns None if it is not JSON."""
        self.count += 1
        content: Any = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            faults = [fault.under("", name) for fault in validate(data, strict=self.strict)]
            with contextlib.suppress(MetadataError):  # `validate` has reported it
                content = load_json(data)
        self.repairs += ((name, warning.message) for warning in caught if isinstance(warning.message, MetadataWarning))
        if self.schemas and content is not None:
            faults += self.schemas.faults(content, name)
        self.faults += ((fault, content) for fault in faults)
        return content

    def add_refused(self, error: MetadataError) -> None:
        """Add the faults of a document that cannot be converted to Zarr v3."""
        self.count += 1
        self.faults += ((fault, None) for fault in error.problems)

    def add_fault(self, message: str, document: str, pointer: str = "", kind: FaultKind = "conflict") -> None:
        """Add a fault that is not visible in a single document."""
        fault = MetadataError(message, pointer=pointer, kind=kind, document=document)
        self.faults.append((fault, None))


def _check_hierarchy(validator: _Validator, store: Store, path: str, location: str) -> None:
    """Check a node and all nodes below it."""
    documents: Documents = {}
    for node_path, found in _find_documents(_view(store, path), path):
        key = key_prefix(node_path) + DOCUMENT
        if isinstance(found, MetadataError):
            validator.add_refused(found)
            documents[node_path] = None
            continue
        documents[node_path] = validator.check_document(found, key)
        fault = new_name_fault(node_path.rpartition("/")[2]) if node_path else None
        if fault:
            validator.add_fault(f"must not be the document of a node: {fault}", key, kind="value")
    if path not in documents:
        if not documents:
            raise NodeNotFoundError(f"{location} has no {DOCUMENT}", path=path)
        validator.add_fault(
            "is missing; the nodes below cannot be reached", key_prefix(path) + DOCUMENT, kind="missing"
        )
    for node_path in documents:
        _check_parent(validator, documents, node_path, path)
        _check_consolidated(validator, documents, node_path)


def _view(store: Store, path: str) -> Store:
    """Return the Zarr v3 view of a hierarchy in another format, or the store itself."""
    draft = find_draft(store)
    if draft is not None:
        return draft
    if store.size(key_prefix(path) + DOCUMENT) is not None:
        return store
    return find_v2(store, path, use_consolidated=False) or store


def _find_documents(store: Store, path: str) -> Iterator[tuple[str, bytes | MetadataError]]:
    """Yield every path that has a document, from `path` downwards, and the document.

    A document of another format that cannot be converted to Zarr v3 is replaced by its error.
    """
    look = functools.partial(_look, store)
    levels = [iter([look(path)])]  # for each level of the current path, the directories still to be visited
    while levels:
        found = next(levels[-1], None)
        if found is None:
            levels.pop()
            continue
        node_path, document, below = found
        if document is not None:
            yield node_path, document
        levels.append(threads.ahead(look, below, place_of(store)))


def _look(store: Store, path: str) -> tuple[str, bytes | MetadataError | None, list[str]]:
    """Return a path, its document if there is one, and the directories below it that may contain nodes."""
    prefix = key_prefix(path)
    keys, prefixes = store.list_dir(prefix)
    below = [name[:-1] for name in prefixes if not name_fault(name[:-1].rpartition("/")[2])]
    if prefix + DOCUMENT not in keys:
        return path, None, below
    try:
        data = store.get(prefix + DOCUMENT, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
    except MetadataError as error:
        return path, error, []
    if data is None:
        return path, None, []
    try:
        has_nodes = load_json(data).get("node_type") != "array"  # everything below an array belongs to its chunks
    except MetadataError:
        has_nodes = False  # the node may be an array, and the keys below it may be chunks
    return path, bytes(data), below if has_nodes else []


def _check_parent(validator: _Validator, documents: Documents, path: str, top: str) -> None:
    """Check that the parent group of a node has a document, without which the node cannot be reached."""
    # core spec, Group metadata: "Each Zarr group in a hierarchy must have a group metadata document"
    parent = path.rpartition("/")[0]
    if path != top and parent != top and parent not in documents:
        validator.add_fault(f"is missing; the node {path!r} cannot be reached", f"{parent}/{DOCUMENT}", kind="missing")


def _check_consolidated(validator: _Validator, documents: Documents, path: str) -> None:
    """Check that the consolidated metadata of a group contains an up-to-date copy of every document below the group."""
    # core spec, Additional fields: "may contain an additional field named consolidated_metadata"
    content = documents[path]
    consolidated = content.get("consolidated_metadata") if isinstance(content, dict) else None
    copies = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if not isinstance(copies, dict):
        return
    prefix, document, pointer = key_prefix(path), key_prefix(path) + DOCUMENT, "/consolidated_metadata/metadata"
    originals = {
        node_path[len(prefix) :]: original
        for node_path, original in documents.items()
        if node_path != path and node_path.startswith(prefix)
    }
    for name in sorted(copies.keys() | originals.keys()):
        copy_pointer = f"{pointer}/{escape(name)}"
        if name not in originals:
            validator.add_fault("is a copy of a document that does not exist", document, copy_pointer)
        elif name not in copies:
            validator.add_fault(f"lacks a copy of {prefix}{name}/{DOCUMENT}", document, pointer)
        elif _without_copies(copies[name]) != _without_copies(originals[name]):
            validator.add_fault(f"differs from {prefix}{name}/{DOCUMENT}", document, copy_pointer)


def _without_copies(document: Any) -> Any:
    """Return a document without its consolidated metadata."""
    if not isinstance(document, dict):
        return document
    return {name: value for name, value in document.items() if name != "consolidated_metadata"}


def _report(validator: _Validator, console: Console) -> int:
    """Print the result and return the exit code."""
    faults = [
        {
            "document": fault.document,
            "pointer": fault.pointer,
            "kind": fault.kind,
            "problem": fault.message,
            "rule": rule(fault, document),
            "remedy": remedy(fault),
        }
        for fault, document in validator.faults
    ]
    repairs = [
        {"document": name, "pointer": warning.pointer, "problem": warning.args[0]}
        for name, warning in validator.repairs
    ]
    if console.as_json:
        console.json({"documents": validator.count, "valid": not faults, "faults": faults, "warnings": repairs})
    else:
        for fault in faults:
            console.print(console.style(f"{fault['document']}#{fault['pointer']}: {fault['problem']}", "bad"))
            console.print(f"  rule   {clean(fault['rule'])}\n  remedy {fault['remedy']}")
        for repair in repairs:
            console.print(console.style(f"{repair['document']}#{repair['pointer']}: {repair['problem']}", "warn"))
        summary = f"{_count(validator.count, 'document')}, {_count(len(faults), 'fault')}"
        console.print(console.style(summary, "bad" if faults else "good"))
    if not faults:
        return 0
    return 4 if all(fault["kind"] == "unknown-extension" for fault in faults) else 1


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

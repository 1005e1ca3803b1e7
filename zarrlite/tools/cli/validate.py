"""`zarrlite validate`: every fault of a document, a node or a hierarchy.

Rules
- A file is a document. A directory is a node, with everything below it: directories that are no nodes are looked
  through for nodes that nobody can reach, those of an array are not.
- Faults are problems (exit code 1; 4 if they all are extensions that are not known); what `--lenient` repairs is said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import FaultKind, MetadataError, MetadataWarning, NodeNotFoundError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, escape, load_json
from zarrlite.formats.draft_store import find_draft
from zarrlite.metadata.validation import validate
from zarrlite.names import DOCUMENT, key_prefix, name_fault
from zarrlite.stores import Store
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import split
from zarrlite.tools.cli.rules import remedy, rule
from zarrlite.tools.cli.schemas import Schemas

HELP = "every fault of a document, a node or a hierarchy"
EXAMPLE = "zarrlite validate experiment.zarr --lenient"
Documents = dict[str, Any]  # what was read, by path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a file with metadata (- for standard input), or a node with all below it")
    parser.add_argument("--lenient", action="store_true", help="repair what documents often forget, and say so")
    parser.add_argument("--schemas", metavar="DIR", help="also check extensions against the JSON Schemas in DIR")


def run(args: argparse.Namespace, console: Console) -> int:
    check = _Check(not args.lenient, Schemas(args.schemas) if args.schemas else None)
    if args.location == "-" or os.path.isfile(args.location):
        check.document(_read(args.location), args.location)
    else:
        store, path = split(args.location)
        _check_hierarchy(check, store, path, args.location)
    return _report(check, console)


def _read(location: str) -> bytes:
    if location == "-":
        return sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    with open(location, "rb") as file:
        return file.read(MAX_DOCUMENT_BYTES + 1)


class _Check:
    """What is found, document by document."""

    def __init__(self, strict: bool, schemas: Schemas | None) -> None:
        self.strict = strict
        self.schemas = schemas
        self.count = 0
        self.faults: list[tuple[MetadataError, Any]] = []  # with the document
        self.warnings: list[tuple[str, MetadataWarning]] = []

    def document(self, data: Any, name: str) -> Any:
        """Check one document; what it holds, None if that is no JSON."""
        self.count += 1
        content: Any = None
        with warnings.catch_warnings(record=True) as repaired:
            warnings.simplefilter("always")
            found = [fault.under("", name) for fault in validate(data, strict=self.strict)]
            with contextlib.suppress(MetadataError):  # it is among what was found
                content = load_json(data)
        self.warnings += ((name, each.message) for each in repaired if isinstance(each.message, MetadataWarning))
        if self.schemas and content is not None:
            found += self.schemas.faults(content, name)
        self.faults += ((fault, content) for fault in found)
        return content

    def fault(self, message: str, document: str, pointer: str = "", kind: FaultKind = "conflict") -> None:
        """Note what is wrong between documents."""
        fault = MetadataError(message, pointer=pointer, kind=kind, document=document)
        self.faults.append((fault, None))


def _check_hierarchy(check: _Check, store: Store, path: str, location: str) -> None:
    """Check a node and all below it."""
    draft = find_draft(store)
    store = draft or store
    documents: Documents = {}
    for each in _documents(store, path):
        key = key_prefix(each) + DOCUMENT
        data = store.get(key, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
        if data is not None:
            documents[each] = check.document(bytes(data), key)
    if path not in documents:
        if not documents:
            raise NodeNotFoundError(f"{location}: there is no {DOCUMENT}", path=path)
        check.fault("is missing: the nodes below cannot be found", key_prefix(path) + DOCUMENT, kind="missing")
    for each in documents:
        _check_place(check, documents, each, path)
        _check_copies(check, documents, each)


def _documents(store: Store, path: str) -> Iterator[str]:
    """The paths that have a document, from one on downwards; below an array there are only its chunks."""
    pending = [path]
    while pending:
        place = pending.pop()
        prefix = key_prefix(place)
        keys, prefixes = store.list_dir(prefix)
        if prefix + DOCUMENT in keys:
            yield place
            data = store.get(prefix + DOCUMENT, ByteRange(0, MAX_DOCUMENT_BYTES + 1)) or b""
            try:
                if load_json(data).get("node_type") == "array":
                    continue
            except MetadataError:
                continue  # who knows what is below
        pending += (name[:-1] for name in reversed(prefixes) if not name_fault(name[:-1].rpartition("/")[2]))


def _check_place(check: _Check, documents: Documents, path: str, top: str) -> None:
    """A node is found through the groups above it only."""
    above = path.rpartition("/")[0]
    if path != top and above != top and above not in documents:
        check.fault(f"is missing: the node {path!r} cannot be found", f"{above}/{DOCUMENT}", kind="missing")


def _check_copies(check: _Check, documents: Documents, path: str) -> None:
    """Consolidated metadata says what the documents say."""
    content = documents[path]
    consolidated = content.get("consolidated_metadata") if isinstance(content, dict) else None
    copies = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if not isinstance(copies, dict):
        return
    prefix, document, pointer = key_prefix(path), key_prefix(path) + DOCUMENT, "/consolidated_metadata/metadata"
    below = {
        each[len(prefix) :]: found for each, found in documents.items() if each != path and each.startswith(prefix)
    }
    for name in sorted(copies.keys() | below.keys()):
        place = f"{pointer}/{escape(name)}"
        if name not in below:
            check.fault("is the copy of a document that is not there", document, place)
        elif name not in copies:
            check.fault(f"lacks a copy of {prefix}{name}/{DOCUMENT}", document, pointer)
        elif _plain(copies[name]) != _plain(below[name]):
            check.fault(f"is not what {prefix}{name}/{DOCUMENT} says", document, place)


def _plain(document: Any) -> Any:
    """A document without copies of others."""
    if not isinstance(document, dict):
        return document
    return {name: value for name, value in document.items() if name != "consolidated_metadata"}


def _report(check: _Check, console: Console) -> int:
    faults = [
        {
            "document": fault.document,
            "pointer": fault.pointer,
            "kind": fault.kind,
            "problem": fault.message,
            "rule": rule(fault, document),
            "remedy": remedy(fault),
        }
        for fault, document in check.faults
    ]
    repaired = [{"document": name, "pointer": each.pointer, "problem": each.args[0]} for name, each in check.warnings]
    if console.as_json:
        console.json({"documents": check.count, "valid": not faults, "faults": faults, "warnings": repaired})
    else:
        for fault in faults:
            console.print(console.style(f"{fault['document']}#{fault['pointer']}: {fault['problem']}", "bad"))
            console.print(f"  rule   {clean(fault['rule'])}\n  remedy {fault['remedy']}")
        for each in repaired:
            console.print(console.style(f"{each['document']}#{each['pointer']}: {each['problem']}", "warn"))
        counts = f"{check.count} document{'s' * (check.count != 1)}, {len(faults)} fault{'s' * (len(faults) != 1)}"
        console.print(console.style(counts, "bad" if faults else "good"))
    if not faults:
        return 0
    return 4 if all(fault["kind"] == "unknown-extension" for fault in faults) else 1

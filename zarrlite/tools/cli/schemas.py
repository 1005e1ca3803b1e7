"""Validate the extension objects of a document against published JSON Schemas.

Rules
- The schema of the extension NAME is `NAME.schema.json`, or `schema.json` in a directory NAME, as in published
  collections of schemas.
- The package jsonschema is required. Nothing is downloaded: a schema must not refer to another document.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import escape

_LIST_MEMBERS = ("codecs", "storage_transformers", "index_codecs")  # members that hold a list of extensions
_SINGLE_MEMBERS = ("data_type", "chunk_grid", "chunk_key_encoding", "base_encoding", "base-encoding")  # one extension


class Schemas:
    """The schemas in a directory, by extension name."""

    def __init__(self, directory: str) -> None:
        try:
            import jsonschema
            import referencing
        except ImportError:
            raise ArgumentError("--schemas needs jsonschema: pip install jsonschema") from None
        self._unresolvable = referencing.exceptions.Unresolvable
        self._validators: dict[str, Any] = {}
        for name, path in _schema_files(directory):
            try:
                with open(path, encoding="utf-8") as file:
                    schema = json.load(file)
                cls = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
                cls.check_schema(schema)
            except (OSError, ValueError, RecursionError, jsonschema.SchemaError) as error:
                raise ArgumentError(f"{path} is not a JSON Schema: {str(error).splitlines()[0]}") from None
            self._validators[name] = cls(schema, registry=referencing.Registry())
        if not self._validators:
            raise ArgumentError(f"--schemas {directory} must contain NAME.schema.json or NAME/schema.json")

    def faults(self, document: Any, name: str) -> Iterator[MetadataError]:
        """Yield the faults that the schemas find in a document; `name` is the name of the document."""
        for extension, pointer, value in _extensions(document, ""):
            validator = self._validators.get(extension)
            if validator is None:
                continue
            try:
                violations = list(validator.iter_errors(value))
            except self._unresolvable as error:
                raise ArgumentError(f"the schema of {extension} must not refer to other documents: {error}") from None
            for violation in violations:
                inner = "".join(f"/{escape(str(token))}" for token in violation.absolute_path)
                message = f"violates the schema of {extension}: {violation.message[:200]}"
                yield MetadataError(message, pointer=pointer + inner, kind="value", document=name)


def _schema_files(directory: str) -> Iterator[tuple[str, str]]:
    """Yield the extension name and the path of every schema in a directory."""
    for parent, directories, files in os.walk(directory):
        directories.sort()
        for file in sorted(files):
            if file == "schema.json":
                yield os.path.basename(parent), os.path.join(parent, file)
            elif file.endswith(".schema.json"):
                yield file.removesuffix(".schema.json"), os.path.join(parent, file)


def _extensions(holder: Any, pointer: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, pointer and object of each extension in a document or configuration, including nested ones."""
    for member, value in holder.items() if isinstance(holder, dict) else ():
        if member in _LIST_MEMBERS and isinstance(value, list):
            extensions = [(f"{pointer}/{member}/{i}", extension) for i, extension in enumerate(value)]
        elif member in _SINGLE_MEMBERS:
            extensions = [(f"{pointer}/{member}", value)]
        else:
            continue
        for extension_pointer, extension in extensions:
            name = extension.get("name") if isinstance(extension, dict) else extension
            if isinstance(name, str):
                yield name, extension_pointer, extension
            if isinstance(extension, dict):
                yield from _extensions(extension.get("configuration"), f"{extension_pointer}/configuration")

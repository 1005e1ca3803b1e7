"""Extension objects of a document against published JSON Schemas.

Rules
- A schema is the file `NAME.schema.json`, or `schema.json` in a directory NAME, as collections of schemas have them.
- jsonschema is needed. Nothing is fetched: a schema that refers to another place is a fault of the schemas.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import escape

_LISTS = ("codecs", "storage_transformers", "index_codecs")
_OBJECTS = ("data_type", "chunk_grid", "chunk_key_encoding", "base_encoding", "base-encoding")


class Schemas:
    """The schemas of a directory, by the name of the extension."""

    def __init__(self, directory: str) -> None:
        try:
            import jsonschema
            import referencing
        except ImportError:
            raise ArgumentError("--schemas needs jsonschema: pip install jsonschema") from None
        self._unresolvable = referencing.exceptions.Unresolvable
        self._validators: dict[str, Any] = {}
        for name, path in _files(directory):
            try:
                with open(path, encoding="utf-8") as file:
                    schema = json.load(file)
                cls = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
                cls.check_schema(schema)
            except (OSError, ValueError, RecursionError, jsonschema.SchemaError) as error:
                raise ArgumentError(f"{path} is no JSON Schema: {str(error).splitlines()[0]}") from None
            self._validators[name] = cls(schema, registry=referencing.Registry())
        if not self._validators:
            raise ArgumentError(f"there is no NAME.schema.json and no NAME/schema.json in {directory}")

    def faults(self, document: Any, name: str) -> Iterator[MetadataError]:
        """What the schemas find in the document of this name."""
        for extension, pointer, value in _extensions(document, ""):
            validator = self._validators.get(extension)
            if validator is None:
                continue
            try:
                found = list(validator.iter_errors(value))
            except self._unresolvable as error:
                raise ArgumentError(f"the schema of {extension} refers to what is not here: {error}") from None
            for fault in found:
                inner = "".join(f"/{escape(str(token))}" for token in fault.absolute_path)
                message = f"the schema of {extension} says: {fault.message[:200]}"
                yield MetadataError(message, pointer=pointer + inner, kind="value", document=name)


def _files(directory: str) -> Iterator[tuple[str, str]]:
    for place, folders, files in os.walk(directory):
        folders.sort()
        for file in sorted(files):
            if file == "schema.json":
                yield os.path.basename(place), os.path.join(place, file)
            elif file.endswith(".schema.json"):
                yield file.removesuffix(".schema.json"), os.path.join(place, file)


def _extensions(holder: Any, pointer: str) -> Iterator[tuple[str, str, Any]]:
    """Name, pointer and object of the extensions in a document or configuration, and of those inside of them."""
    for member, value in holder.items() if isinstance(holder, dict) else ():
        if member in _LISTS and isinstance(value, list):
            found = [(f"{pointer}/{member}/{i}", each) for i, each in enumerate(value)]
        elif member in _OBJECTS:
            found = [(f"{pointer}/{member}", value)]
        else:
            continue
        for at, each in found:
            name = each.get("name") if isinstance(each, dict) else each
            if isinstance(name, str):
                yield name, at, each
            if isinstance(each, dict):
                yield from _extensions(each.get("configuration"), f"{at}/configuration")

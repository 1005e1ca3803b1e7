"""Describe a case as text: its description and source, the stored values, the requests and the expected answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

from zarrlite.tools.conformance.cases import Case
from zarrlite.tools.conformance.steps import Step

Style = Callable[[object, str], str]
MAX_DUMP = 4096  # bytes; a hexdump of a longer value is cut


def describe_case(case: Case, style: Style) -> str:
    """Return the text. `style` adds one of the console's styles to a piece of text."""
    lines = [style(case.id, "bold"), style(case.data["description"], "name")]
    tags = {"kind": case.kind, **case.tags}
    lines.append(style(" · ".join(f"{name} {value}" for name, value in tags.items()), "dim"))
    spec = case.data.get("spec")
    if spec:
        lines.append(style(f"{spec['document']}, {spec['section']}", "dim"))
        if "quote" in spec:
            lines.append(f"  “{style(spec['quote'], 'good')}”")
    if "ruling" in case.data:
        lines.append(f"ruling: {style(case.data['ruling'], 'good')}")
    shown: dict[str, str] = {}
    for step in case.steps:
        for key, value in step.request["store"].items():
            if shown.get(key) != value:
                shown[key] = value
                lines += ["", style(key, "bold"), *_describe_value(key, value)]
    for step in case.steps:
        lines += ["", f"{style(step.op, 'bold')} {json.dumps(_request_without_store(step))}"]
        lines.append(f"expected {json.dumps(step.expected)}")
    return "\n".join(lines)


def _request_without_store(step: Step) -> dict[str, Any]:
    return {name: value for name, value in step.request.items() if name != "store"}


def _describe_value(key: str, text: str) -> Iterator[str]:
    """Yield a document as indented JSON, any other value as a hexdump."""
    data = base64.b64decode(text)
    if key.rpartition("/")[2] == "zarr.json":
        try:
            yield json.dumps(json.loads(data), indent=2)
            return
        except (ValueError, RecursionError):
            pass
    yield from hexdump(data)


def hexdump(data: bytes) -> Iterator[str]:
    """Yield a line for every sixteen bytes. A value that is too long is truncated."""
    for offset in range(0, min(len(data), MAX_DUMP), 16):
        row = data[offset : offset + 16]
        text = "".join(chr(b) if 31 < b < 127 else "." for b in row)
        yield f"{offset:06x}  {row.hex(' '):<47}  {text}"
    if len(data) > MAX_DUMP:
        yield f"… {len(data)} bytes in total"

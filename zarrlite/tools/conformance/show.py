"""One case as text: what it says and where that is written, what is stored, what is asked and what must come back."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

from zarrlite.tools.conformance.cases import Case
from zarrlite.tools.conformance.steps import Step

Style = Callable[[object, str], str]
_LONGEST = 4096


def describe_case(case: Case, style: Style) -> str:
    """The case; `style` paints a text in one of the console's colours."""
    lines = [style(case.id, "bold"), style(case.data["description"], "name")]
    lines.append(
        style(" · ".join(f"{name} {value}" for name, value in {"kind": case.kind, **case.tags}.items()), "dim")
    )
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
                lines += ["", style(key, "bold"), *_value(key, value)]
    for step in case.steps:
        lines += ["", f"{style(step.op, 'bold')} {_json(_asked(step))}", f"expected {_json(step.expected)}"]
    return "\n".join(lines)


def _asked(step: Step) -> dict[str, Any]:
    return {name: value for name, value in step.request.items() if name != "store"}


def _value(key: str, text: str) -> Iterator[str]:
    """A document as JSON where it is an object, else a hexdump."""
    data = base64.b64decode(text)
    if key.rpartition("/")[2] == "zarr.json":
        try:
            yield json.dumps(json.loads(data), indent=2)
            return
        except (ValueError, RecursionError):
            pass
    yield from hexdump(data)


def hexdump(data: bytes) -> Iterator[str]:
    """Sixteen bytes a line; what is too long is cut."""
    for at in range(0, min(len(data), _LONGEST), 16):
        row = data[at : at + 16]
        text = "".join(chr(b) if 31 < b < 127 else "." for b in row)
        yield f"{at:06x}  {row.hex(' '):<47}  {text}"
    if len(data) > _LONGEST:
        yield f"… {len(data)} bytes in all"


def _json(value: Any) -> str:
    return json.dumps(value)

"""Write cases as real directories, for tools that need files.

Rules
- Each case is a folder named after the id of the case. `case.json` is a copy of the case in the corpus; `store/`
  contains the values that are stored before the first request, one file for each key.
- Keys are written by LocalStore, which keeps them inside the folder. If a key of a case cannot be a file, the case is
  reported as incomplete.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from zarrlite.errors import ArgumentError, StoreError
from zarrlite.stores import LocalStore
from zarrlite.tools.conformance.cases import Case


def materialize(cases: Sequence[Case], folder: str | Path) -> tuple[int, list[str]]:
    """Write cases into a folder that is new or empty.

    Returns the number of cases, and the ids of incomplete cases, in which some keys cannot be files.
    """
    root = Path(folder)
    if root.exists() and any(root.iterdir()):
        raise ArgumentError(f"{root} must be empty or not exist; pass another folder")
    root.mkdir(parents=True, exist_ok=True)
    store = LocalStore(root)
    incomplete = []
    for case in cases:
        text = json.dumps(case.data, indent=2, ensure_ascii=False) + "\n"
        store.set(f"{case.id}/case.json", text.encode("utf-8", "surrogatepass"))
        try:
            for key, value in case.steps[0].request["store"].items():
                store.set(f"{case.id}/store/{key}", base64.b64decode(value))
        except StoreError:
            incomplete.append(case.id)
    return len(cases), incomplete

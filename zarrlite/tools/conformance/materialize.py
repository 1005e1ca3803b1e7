"""Cases as real directories, for tools that want files.

Rules
- Each case is a folder named by its id. `case.json` is the case as it stands in the corpus, `store/` what is stored
  before anything is asked, one file for each key.
- Keys are written by the store on disk, which keeps them inside; what cannot be a file there is left out and counted.
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
    """Write cases into a folder that is new or empty: how many, and the ids of those with keys that are no files."""
    root = Path(folder)
    if root.exists() and any(root.iterdir()):
        raise ArgumentError(f"{root} is not empty; give a new folder")
    root.mkdir(parents=True, exist_ok=True)
    store = LocalStore(root)
    left_out = []
    for case in cases:
        text = json.dumps(case.data, indent=2, ensure_ascii=False) + "\n"
        store.set(f"{case.id}/case.json", text.encode("utf-8", "surrogatepass"))
        try:
            for key, value in case.steps[0].request["store"].items():
                store.set(f"{case.id}/store/{key}", base64.b64decode(value))
        except StoreError:
            left_out.append(case.id)
    return len(cases), left_out

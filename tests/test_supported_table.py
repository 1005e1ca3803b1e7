"""The page of supported extensions lists every extension in the registries, and the extra that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.supported_table import PAGE, REGISTERED_CODECS

ROOT = Path(__file__).parents[1]
LIST = "from tests.supported_table import PAGE, page; assert page() == PAGE.read_text('utf-8')"
EXTRAS = "from zarrlite.extensions.registry import codecs as c; print(*(n for n in c.names() if c.find(n).extra))"
# Encode with every codec while the optional packages cannot be imported, and print the names of the codecs that fail.
WITHOUT_EXTRAS = """
import sys
for name in ("numcodecs", "pcodec", "zfpy"):
    sys.modules[name] = None
import numpy as np
from zarrlite.codecs import ArraySpec, BytesBytesCodec
from zarrlite.data_types import from_dtype
from zarrlite.errors import DependencyError
from zarrlite.extensions.registry import codecs
spec, elements = ArraySpec((2,), from_dtype("float32"), 0), np.array([1, 2], "f4")
configurations = {"numcodecs.zfpy": {"tolerance": 1}, "zfp": {"mode": "reversible"}}
configurations["blosc"] = {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle"}
for name in codecs.names():
    cls = codecs.find(name)
    if cls.extra is None and not issubclass(cls, BytesBytesCodec):
        continue
    try:
        codec = codecs.coerce({"name": name, "configuration": configurations.get(name, {})})
    except Exception:
        continue  # it has parameters that this program does not know; it needs no library, or the list would differ
    try:
        codec.encode(elements.tobytes()) if isinstance(codec, BytesBytesCodec) else codec.encode(elements, spec)
    except DependencyError as error:
        print(name, f"zarrlite[{cls.extra}]" in str(error))
"""


def run(code: str) -> str:
    # in a separate process, because other tests register extensions in this one
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_the_page_lists_the_extensions_of_the_registries() -> None:
    """`python -m tests.supported_table` writes the page."""
    run(LIST)


def test_codecs_that_need_a_library_name_their_extra() -> None:
    needed = [line.split()[0] for line in run(WITHOUT_EXTRAS).splitlines()]
    named = run(
        "from zarrlite.extensions.registry import codecs; print(*(n for n in codecs.names() if codecs.find(n).extra))"
    )
    assert sorted(needed) == named.split()
    assert "False" not in run(WITHOUT_EXTRAS)
    rows = PAGE.read_text("utf-8").splitlines()
    assert all(any(f"`{name}`" in row and "extra `numcodecs`" in row for row in rows) for name in needed)


def test_every_registered_codec_is_known() -> None:
    known = run("from zarrlite.extensions.registry import codecs; print(*codecs.names())").split()
    assert {*REGISTERED_CODECS} <= {*known}

"""Random stacks of storage transformers, and chunk key encodings to combine with them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from zarrlite import ByteRange, MemoryStore
from zarrlite.buffers.ranges import ALL
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

ENCODINGS = [
    "default",
    {"name": "default", "configuration": {"separator": "."}},
    "v2",
    {"name": "v2", "configuration": {"separator": "/"}},
    {"name": "suffix", "configuration": {"suffix": ".tiff"}},
    {"name": "suffix", "configuration": {"suffix": "_x", "base_encoding": {"name": "suffix", "configuration": {
        "suffix": ".y/z", "base_encoding": "v2"}}}},
]  # fmt: skip
STRATEGIES = ["rewrite", "in-place", "append"]
ORDERS = ["row-major", "column-major", "morton"]
shardings = st.builds(
    Sharding,
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strategy=st.sampled_from(STRATEGIES),
    order=st.sampled_from(ORDERS),
    header=st.sampled_from([0, 5]),
)
PARTS = [
    ConcatParts([Part(".head", 1), Part(""), Part(".tail", 2)]),
    ConcatParts([Part(""), Part("-a/b", 1)]),
    ConcatParts([Part(".only")]),
    ConcatParts([Part(".x", 2), Part(".y"), Part(".z", 0)]),
]
stacks = st.lists(st.one_of(shardings, st.sampled_from(PARTS)), max_size=4).map(
    lambda stack: [t for i, t in enumerate(stack) if isinstance(t, Sharding) or t not in stack[:i]]
)


class StoreReadByKey(MemoryStore):
    """A store whose values are read by key: it keeps no file open, and does not know sizes in advance."""

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        return super().get(key, byte_range)


STORES = [MemoryStore, StoreReadByKey]

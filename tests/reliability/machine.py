"""Arrays against numpy: random operations on arrays with random extensions of all five kinds.

Rules
- A run creates an array with a random data type, grid, key encoding, codec chain and stack of storage transformers, in
  one of three stores, and applies the same operations to it and to a numpy array. A trial is one run of the machine.
- Everything that was read is kept and compared again at the end: no result may share memory with the library.
- At the end, a newly opened array has the same values, fsck finds no problem, and deleting the array leaves no file.
- Text and bytes of variable length are compared with Python objects, because numpy itself loses some text assignments.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import zarrlite
from tests.reliability.children import run_child
from tests.reliability.report import Figures
from tests.transformer_stacks import ENCODINGS, ORDERS, PARTS, STRATEGIES, StoreReadByKey
from zarrlite import Array, LocalStore, MemoryStore, Store
from zarrlite.codecs import (
    Bytes,
    Crc32c,
    Gzip,
    Offset,
    Packbits,
    Pad,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.layout import check
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

SAMPLE = 300  # runs
FULL = 10_000  # runs
BATCH = 50  # number of runs that share a seed; the first failure ends them
STEPS = 12  # maximum number of operations in a run

TEXTS = ["", "a", "größe", "🦓", "w" * 15, "x" * 16, "y" * 40, "z" * 300]
POINT = np.dtype([("x", "<i2"), ("name", "<U3"), ("y", "<f4")])
# data type -> some of its values, the fill value first; Python objects where numpy's own type is unreliable
VALUES: dict[Any, np.ndarray[Any, Any]] = {
    "bool": np.array([False, True]),
    "int8": np.array([0, 1, -128, 127], "i1"),
    "uint16": np.array([7, 0, 1, 65535], "u2"),
    ">i4": np.array([0, 1, -(2**31), 2**31 - 1], "i4"),
    "uint64": np.array([0, 1, 2**64 - 1], "u8"),
    "float16": np.array([0, 1.5, np.inf, np.nan], "f2"),
    "float64": np.array([np.nan, 0, -0.0, 1e300, -np.inf], "f8"),
    "complex64": np.array([0, 1 + 2j, complex(np.nan, 1)], "c8"),
    "datetime64[s]": np.array(["NaT", "1970-01-01", "2024-02-29T12:00:00"], "M8[s]"),
    "<U3": np.array(["", "a", "größe", "🦓"], "U3"),
    "S4": np.array([b"", b"a", b"\xff\xfe", b"1234"], "S4"),
    POINT: np.array([(0, "", 0), (1, "a", 1.5), (-1, "größe", -2)], POINT),
    "string": np.array(TEXTS, object),
    "bytes": np.array([b"", b"\0", *(text.encode() for text in TEXTS[1:])], object),
}
SERIALIZERS: dict[Any, list[Any]] = {
    "bool": [Bytes(), Packbits()],
    "int8": [Bytes(), Packbits()],
    "uint16": [Bytes(), Bytes("big"), Packbits(padding_encoding="first_byte")],
    "string": [VlenUtf8()],
    "bytes": [VlenBytes()],
}
FRAMING = [Pad("start", 3, b"abc"), Pad("end", 5), Offset(2), Pad("start", 0), Crc32c()]
COMPRESSORS = [Zstd(), Zstd(1, checksum=True), Gzip()]
ROOM = Pad("end", 12)  # ensures that a chunk has enough bytes for all parts of fixed size
INDEX_ENTRY = 16  # bytes


class Layout(NamedTuple):
    """The keyword arguments for a new array, except its shape and fill value."""

    dtype: Any
    chunks: tuple[int, ...]
    codecs: list[Any]
    chunk_key_encoding: Any
    storage_transformers: list[Any]
    write_empty_chunks: bool

    @property
    def values(self) -> np.ndarray[Any, Any]:
        return VALUES[self.dtype]


@st.composite
def chains(draw: Any, dtype: Any, shape: tuple[int, ...], levels: int = 2) -> tuple[list[Any], int | None]:
    """Generate codecs for chunks of this shape, and the size of the index at the end of a chunk (None without one)."""
    codecs: list[Any] = []
    if draw(st.booleans()):
        order = tuple(draw(st.permutations(range(len(shape)))))
        codecs.append(Transpose(order))
        shape = tuple(shape[axis] for axis in order)
    index = None
    if levels and draw(st.booleans()):
        inner = tuple(draw(st.sampled_from([n for n in range(1, length + 1) if length % n == 0])) for length in shape)
        index_codecs = [Bytes("little"), *draw(st.lists(st.sampled_from(FRAMING), max_size=2))]
        place = draw(st.sampled_from(["start", "end"]))
        header = draw(st.sampled_from([0, 0, 8])) if place == "end" else 0
        strategy, written = draw(st.sampled_from(STRATEGIES)), draw(st.sampled_from(ORDERS))
        inside, _ = draw(chains(dtype, inner, levels - 1))
        codecs.append(ShardingIndexed(inner, inside, index_codecs, place, strategy, written, header))
        if place == "end" and len(index_codecs) == 1:
            index = INDEX_ENTRY * int(np.prod([n // i for n, i in zip(shape, inner, strict=True)]))
    else:
        codecs.append(draw(st.sampled_from(SERIALIZERS.get(dtype, [Bytes(), Bytes("big")]))))
    tail = draw(st.lists(st.sampled_from(FRAMING + COMPRESSORS), max_size=2))
    return [*codecs, *tail], None if tail else index


@st.composite
def transformers(draw: Any, ndim: int, index: int | None) -> list[Any]:
    """Generate a stack of storage transformers. `index` is the size of the index at the end of a chunk."""
    stack: list[Any] = []
    for _ in range(draw(st.integers(0, 3))):
        if index is not None and draw(st.booleans()):  # store the index in a separate object
            stack.append(ConcatParts([Part(""), Part(f".index{len(stack)}", index)]))
            index = None
        elif draw(st.booleans()):
            per_shard = draw(st.tuples(*[st.integers(1, 3)] * ndim))
            options = draw(st.tuples(st.sampled_from(STRATEGIES), st.sampled_from(ORDERS), st.sampled_from([0, 5])))
            stack.append(Sharding(per_shard, *options))
            index = INDEX_ENTRY * int(np.prod(per_shard))
        else:
            stack += [parts for parts in [draw(st.sampled_from(PARTS))] if parts not in stack]
            index = None
    return stack


@st.composite
def layouts(draw: Any, ndim: int) -> Layout:
    """Generate everything about a new array except its shape."""
    dtype = draw(st.sampled_from(list(VALUES)))
    chunks = draw(st.tuples(*[st.sampled_from([1, 2, 3, 4, 6])] * ndim))
    codecs, index = draw(chains(dtype, chunks))
    stack = draw(transformers(ndim, index))
    if stack and stack[0] in PARTS:
        codecs.append(ROOM)
    return Layout(dtype, chunks, codecs, draw(st.sampled_from(ENCODINGS)), stack, draw(st.booleans()))


def shapes(ndim: int) -> Any:
    return st.tuples(*[st.integers(0, 9)] * ndim)


@st.composite
def orthogonal(draw: Any, shape: tuple[int, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Generate an orthogonal index, and the positions that it selects along each dimension, for numpy."""
    index: list[Any] = []
    positions: list[Any] = []
    for n in shape:
        kind = draw(st.sampled_from(["slice", "integer", "integers", "mask"]))
        if kind == "integer" and n:
            index.append(draw(st.integers(-n, n - 1)))
            positions.append([index[-1] % n])
        elif kind == "integers" and n:
            index.append(draw(st.lists(st.integers(0, n - 1), unique=True, max_size=5)))
            positions.append(index[-1])
        elif kind == "mask":
            index.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool))
            positions.append(np.flatnonzero(index[-1]))
        else:
            index.append(draw(st.slices(n)))
            positions.append(range(n)[index[-1]])
    return tuple(index), tuple(np.array(p, int) for p in positions)


@st.composite
def basic(draw: Any, shape: tuple[int, ...]) -> Any:
    """Generate an index of slices, integers and an ellipsis, perhaps with fewer items than dimensions."""
    items = [draw(st.one_of(st.slices(n), st.integers(-n, n - 1) if n else st.slices(n))) for n in shape]
    first = draw(st.integers(0, len(items)))
    last = draw(st.integers(first, len(items)))
    if draw(st.booleans()):
        return (*items[:first], ..., *items[last:])
    return tuple(items[:last]) if last != 1 else items[0]


@st.composite
def points(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Generate distinct points: an index array for each dimension; all of these arrays are either 1-D or 2-D."""
    size = int(np.prod(shape))
    flat = draw(st.lists(st.integers(0, size - 1), unique=True, min_size=1, max_size=8)) if size else []
    arrays = np.unravel_index(np.array(flat, int), shape) if size else [np.zeros(0, int) for _ in shape]
    if len(flat) % 2 == 0 and draw(st.booleans()):
        arrays = [array.reshape(2, -1) for array in arrays]
    return tuple(array - draw(st.sampled_from([0, n])) for array, n in zip(arrays, shape, strict=True))


def equal(found: Any, expected: Any) -> bool:
    """Whether two arrays have the same shape and values; NaN equals NaN."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "fcmM":
        return np.array_equal(found, expected, equal_nan=True)
    return bool(found.tolist() == expected.tolist())


class ArraysAgainstNumpy(RuleBasedStateMachine):
    """An array in a group, and a numpy array of the same values."""

    directory: str | None = None

    @initialize(data=st.data(), place=st.sampled_from(["memory", "read by key", "local"]))
    def start(self, data: Any, place: str) -> None:
        self.kept: list[tuple[Any, Any]] = []
        self.attributes: dict[str, Any] = {}
        self.store: Store = StoreReadByKey() if place == "read by key" else MemoryStore()
        if place == "local":
            self.directory = tempfile.mkdtemp()
            self.store = LocalStore(self.directory)
        self.group = zarrlite.create_group(self.store)
        self.create(data)

    def create(self, data: Any, overwrite: bool = False) -> None:
        """Create an array with the fill value everywhere."""
        ndim = data.draw(st.integers(1, 3))
        self.layout = data.draw(layouts(ndim))
        shape = data.draw(shapes(ndim))
        fill = self.layout.values[0]
        self.model = np.full(shape, fill, self.layout.values.dtype)
        keywords = {**self.layout._asdict(), "fill_value": fill, "shape": shape}
        self.array: Array = self.group.create_array("a", overwrite=overwrite, **keywords)
        self.attributes = {}
        assert equal(self.array[...], self.model)

    def draw_values(self, data: Any, shape: tuple[int, ...]) -> Any:
        """Draw values for a selection: an array of its shape, one that can be broadcast, or a scalar."""
        pool = self.layout.values
        form = data.draw(st.sampled_from(["array", "last axis", "scalar", "fill value"]))
        if form == "fill value":
            return pool[0]
        if form == "scalar":
            return pool[data.draw(st.integers(0, len(pool) - 1))]
        random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
        values = np.asarray(pool[random.integers(len(pool), size=shape if form == "array" else shape[-1:])], pool.dtype)
        return values.astype("T") if self.layout.dtype == "string" and data.draw(st.booleans()) else values

    def keep(self, found: Any, expected: Any) -> None:
        assert equal(found, expected), f"read {found!r}, not {expected!r}"
        self.kept.append((found, np.asarray(expected).copy()))

    # writing

    @rule(data=st.data())
    def write_slices(self, data: Any) -> None:
        index = data.draw(basic(self.model.shape))
        values = self.draw_values(data, np.shape(self.model[index]))
        self.array[index] = values
        self.model[index] = values

    @rule(data=st.data())
    def write_orthogonally(self, data: Any) -> None:
        index, positions = data.draw(orthogonal(self.model.shape))
        dropped = tuple(axis for axis, item in enumerate(index) if isinstance(item, int))
        shape = tuple(len(p) for axis, p in enumerate(positions) if axis not in dropped)
        values = self.draw_values(data, shape)
        self.array.oindex[index] = values
        full = np.broadcast_to(np.asarray(values, self.model.dtype), shape)
        self.model[np.ix_(*positions)] = full.reshape([len(p) for p in positions])

    @rule(data=st.data())
    def write_points(self, data: Any) -> None:
        index = data.draw(points(self.model.shape))
        values = self.draw_values(data, index[0].shape)
        self.array.vindex[index] = values
        self.model[index] = np.asarray(values, self.model.dtype)

    @rule(data=st.data())
    def write_by_mask(self, data: Any) -> None:
        random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
        mask = random.random(self.model.shape) < data.draw(st.sampled_from([0.0, 0.2, 0.8]))
        values = np.asarray(self.draw_values(data, (int(mask.sum()),)), self.model.dtype)
        if data.draw(st.booleans()):
            self.array[mask] = values
        else:
            self.array.vindex[mask] = values
        self.model[mask] = values

    @precondition(lambda self: self.layout.dtype is POINT)
    @rule(data=st.data(), field=st.sampled_from(["x", "y", "name"]))
    def write_a_field(self, data: Any, field: str) -> None:
        values = self.draw_values(data, self.model.shape)[field]
        self.array[field] = values
        self.model[field] = values

    @precondition(lambda self: self.model.size)
    @rule(data=st.data())
    def write_blocks(self, data: Any) -> None:
        grid = [-(-n // c) for n, c in zip(self.model.shape, self.layout.chunks, strict=True)]
        block = tuple(data.draw(st.integers(0, n - 1)) for n in grid)
        inside = tuple(slice(b * c, (b + 1) * c) for b, c in zip(block, self.layout.chunks, strict=True))
        values = self.draw_values(data, self.model[inside].shape)
        self.array.blocks[block] = values
        self.model[inside] = values

    # reading

    @rule(data=st.data())
    def read_slices(self, data: Any) -> None:
        index = data.draw(basic(self.model.shape))
        self.keep(self.array[index], self.model[index])

    @rule(data=st.data())
    def read_orthogonally(self, data: Any) -> None:
        index, positions = data.draw(orthogonal(self.model.shape))
        dropped = tuple(axis for axis, item in enumerate(index) if isinstance(item, int))
        self.keep(self.array.oindex[index], self.model[np.ix_(*positions)].squeeze(dropped))

    @rule(data=st.data())
    def read_points(self, data: Any) -> None:
        index = data.draw(points(self.model.shape))
        self.keep(self.array.vindex[index], self.model[index])

    @rule(data=st.data())
    def read_by_mask(self, data: Any) -> None:
        mask = np.random.default_rng(data.draw(st.integers(0, 2**16))).random(self.model.shape) < 0.5
        self.keep(self.array[mask], self.model[mask])

    @precondition(lambda self: self.layout.dtype is POINT)
    @rule(field=st.sampled_from(["x", "y", "name"]))
    def read_a_field(self, field: str) -> None:
        self.keep(self.array[field], self.model[field])

    @rule()
    def read_rows(self) -> None:
        for found, expected in zip(self.array, self.model, strict=True):
            self.keep(found, expected)

    # shape

    @rule(data=st.data())
    def resize(self, data: Any) -> None:
        shape = data.draw(shapes(self.model.ndim))
        self.array.resize(shape)
        grown = np.full(shape, self.layout.values[0], self.model.dtype)
        common = tuple(slice(0, min(n, m)) for n, m in zip(shape, self.model.shape, strict=True))
        grown[common] = self.model[common]
        self.model = grown

    @rule(data=st.data())
    def append(self, data: Any) -> None:
        axis = data.draw(st.integers(0, self.model.ndim - 1))
        shape = list(self.model.shape)
        shape[axis] = data.draw(st.integers(0, 4))
        full = np.empty(shape, self.model.dtype)
        full[...] = self.draw_values(data, tuple(shape))
        assert self.array.append(full, axis=axis) == self.array.shape
        self.model = np.concatenate([self.model, full], axis)

    # the node

    @rule()
    def reopen(self) -> None:
        self.array = self.opened()
        assert dict(self.array.attrs) == self.attributes

    def opened(self) -> Array:
        """Open the array again, with the runtime options that it was created with."""
        options: dict[str, Any] = {}
        for member in ("codecs", "storage_transformers"):
            for i, extension in enumerate(getattr(self.layout, member)):
                if isinstance(extension, (Sharding, ShardingIndexed)):
                    options[f"/{member}/{i}"] = extension.writing._asdict()
        empty = self.layout.write_empty_chunks
        return zarrlite.open_array(self.store, mode="r+", path="a", options=options, write_empty_chunks=empty)

    @precondition(lambda self: self.directory)
    @rule()
    def pickle(self) -> None:
        self.array = pickle.loads(pickle.dumps(self.array))

    @rule(name=st.sampled_from("abc"), value=st.integers(0, 9))
    def set_attribute(self, name: str, value: int) -> None:
        self.array.attrs[name] = value
        self.attributes[name] = value

    @rule(into=st.sampled_from(["memory", "the same store"]))
    def copy(self, into: str) -> None:
        target = MemoryStore() if into == "memory" else self.store
        copied = zarrlite.copy(self.array, target, "copy", overwrite=True)
        assert isinstance(copied, Array)
        self.keep(copied[...], self.model)
        assert dict(copied.attrs) == self.attributes

    @rule()
    def consolidate(self) -> None:
        zarrlite.consolidate_metadata(self.store)
        read = zarrlite.open_group(self.store, mode="r", use_consolidated=True)["a"]
        assert (read.shape, dict(read.attrs)) == (self.model.shape, self.attributes)

    @rule(data=st.data())
    def delete_and_create(self, data: Any) -> None:
        del self.group["a"]
        assert "a" not in self.group
        assert not list(self.store.list_prefix("a/"))
        self.create(data)

    @rule(data=st.data())
    def overwrite(self, data: Any) -> None:
        self.create(data, overwrite=True)

    def teardown(self) -> None:
        try:
            # skipped after a failed rule: Hypothesis reports only one failure per run, and the rule's is clearer
            if sys.exception() is None:
                self.look()
        finally:
            if self.directory:
                shutil.rmtree(self.directory)

    def look(self) -> None:
        """Compare the array and the results of all earlier reads with the model, and check the store."""
        for handle in (self.array, self.opened()):
            found = handle[...]
            assert equal(found, self.model), f"stored {found!r}, not {self.model!r}"
        for found, expected in self.kept:
            assert equal(found, expected), "a result changed after it was returned"
        problems = list(check(self.store))
        assert not problems, f"fsck reports {problems}"
        del self.group["a"]
        if "copy" in self.group:
            del self.group["copy"]
        left = list(self.store.list())
        assert left == ["zarr.json"], f"deleting the array leaves {left}"
        if self.directory:
            left = [str(path) for path in Path(self.directory).rglob("*") if path.name != "zarr.json"]
            assert not left, f"deleting the array leaves {left}"


def run(trials: int | None, seed: int) -> Figures:
    """Run the machine this many times, in batches with one seed each."""
    figures = Figures("machine", seed)
    random = np.random.default_rng(seed)
    for done in range(0, FULL if trials is None else trials, BATCH):
        count = min(BATCH, (FULL if trials is None else trials) - done)
        _run_batch(figures, f"{random.integers(2**32)} {count}")
    return figures


def replay(spec: str) -> Figures:
    """Repeat a batch."""
    figures = Figures("machine", 0)
    _run_batch(figures, spec)
    return figures


def _run_batch(figures: Figures, spec: str) -> None:
    """Run a batch in a forked child, because numpy may crash the process."""
    status, answer = run_child(lambda: json.dumps(_outcome(spec)).encode())
    outcome, description = json.loads(answer) if status == 0 else ("died", f"exit code {status}: {answer.decode()}")
    if outcome == "equal":
        figures.passed("arrays", outcome, int(spec.split()[1]))
    else:
        figures.failed("arrays", outcome, spec, description)


def _outcome(spec: str) -> tuple[str, str]:
    seed, count = map(int, spec.split())

    class Seeded(ArraysAgainstNumpy):
        """The machine with its own seed."""

    described = io.StringIO()
    try:
        with contextlib.redirect_stdout(described):
            run_state_machine_as_test(seeded(seed)(Seeded), settings=_settings(count))
    except Exception as error:
        steps = "\n".join(getattr(error, "__notes__", []))
        outcome = "different" if isinstance(error, AssertionError) else type(error).__name__
        return outcome, f"{error}\n{steps}\n{described.getvalue()}"
    return "equal", ""


def _settings(runs: int) -> settings:
    """Return the Hypothesis settings for this many runs, without deadlines and without a database of past failures."""
    return settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

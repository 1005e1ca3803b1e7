"""The `rectilinear` chunk grid: the examples in its specification, and comparisons of its arrays with numpy arrays."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrlite
import zarrlite.n5
import zarrlite.tiff
from zarrlite.chunk_grids import ChunkGrid, Rectilinear
from zarrlite.errors import ArgumentError, MetadataError, MissingChunkError, SelectionError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.layout import check, explain
from zarrlite.pipeline.codec import ChunkOptions
from zarrlite.tools.cli.main import main

GRID = Rectilinear([[16, 10], [24, 14]])


def parse(*chunk_shapes: Any) -> Any:
    value = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [*chunk_shapes]}}
    return registry.chunk_grids.parse(value, "/chunk_grid", Context())


# the specification


def test_an_element_is_in_the_chunk_of_the_specification() -> None:
    # rectilinear grid, Indexing: "resolves to the chunk grid index (1, 0) and the chunk index (4, 15)"
    assert GRID.locate((20, 15)) == ((1, 0), (4, 15))
    assert GRID.grid_shape((26, 38)) == (2, 2)
    assert [GRID.chunk_shape(c) for c in itertools.product(range(2), repeat=2)] == [
        (16, 24),
        (16, 14),
        (10, 24),
        (10, 14),
    ]
    assert GRID.origin((1, 1)) == (16, 24)


def test_every_form_of_the_example_is_read() -> None:
    # rectilinear grid, Example
    grid = parse(4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4])
    grid.check((6,) * 5)
    assert grid.grid_shape((6,) * 5) == (2, 3, 2, 4, 2)
    lengths = [[grid.chunk_shape((i,) * 5)[dim] for i in range(n)] for dim, n in enumerate((2, 3, 2, 4, 3))]
    assert lengths == [[4, 4], [1, 2, 3], [4, 4], [1, 1, 1, 3], [4, 4, 4]]


def test_consecutive_equal_lengths_are_written_as_runs() -> None:
    written = parse(4, [1, 2, 3], [4, 4], [[1, 2], 1, 3, 3], []).to_json()
    assert written["configuration"] == {
        "kind": "inline",
        "chunk_shapes": [4, [1, 2, 3], [[4, 2]], [[1, 3], [3, 2]], []],
    }
    assert parse(*written["configuration"]["chunk_shapes"]).to_json() == written


def test_grids_compare_hash_and_pickle_by_value() -> None:
    assert Rectilinear([[2, 2], 3]) == Rectilinear([[[2, 2]], 3]) == Rectilinear((np.array([2, 2]), np.int64(3)))
    assert hash(Rectilinear([[2, 2], 3])) == hash(Rectilinear([[[2, 2]], 3]))
    assert Rectilinear([[2, 2]]) != Rectilinear([2])  # the second grid is unbounded
    assert pickle.loads(pickle.dumps(GRID)) == GRID


@pytest.mark.parametrize(
    ("chunk_shapes", "pointer", "kind", "message"),
    [
        ([0], "/0", "value", f"must be an integer from 1 to {2**63 - 1}, not 0"),
        ([-3], "/0", "value", f"must be an integer from 1 to {2**63 - 1}, not -3"),
        ([True], "/0", "type", "must be an integer, not true"),
        ([4.0], "/0", "type", "must be an integer or an array, not 4.0"),
        (["4"], "/0", "type", 'must be an integer or an array, not "4"'),
        ([None], "/0", "type", "must be an integer or an array, not null"),
        ([[3, 0]], "/0/1", "value", f"must be an integer from 1 to {2**63 - 1}, not 0"),
        ([[3, 2.0]], "/0/1", "type", "must be an integer or a run [length, count], not 2.0"),
        ([2, [3, "x"]], "/1/1", "type", 'must be an integer or a run [length, count], not "x"'),
        ([[[3]]], "/0/0", "value", "must be an integer or a run [length, count], not [3]"),
        ([[[3, 1, 1]]], "/0/0", "value", "must be an integer or a run [length, count], not [3, 1, 1]"),
        ([[[3, 0]]], "/0/0/1", "value", f"must be an integer from 1 to {2**63 - 1}, not 0"),
        ([[[0, 3]]], "/0/0/0", "value", f"must be an integer from 1 to {2**63 - 1}, not 0"),
        ([[[3, [1, 2]]]], "/0/0/1", "type", "must be an integer, not [1, 2]"),
        ([[1, [3, True]]], "/0/1/1", "type", "must be an integer, not true"),
        ([2**63], "/0", "value", f"must be an integer from 1 to {2**63 - 1}, not {2**63}"),
    ],
)
def test_invalid_lengths_are_refused_with_a_pointer(chunk_shapes: Any, pointer: str, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(*chunk_shapes)
    assert caught.value.pointer == "/chunk_grid/configuration/chunk_shapes" + pointer
    assert (caught.value.kind, caught.value.message) == (kind, message)


@pytest.mark.parametrize(
    ("configuration", "pointer", "kind"),
    [
        ({"chunk_shapes": [1]}, "/kind", "missing"),
        ({"kind": "external", "chunk_shapes": [1]}, "/kind", "value"),
        ({"kind": "inline"}, "/chunk_shapes", "missing"),
        ({"kind": "inline", "chunk_shapes": 3}, "/chunk_shapes", "type"),
        ({"kind": "inline", "chunk_shapes": [3], "chunk_shape": [3]}, "/chunk_shape", "unknown-member"),
    ],
)
def test_invalid_configurations_are_refused_with_a_pointer(configuration: Any, pointer: str, kind: str) -> None:
    value = {"name": "rectilinear", "configuration": configuration}
    with pytest.raises(MetadataError) as caught:
        registry.chunk_grids.parse(value, "/chunk_grid", Context())
    assert (caught.value.pointer, caught.value.kind) == ("/chunk_grid/configuration" + pointer, kind)


def test_a_grid_must_have_all_dimensions_and_cover_the_array() -> None:
    for shape, pointer, message in [
        ((26,), "", "must have 1 items, one for each dimension, not 2"),
        ((26, 39), "/1", "must add up to at least 39, the length of the dimension, not 38"),
    ]:
        with pytest.raises(MetadataError) as caught:
            GRID.check(shape)
        assert (caught.value.pointer, caught.value.kind) == ("/configuration/chunk_shapes" + pointer, "conflict")
        assert caught.value.message == message
    GRID.check((26, 38))
    GRID.check((1, 0))  # "Overflowing L by multiple chunks is permitted"
    parse([], 3).check((0, 7))


def test_runs_of_any_length_take_no_memory() -> None:
    grid = parse([1, [3, 2**60], [2**62, 2**62], 7], [[2**63 - 1, 2**63 - 1]])
    shape = (2**63 - 1, 2**63 - 1)
    grid.check(shape)
    assert grid.grid_shape(shape) == (2**60 + 3, 1)
    assert grid.locate((3 * 2**60 + 1, 5)) == ((2**60 + 1, 0), (0, 5))
    assert grid.origin((2**60 + 1, 0)) == (3 * 2**60 + 1, 0)
    assert grid.chunk_shape((2**60, 0)) == (3, 2**63 - 1)
    array = zarrlite.create_array({}, shape=2**63 - 1, dtype="u1", chunks=[[1, [3, 2**62]]])
    array[2**62 : 2**62 + 5] = 7
    assert array[2**62 - 1 : 2**62 + 6].tolist() == [0, 7, 7, 7, 7, 7, 0]
    assert array.oindex[[2**62, 5, 2**62 + 1]].tolist() == [7, 0, 7]
    with pytest.raises(ArgumentError, match="at most 1048576 chunks"):
        _ = array.write_chunk_sizes
    assert "_repr_html_" in dir(array)
    assert array._repr_html_()


# laws


@st.composite
def divided(draw: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the shape of an array, and a rectilinear grid for it that may extend beyond the array."""
    shape, axes = [], []
    for _ in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 12))
        shape.append(length)
        if draw(st.booleans()):
            axes.append(draw(st.integers(1, 6)))
            continue
        edges: list[Any] = []
        covered = 0
        while covered < length or draw(st.integers(0, 4)) == 0:
            edge = draw(st.integers(1, 5))
            count = draw(st.integers(1, 3))
            edges.append(edge if count == 1 else [edge, count])
            covered += edge * count
        axes.append(edges)
    return tuple(shape), axes


def expanded(axis: Any, length: int) -> list[int]:
    """Return the lengths of all chunks along a dimension, with run-length encoding expanded as specified."""
    if isinstance(axis, int):
        return [axis] * -(-length // axis)
    return [edge for item in axis for edge in ([item] if isinstance(item, int) else [item[0]] * item[1])]


@given(divided())
def test_chunks_equal_those_of_the_expanded_list(case: Any) -> None:
    shape, axes = case
    grid = parse(*axes)
    grid.check(shape)
    for dim, (axis, length) in enumerate(zip(axes, shape, strict=True)):
        lengths = expanded(axis, length)
        starts = [0, *itertools.accumulate(lengths)]
        assert grid.grid_shape(shape)[dim] == next(i for i, end in enumerate(starts) if end >= length)
        for i, edge in enumerate(lengths):
            coords = tuple(i if d == dim else 0 for d in range(len(shape)))
            assert (grid.origin(coords)[dim], grid.chunk_shape(coords)[dim]) == (starts[i], edge)
        for position in range(length):
            coords = tuple(position if d == dim else 0 for d in range(len(shape)))
            # "the index of the first element of C that exceeds"
            expected = next(i for i, end in enumerate(starts[1:]) if end > position)
            chunk, inside = grid.locate(coords)
            assert (chunk[dim], inside[dim]) == (expected, position - starts[expected])


def slices(length: int) -> st.SearchStrategy[slice]:
    bound = st.integers(-length - 1, length + 1) | st.none()
    return st.builds(slice, bound, bound, st.integers(-5, 5).filter(bool) | st.none())


CHAINS: list[dict[str, Any]] = [
    {"compressors": None},
    {"compressors": ["zstd", "crc32c"]},
    {"compressors": None, "filters": "reverse"},
    {"compressors": ["gzip"], "filters": "reverse"},
]


@settings(max_examples=150, deadline=None)
@given(divided(), st.sampled_from(CHAINS), st.data())
def test_every_selection_reads_and_writes_as_in_numpy(case: Any, chain: Any, data: Any) -> None:
    shape, axes = case
    ndim = len(shape)
    if chain.get("filters"):
        order = {"name": "transpose", "configuration": {"order": [*range(ndim)][::-1]}}
        chain = chain | {"filters": [order]}
    expected = np.arange(1, np.prod(shape) + 1, dtype="int16").reshape(shape)
    array = zarrlite.create_array({}, data=expected, chunks=axes if _uneven(axes) else tuple(axes), **chain)
    assert np.array_equal(array[...], expected)
    value = itertools.count(-100, -1)

    index = tuple(data.draw(slices(n) | st.integers(-n, n - 1)) for n in shape)
    assert np.array_equal(array[index], expected[index])
    expected[index] = array[index] = next(value)

    points = [data.draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2)) for n in shape]
    assert np.array_equal(array.vindex[tuple(points)], expected[tuple(points)])
    expected[tuple(points)] = array.vindex[tuple(points)] = next(value)

    rows = [sorted(set(data.draw(st.lists(st.integers(0, n - 1), min_size=1)))) for n in shape]
    assert np.array_equal(array.oindex[tuple(rows)], expected[np.ix_(*rows)])
    array.oindex[tuple(rows)] = expected[np.ix_(*rows)] = next(value)

    mask = expected % 3 == 0
    assert np.array_equal(array[mask], expected[mask])
    expected[mask] = array[mask] = next(value)

    coords = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    assert array[coords] == expected[coords]
    expected[coords] = array[coords] = next(value)

    block = tuple(data.draw(st.integers(0, n - 1)) for n in array.cdata_shape)
    ends = [[0, *itertools.accumulate(sizes)] for sizes in array.write_chunk_sizes]
    where = tuple(slice(end[i], end[i + 1]) for end, i in zip(ends, block, strict=True))
    assert np.array_equal(array.blocks[block], expected[where])
    array.blocks[block] = expected[where] = next(value)

    assert np.array_equal(array[...], expected)
    assert np.array_equal(zarrlite.open(array.store, mode="r")[...], expected)
    assert list(map(np.ndarray.tolist, array)) == expected.tolist() if ndim > 1 else True


def _uneven(axes: list[Any]) -> bool:
    return any(isinstance(axis, list) for axis in axes)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.lists(st.integers(0, 30), min_size=1, max_size=5),
    st.booleans(),
)
def test_resizing_keeps_the_elements_inside_the_new_shape(edges: list[int], lengths: list[int], sharded: bool) -> None:
    edges = [2 * edge for edge in edges]
    expected = np.arange(1, sum(edges) + 1)
    keywords: dict[str, Any] = {"chunks": (2,), "shards": [edges]} if sharded else {"chunks": [edges]}
    array = zarrlite.create_array({}, data=expected, **keywords)
    other = zarrlite.open(array.store, mode="r+")
    for length in lengths:
        array.resize(length)
        expected = np.concatenate([expected[:length], np.zeros(max(0, length - len(expected)), expected.dtype)])
        assert np.array_equal(array[...], expected)
        assert np.array_equal(zarrlite.open(array.store, mode="r")[...], expected)
    other.append(np.full(3, 9))  # `other` still has the metadata from before the array was resized
    assert np.array_equal(other[...], [*expected, 9, 9, 9])
    assert not list(check(array.store))


# arrays


def test_chunks_have_the_full_length_at_the_edge_of_the_array() -> None:
    array = zarrlite.create_array({}, shape=(5, 4), dtype="u1", chunks=[[2, 6], [3, 1]], compressors=None)
    array[...] = np.arange(1, 21).reshape(5, 4)
    stored = {key: bytes(array.store.get(key)) for key in array.store.list() if key != "zarr.json"}
    assert stored == {
        "c/0/0": bytes([1, 2, 3, 5, 6, 7]),
        "c/0/1": bytes([4, 8]),
        "c/1/0": bytes([9, 10, 11, 13, 14, 15, 17, 18, 19, *[0] * 9]),
        "c/1/1": bytes([12, 16, 20, 0, 0, 0]),
    }
    assert array.metadata.to_json()["chunk_grid"] == {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[2, 6], [3, 1]]},
    }
    assert (array.chunks, array.shards, array.cdata_shape, array.nchunks) == ((6, 3), None, (2, 2), 4)
    assert array.write_chunk_sizes == array.read_chunk_sizes == ((2, 3), (3, 1))
    assert "Chunk shape" in str(array.info)


def test_growing_beyond_the_grid_adds_one_chunk() -> None:
    array = zarrlite.create_array({}, data=np.arange(12), chunks=[[3, 4, 5]])
    array.append(np.arange(12, 19))
    assert array.write_chunk_sizes == ((3, 4, 5, 7),)
    array.resize(4)
    assert array.write_chunk_sizes == ((3, 1),)
    assert array.metadata.chunk_grid == Rectilinear([[3, 4, 5, 7]])
    array.resize(19)  # the grid already covers 19 elements
    assert array[...].tolist() == [0, 1, 2, 3, *[0] * 15]
    assert array.metadata.chunk_grid == Rectilinear([[3, 4, 5, 7]])
    fixed = zarrlite.create_array({}, shape=(3, 3), dtype="u1", chunks=[[1, 2], 2])
    fixed.resize((3, 9))
    assert fixed.metadata.chunk_grid == Rectilinear([[1, 2], 2])


def test_shards_of_different_lengths_have_equal_inner_chunks() -> None:
    data = np.arange(1, 12 * 9 + 1, dtype="int32").reshape(12, 9)
    array = zarrlite.create_array({}, data=data, chunks=(2, 3), shards=[[4, 2, 6], 9])
    assert (array.chunks, array.shards, array.cdata_shape) == ((2, 3), (6, 9), (6, 3))
    assert array.write_chunk_sizes == ((4, 2, 6), (9,))
    assert array.read_chunk_sizes == ((2,) * 6, (3,) * 3)
    assert sorted(array.store.list()) == ["c/0/0", "c/1/0", "c/2/0", "zarr.json"]
    assert np.array_equal(array[3:11, 1:8], data[3:11, 1:8])
    array[3:11:3, 2] = -1
    data[3:11:3, 2] = -1
    assert np.array_equal(array[...], data)
    assert array.nchunks_initialized == 18
    array.append(data[:3])  # the new shard has 4 rows, a multiple of the inner chunk length (2)
    assert array.metadata.chunk_grid == Rectilinear([[4, 2, 6, 4], 9])
    assert np.array_equal(array[...], np.concatenate([data, data[:3]]))
    assert not list(check(array.store))


def test_the_lengths_of_shards_are_multiples_of_those_of_inner_chunks() -> None:
    with pytest.raises(MetadataError) as caught:
        zarrlite.create_array({}, shape=12, dtype="u1", chunks=2, shards=[[4, 2, 3, 3]])
    assert caught.value.pointer == "/codecs/0/configuration/chunk_shape/0"
    assert caught.value.message == "must divide 3, the length of the shard, evenly; 2 does not"


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"chunks": [[3, 4], 2], "shards": (7, 2)}, ArgumentError, "list them in shards="),
        ({"chunks": [[3, 4]]}, ArgumentError, "chunks must have 2 items, one for each dimension, not 1"),
        ({"chunks": [["a"], 2]}, ArgumentError, "chunks must have a length or a list of lengths for each dimension"),
        ({"chunks": [[3.5, 4], 2]}, ArgumentError, "chunks must have a length or a list of lengths for each dimension"),
        ({"chunks": [[3, 3], 2]}, MetadataError, "must add up to at least 7, the length of the dimension, not 6"),
        ({"chunks": [[7, 0], 2]}, MetadataError, "must be an integer from 1"),
        ({"chunks": [[], 2]}, MetadataError, "must add up to at least 7"),
        ({"chunks": [[7], 0]}, MetadataError, "must be an integer from 1"),
    ],
)
def test_lists_of_lengths_that_do_not_fit_are_refused(keywords: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        zarrlite.create_array({}, shape=(7, 6), dtype="u1", **keywords)


def test_an_empty_list_divides_an_empty_dimension() -> None:
    array = zarrlite.create_array({}, shape=(0, 3), dtype="u1", chunks=[[], 2])
    assert (array[...].shape, array.nchunks, array.write_chunk_sizes) == ((0, 3), 0, ((), (2, 1)))
    array.append(np.ones((2, 3), "u1"))
    assert array[...].tolist() == [[1, 1, 1]] * 2


def test_a_grid_of_integers_is_read_like_a_regular_one() -> None:
    document = zarrlite.create_array({}, shape=(4, 6), dtype="u1", chunks=(2, 3)).metadata.to_json()
    document["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [2, 3]}}
    metadata = zarrlite.ArrayMetadata.from_json(document)
    assert metadata.chunk_grid.uniform
    assert metadata.to_json() == document
    assert metadata.for_chunks(ChunkOptions())[1] is not None


def test_missing_chunks_and_blocks_are_reported() -> None:
    array = zarrlite.create_array({}, shape=12, dtype="u1", chunks=[[3, 4, 5]], missing_chunks="error")
    array[3:7] = 1
    assert array[3:7].tolist() == [1] * 4
    with pytest.raises(MissingChunkError, match="c/2"):
        _ = array[4:9]
    with pytest.raises(SelectionError):
        _ = array.blocks[3]
    assert array.blocks[1:1].shape == (0,)


def test_many_chunks_of_few_shapes_are_read_together() -> None:
    """Chunks of the same shape share a pipeline, and are requested together in batches."""
    requests: list[int] = []

    class Counting(zarrlite.stores.MemoryStore):
        def get_partial_values(self, requested: Any, memory: Any = None) -> Any:
            requests.append(len(requested))
            return super().get_partial_values(requested, memory)

    edges = [3, 5] * 500
    data = np.arange(sum(edges))
    array = zarrlite.create_array(Counting(), data=data, chunks=[edges])
    requests.clear()
    assert np.array_equal(array[...], data)
    assert sum(requests) == 1000
    assert len(requests) <= 20
    assert len(array.metadata._pipelines) <= 4


def test_the_number_of_bound_pipelines_is_bounded() -> None:
    edges = list(range(1, 1500))
    data = np.arange(sum(edges))
    array = zarrlite.create_array({}, data=data, chunks=[edges])
    assert np.array_equal(array[...], data)
    assert len(array.metadata._pipelines) <= 1024


def test_chunks_outside_of_the_grid_are_found() -> None:
    array = zarrlite.create_array({}, data=np.arange(1, 8, dtype="u1"), chunks=[[3, 4]], compressors=None)
    array.store.set("c/5", b"1234")
    problems = list(check(array.store))
    assert [(problem.kind, problem.key) for problem in problems] == [("outside", "c/5")]
    array.store.erase("c/5")
    array.store.set("c/1", b"123")
    assert [problem.kind for problem in check(array.store)] == ["size"]


def test_each_chunk_is_explained_with_its_own_bounds() -> None:
    array = zarrlite.create_array({}, data=np.arange(1, 10, dtype="u2"), chunks=[[3, 4, 5]], compressors=None)
    (stored,) = explain(array, "c/1")
    assert (stored.size, stored.layout.detail["holds"]) == (8, [[3, 7]])
    (stored,) = explain(array, "c/2")
    assert (stored.size, stored.layout.detail["holds"]) == (10, [[7, 9]])


def test_pictures_have_chunks_to_scale() -> None:
    array = zarrlite.create_array({}, shape=(9, 12), dtype="u1", chunks=[[2, 2, 6], [3, 4, 5]])
    picture = array._repr_html_()
    assert "12: 3 chunks of up to 5" in picture
    assert "9: 3 chunks of up to 6" in picture
    shards = zarrlite.create_array({}, shape=12, dtype="u1", chunks=2, shards=[[4, 8]])
    assert "12: 2 shards of up to 8, chunks of 2" in shards._repr_html_()
    many = zarrlite.create_array({}, shape=2**40, dtype="u1", chunks=[[1, [3, 2**40]]])
    assert len(many._repr_html_()) < 50_000


def test_formats_with_equal_chunks_refuse_lists_of_lengths() -> None:
    with pytest.raises(ArgumentError, match="the blocks of an N5 array must all have the same shape"):
        zarrlite.n5.create_array({}, shape=(4, 4), dtype="u1", chunks=[[1, 3], 4])
    with pytest.raises(ArgumentError):
        zarrlite.tiff.create_array({}, shape=(4, 4), dtype="u1", chunks=[[1, 3], 4])


def test_reencode_asks_for_chunks_of_one_shape(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    data = np.arange(12)
    zarrlite.create_array(tmp_path / "a", data=data, chunks=[[3, 4, 5]])
    old, new = str(tmp_path / "a"), str(tmp_path / "b")
    assert main(["reencode", old, new, "--codecs", "gzip:level=1"]) != 0
    assert "choose chunks" in capsys.readouterr().err
    assert main(["reencode", old, new, "--chunks", "4"]) == 0
    assert np.array_equal(zarrlite.open(new)[...], data)
    for command in (["info", old], ["validate", old], ["fsck", old], ["diff", old, new, "--data"], ["ls", old]):
        main(command)
    assert "Traceback" not in capsys.readouterr().err


def test_a_grid_of_another_package_needs_only_the_abstract_methods() -> None:
    class Halves(ChunkGrid):
        name = "example.halves"

        def check(self, shape: Any) -> None: ...
        def grid_shape(self, shape: Any) -> Any:
            return (2,)

        def chunk_shape(self, coords: Any) -> Any:
            return (5,) if coords == (0,) else (3,)

        def origin(self, coords: Any) -> Any:
            return (5 * coords[0],)

        def locate(self, coords: Any) -> Any:
            return (coords[0] // 5,), (coords[0] % 5,)

        def project(self, selection: Any) -> Any:
            return Rectilinear([[5, 3]]).project(selection)

    assert Halves().largest_chunk(1) == (5,)
    assert Halves().only(None) is None  # type: ignore[arg-type]
    metadata = zarrlite.create_array({}, shape=8, dtype="u1", chunks=8).metadata.replace(chunk_grid=Halves())
    array = zarrlite.Array(zarrlite.stores.MemoryStore(), "", metadata)
    array[...] = np.arange(8)
    assert array[2:7].tolist() == [2, 3, 4, 5, 6]
    assert array.write_chunk_sizes == ((5, 3),)

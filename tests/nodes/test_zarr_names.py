"""The names, arguments and settings of zarr-python that scripts use, in zarrlite."""

from __future__ import annotations

import inspect
import operator
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import codecs, dtype, errors
from zarrlite.core.group import GroupMetadata, create_hierarchy
from zarrlite.errors import ArgumentError
from zarrlite.nodes.settings import SETTINGS


@pytest.fixture(autouse=True)
def _reset() -> Any:
    yield
    zarrlite.config.reset()


# settings


def test_settings_are_the_defaults_of_arrays_that_are_opened_or_created(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with zarrlite.config.set({"array": {"order": "F", "write_empty_chunks": True}}):
        array = zarrlite.create_array(path, name="a", data=np.zeros((2, 3)))
        created = [
            zarrlite.create((2, 3)),
            zarrlite.array(np.zeros((2, 3))),
            zarrlite.create_group().create_array("a", shape=(2, 3), dtype="i1"),
            zarrlite.open_array(path, path="a"),
            zarrlite.open_group(path)["a"],
            zarrlite.open(path, path="a", mode="r"),
        ]
        explicit = zarrlite.open_array(path, path="a", write_empty_chunks=False, order="C")
    assert array[...].flags.f_contiguous
    assert (path / "a/c/0/0").exists()
    assert {(node.config.order, node.config.write_empty_chunks) for node in created} == {("F", True)}  # type: ignore[union-attr]
    assert (explicit.order, explicit.config.write_empty_chunks) == ("C", False)
    assert zarrlite.open_array(path, path="a").order == "C"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("array.order", "K"),
        ("array.write_empty_chunks", 1),
        ("async.concurrency", 0),
        ("default_zarr_format", 2),
        ("threading.max_workers", True),
    ],
)
def test_a_value_that_does_not_fit_changes_no_setting(key: str, value: object) -> None:
    with pytest.raises(ArgumentError, match=rf"^{key} must be .*, not {value!r}$"):
        zarrlite.config.set({"array.order": "F", key: value})
    assert {key: zarrlite.config.get(key) for key in SETTINGS} == {k: s.default for k, s in SETTINGS.items()}


@pytest.mark.parametrize("key", ["array.ordr", "codecs.blosc", ""])
def test_an_unknown_setting_is_refused(key: str) -> None:
    with pytest.raises(ArgumentError, match=r"^zarrlite has no setting .*; the settings are array.order, "):
        zarrlite.config.get(key)
    with pytest.raises(ArgumentError, match="no setting"):
        zarrlite.config.set({key: 1})


def test_settings_limit_threads_and_requests() -> None:
    from zarrlite import threads

    assert threads.place("somewhere", 64).requests == 64
    with zarrlite.config.set({"threading.max_workers": 3, "async.concurrency": 5}):
        assert threads.workers() == 3
        assert threads.place("somewhere", 64).requests == 5
        data = np.arange(2**20)
        assert (zarrlite.array(data, chunks=2**15)[...] == data).all()
    assert threads.place("somewhere", 64).requests == 64


# names


def test_codecs_have_the_names_of_zarr_python() -> None:
    assert codecs.ZstdCodec is codecs.Zstd
    assert codecs.ShardingCodec(chunk_shape=(2,), index_location=codecs.ShardingCodecIndexLocation.start).to_json() == (
        codecs.ShardingIndexed((2,), index_location="start").to_json()
    )
    array = zarrlite.create_array(
        shape=4,
        dtype="i2",
        serializer=codecs.BytesCodec(endian=codecs.Endian.big),
        compressors=codecs.GzipCodec(level=1),
    )
    assert array.metadata.to_dict()["codecs"] == [
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "gzip", "configuration": {"level": 1}},
    ]


@pytest.mark.parametrize(
    ("data_type", "blosc", "shuffle", "typesize"),
    [
        ("float64", codecs.BloscCodec(), "shuffle", 8),
        ("uint8", codecs.BloscCodec(), "bitshuffle", 1),
        ("int16", codecs.BloscCodec(shuffle=codecs.BloscShuffle.bitshuffle), "bitshuffle", 2),
        ("int16", codecs.BloscCodec(shuffle="noshuffle", typesize=4), "noshuffle", 4),
        ("string", codecs.BloscCodec(), "bitshuffle", 1),
    ],
)
@pytest.mark.parametrize("shards", [None, 4])
def test_blosc_gets_the_parameters_that_suit_the_data_type(
    data_type: str, blosc: codecs.BloscCodec, shuffle: str, typesize: int, shards: int | None
) -> None:
    array = zarrlite.create_array(shape=4, dtype=data_type, chunks=2, shards=shards, compressors=blosc)
    assert array.compressors == (codecs.Blosc("zstd", 5, shuffle, typesize),)
    inside = zarrlite.create_array(
        shape=4, dtype=data_type, chunks=4, codecs=[codecs.ShardingCodec((2,), (array.serializer, blosc))]
    )
    assert inside.compressors == array.compressors
    array[:2] = array[2:]
    assert zarrlite.open_array(array.store).compressors == array.compressors


def test_errors_have_the_names_of_zarr_python(zarr: Any) -> None:
    assert {*zarr.errors.__all__} <= {*vars(errors)}
    with pytest.raises(errors.ArrayNotFoundError):
        zarrlite.open_array({}, mode="r")
    with pytest.raises(errors.ContainsArrayError):
        zarrlite.open_group(zarrlite.zeros(3).store)
    with pytest.raises(errors.BoundsCheckError):
        zarrlite.zeros(3)[5]


@pytest.mark.parametrize("module", ["codecs", "dtype", "storage"])
def test_public_names_of_zarr_python_modules_are_available(zarr: Any, module: str) -> None:
    import zarr.codecs
    import zarr.dtype
    import zarr.storage

    unneeded = {"GpuMemoryStore", "LoggingStore", "StorePath", "WrapperStore", "data_type_registry"}
    # names of zarr-python 3.4: a process-wide table of stores, an option of its sharding codec, and typing for Zarr v2
    unneeded |= {"ManagedMemoryStore", "SubchunkWriteOrder", "DTypeSpec_V2"}
    unneeded |= {"check_dtype_spec_v2", "check_dtype_spec_no_object_codec_v2"}
    names = {name for name in getattr(zarr, module).__all__ if "JSON" not in name and "Error" not in name}
    ours = getattr(zarrlite, module)
    assert names - unneeded <= {*ours.__all__}
    assert all(getattr(ours, name) is not None for name in names - unneeded)
    with pytest.raises(AttributeError, match=f"module 'zarrlite.{module}' has no attribute 'Nope'"):
        ours.Nope


def test_debug_information_names_versions(capsys: pytest.CaptureFixture[str]) -> None:
    zarrlite.print_debug_info()
    assert f"zarrlite: {zarrlite.__version__}\n" in capsys.readouterr().out


def test_consolidated_metadata_is_parsed_under_the_name_of_zarr_python() -> None:
    store = zarrlite.create_array("memory://", name="g/a", shape=3, dtype="i1").store
    assert zarrlite.open_group(store).metadata.consolidated_metadata is None
    found = zarrlite.consolidate_metadata(store).metadata.consolidated_metadata
    assert found is not None
    assert {path: node.node_type for path, node in found.metadata.items()} == {"g": "group", "g/a": "array"}


@pytest.mark.parametrize(
    "name",
    [
        "Array.resize",
        "Array.update_attributes",
        "Group.update_attributes",
        "storage.FsspecStore",
        "storage.ObjectStore",
    ],
)
def test_the_first_argument_can_be_passed_by_the_name_that_zarr_python_has_for_it(zarr: Any, name: str) -> None:
    def first(library: Any) -> str:
        parameters = [*inspect.signature(operator.attrgetter(name)(library)).parameters]
        return parameters["self" in parameters]

    assert first(zarrlite) == first(zarr)


def test_zarrlite_core_has_the_classes_of_the_library() -> None:
    import zarrlite.core.array
    import zarrlite.core.dtype

    assert zarrlite.core.array.Array is zarrlite.Array
    assert zarrlite.core.dtype.Int8 is dtype.Int8


def test_a_hierarchy_is_created_wherever_a_node_can_be(tmp_path: Path) -> None:
    for store in (zarrlite.MemoryStore(), {}, tmp_path / "a.zarr"):
        assert dict(create_hierarchy(store=store, nodes={"a": GroupMetadata()}))["a"].name == "/a"


# data types

DATA_TYPES = [
    ("Bool", {}, "bool"),
    ("Int16", {}, "int16"),
    ("UInt64", {"endianness": "big"}, "uint64"),
    ("Float32", {}, "float32"),
    ("Complex128", {}, "complex128"),
    ("VariableLengthUTF8", {}, "string"),
    ("VariableLengthBytes", {}, "variable_length_bytes"),
    ("FixedLengthUTF32", {"length": 3}, {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}),
    ("NullTerminatedBytes", {"length": 3}, {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}),
    ("RawBytes", {"length": 3}, {"name": "raw_bytes", "configuration": {"length_bytes": 3}}),
    (
        "DateTime64",
        {"unit": "s", "scale_factor": 10},
        {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}},
    ),
    ("TimeDelta64", {}, {"name": "numpy.timedelta64", "configuration": {"unit": "generic", "scale_factor": 1}}),
]


@pytest.mark.parametrize(("name", "arguments", "document"), DATA_TYPES, ids=[name for name, _, _ in DATA_TYPES])
@pytest.mark.filterwarnings("ignore")  # zarr-python warns about data types without a specification
def test_data_types_equal_those_of_zarr_python(zarr: Any, name: str, arguments: dict[str, Any], document: Any) -> None:
    import zarr.dtype

    ours, theirs = getattr(dtype, name)(**arguments), getattr(zarr.dtype, name)(**arguments)
    assert dtype.parse_dtype(ours) is ours
    assert type(dtype.parse_dtype(ours.to_json())) is type(ours)
    if name != "VariableLengthBytes":  # its numpy dtype is `object`
        assert type(dtype.parse_dtype(ours.to_native_dtype())) is type(ours)
    if name not in ("VariableLengthBytes", "VariableLengthUTF8"):
        assert ours.to_native_dtype() == theirs.to_native_dtype()
    for version in (2, 3):
        if (name, version) != ("VariableLengthBytes", 3):  # "bytes" is the registered name
            assert ours.to_json(version) == theirs.to_json(version)
    scalar = ours.default_scalar()
    assert str(theirs.from_json_scalar(ours.to_json_scalar(scalar), zarr_format=3)) == str(scalar)
    for given in (ours, theirs):
        array = zarrlite.create_array(shape=2, dtype=given)
        assert array.metadata.data_type.to_json() == (document if given is theirs else ours.to_json())
        assert [*map(str, array[...])] == [str(array.fill_value)] * 2


def test_a_structured_data_type_has_fields() -> None:
    record = dtype.Structured(fields=(("a", dtype.Int16()), ("b", dtype.Float32(endianness="big"))))
    assert record.to_json(2) == {"name": [["a", "<i2"], ["b", "<f4"]], "object_codec_id": None}
    assert zarrlite.create_array(shape=2, dtype=record).dtype.names == ("a", "b")
    assert isinstance(dtype.parse_dtype([("a", "i2")]), dtype.Structured)


def test_a_data_type_refuses_other_dtypes_and_invalid_scalars() -> None:
    with pytest.raises(ArgumentError, match=r"^dtype must correspond to Int8, not 'f4', which is Float32\(float32\)$"):
        dtype.Int8.from_native_dtype("f4")
    with pytest.raises(ArgumentError, match=r"^300 cannot be converted to int8: "):
        dtype.Int8().to_json_scalar(300)
    with pytest.raises(errors.MetadataError):
        dtype.Int8().from_json_scalar("x")


def test_dtype_str_means_text_of_any_length() -> None:
    array = zarrlite.create_array(shape=2, dtype="str")
    assert array.metadata.data_type.name == "string"


# arguments


@pytest.mark.filterwarnings("ignore")
def test_objects_of_zarr_python_are_taken_as_codecs_and_key_encodings(zarr: Any) -> None:
    import zarr.codecs
    from zarr.core.chunk_key_encodings import V2ChunkKeyEncoding

    data = np.arange(24, dtype="i4").reshape(4, 6)
    array = zarrlite.create_array(
        data=data,
        chunks=(4, 6),
        filters=[zarr.codecs.TransposeCodec(order=(1, 0))],
        serializer=zarr.codecs.ShardingCodec(chunk_shape=(3, 2), codecs=[zarr.codecs.BytesCodec()]),
        compressors=[zarr.codecs.BloscCodec(typesize=4, shuffle="shuffle"), zarr.codecs.Crc32cCodec()],
        chunk_key_encoding=V2ChunkKeyEncoding(separator="."),
    )
    assert [codec.name for codec in array.metadata.codecs] == ["transpose", "sharding_indexed", "blosc", "crc32c"]
    assert "0.0" in [*array.store.list()]
    assert (array[...] == data).all()


def test_an_object_of_zarr_python_with_a_wrong_kind_is_refused(zarr: Any) -> None:
    import zarr.codecs

    with pytest.raises(ArgumentError, match="filters must be array -> array codecs, not zstd"):
        zarrlite.create_array(shape=3, dtype="i1", filters=[zarr.codecs.ZstdCodec()])


@pytest.mark.parametrize("location", ["start", "end"])
def test_the_shards_argument_may_contain_the_index_location(location: Any) -> None:
    array = zarrlite.create_array(
        data=np.arange(8), chunks=2, shards={"shape": (4,), "index_location": location}, compressors=None
    )
    assert (array.shards, array.chunks) == ((4,), (2,))
    (codec,) = array.metadata.codecs
    assert codec.index_location == location  # type: ignore[union-attr]
    assert zarrlite.create_array(shape=8, dtype="i1", chunks=2, shards={"shape": 4}).shards == (4,)
    assert zarrlite.create_array(shape=8, dtype="i1", chunks=2, shards=True).shards == (8,)
    assert zarrlite.create_array(shape=8, dtype="i1", chunks=2, shards=False).shards is None


@pytest.mark.parametrize("shards", [{}, {"shape": 4, "index_location": "middle"}, {"shape": 4, "size": 4}])
def test_shards_of_another_form_are_refused(shards: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^shards must contain 'shape' and, optionally, 'index_location' "):
        zarrlite.create_array(shape=8, dtype="i1", chunks=2, shards=shards)


def test_a_mapping_that_cannot_be_changed_is_a_read_only_store() -> None:
    values: dict[str, bytes] = {}
    zarrlite.create_array(values, data=[1, 2, 3])
    array = zarrlite.open_array(types.MappingProxyType(values))
    assert array[...].tolist() == [1, 2, 3]
    with pytest.raises(zarrlite.ReadOnlyError):
        array[0] = 5
    with pytest.raises(zarrlite.ReadOnlyError):
        zarrlite.create_group(types.MappingProxyType({}))


@pytest.mark.parametrize("mode", ["r", "a", "w"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_zip_store_accepts_read_only_if_it_agrees_with_the_mode(tmp_path: Path, mode: Any, read_only: bool) -> None:
    path = tmp_path / "a.zip"
    with zarrlite.ZipStore(path, mode="w") as store:
        zarrlite.create_group(store)
    if read_only == (mode == "r"):
        with zarrlite.ZipStore(path, mode=mode, read_only=read_only) as store:
            assert store.read_only is read_only
    else:
        with pytest.raises(ArgumentError, match=f"^read_only must be {mode == 'r'} with mode='{mode}'"):
            zarrlite.ZipStore(path, mode=mode, read_only=read_only)


def test_a_store_of_zarr_python_is_refused_with_the_remedy(zarr: Any) -> None:
    with pytest.raises(ArgumentError, match=r"zarrlite\.bridge\.FromZarr\(store\)$"):
        zarrlite.open(zarr.storage.MemoryStore())  # type: ignore[call-overload]


def test_repr_says_where_a_node_is(tmp_path: Path) -> None:
    group = zarrlite.create_group(tmp_path)
    array = group.create_array("a", shape=3, dtype="i1")
    assert repr(group) == f"<Group / in LocalStore({str(tmp_path)!r})>"
    assert repr(zarrlite.open(tmp_path, path="a", mode="r")) == repr(array)
    assert repr(array) == f"<Array /a in LocalStore({str(tmp_path)!r}) shape=(3,) dtype=int8>"
    assert repr(zarrlite.zeros(3, dtype="i1")) == "<Array / shape=(3,) dtype=int8>"


GETTERS = {
    "basic": (slice(1, 3), slice(None)),
    "orthogonal": ([0, 2], [1, 3]),
    "coordinate": ([0, 2], [1, 3]),
    "mask": np.eye(3, 4, dtype=bool),
    "block": (0, 1),
}


@pytest.mark.parametrize("kind", GETTERS)
def test_a_selection_is_read_into_an_array_of_the_caller(kind: str) -> None:
    array = zarrlite.array(np.arange(12).reshape(3, 4), chunks=2)
    read = getattr(array, f"get_{kind}_selection")
    expected = read(GETTERS[kind])
    out = np.zeros_like(expected)
    assert read(GETTERS[kind], out=out) is out
    assert (out == expected).all()
    with pytest.raises(ArgumentError, match=r"^out must have the shape of the result, \(.*\), not \(7,\)$"):
        read(GETTERS[kind], out=np.zeros(7))


def test_groups_are_equal_if_store_path_and_metadata_are() -> None:
    group = zarrlite.create_group(attributes={"a": 1})
    assert group == zarrlite.open_group(group.store)
    assert hash(group) == hash(zarrlite.open_group(group.store))
    assert group != group.create_group("b")
    assert group != zarrlite.zeros(3)


def test_nodes_that_are_opened_twice_from_a_mapping_are_equal() -> None:
    mapping: dict[str, bytes] = {}
    array = zarrlite.create_array(mapping, data=[1, 2])
    assert array == zarrlite.open_array(mapping)
    assert hash(array) == hash(zarrlite.open_array(mapping))
    assert array != zarrlite.open_array(dict(mapping))


def test_the_configuration_of_an_array_can_be_passed_on(zarr: Any) -> None:
    from zarr.core.array_spec import ArrayConfig

    given = zarrlite.zeros(3, config={"order": "F", "write_empty_chunks": True}).config
    for config in (given, ArrayConfig("F", True)):
        array = zarrlite.zeros((2, 2), config=config)  # type: ignore[arg-type]
        assert (array.order, array.config.write_empty_chunks) == ("F", True)


def test_metadata_has_the_members_of_zarr_python() -> None:
    array = zarrlite.zeros(3, chunk_key_encoding=("v2", "."))  # type: ignore[arg-type]
    assert array.metadata.zarr_format == zarrlite.create_group().metadata.zarr_format == 3
    assert array.metadata.to_dict()["chunk_key_encoding"] == {"name": "v2", "configuration": {"separator": "."}}


@pytest.mark.parametrize("data", [np.zeros(0), np.zeros((0, 3)), np.zeros((4, 0, 2))])
def test_chunks_may_be_the_shape_of_empty_data(data: Any) -> None:
    array = zarrlite.create_array(data=data, chunks=data.shape)
    assert array.chunks == tuple(max(1, n) for n in data.shape)
    assert array[...].shape == data.shape
    with pytest.raises(ArgumentError, match="chunks must have 2 lengths, each at least 1"):
        zarrlite.create_array(shape=(0, 3), dtype="i1", chunks=(0, 0))

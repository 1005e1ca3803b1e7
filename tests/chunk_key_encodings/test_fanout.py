"""The `fanout` chunk key encoding: the examples in its proposal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.chunk_key_encodings import FanoutKeys
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.testing import KeyEncodingLaws


def parse(value: Any) -> FanoutKeys:
    return registry.chunk_key_encodings.parse(value, "/chunk_key_encoding", Context())


@pytest.mark.parametrize(
    ("most", "coords", "key"),
    [
        (1000, (), "c"),
        (1000, (0,), "c/0/000"),
        (1000, (12,), "c/0/012"),
        (1000, (1234567,), "c/2/001/234/567"),
        (1000, (1234, 5, 0, 6789012), "c/1/001/234/0/005/0/000/2/006/789/012"),
        (100, (99,), "c/0/99"),
        (100, (100,), "c/1/01/00"),
        (100, (2**63 - 1,), "c/9/09/22/33/72/03/68/54/77/58/07"),
        (10000, (12345,), "c/1/0001/2345"),
        (10**18, (7,), "c/0/" + "7".zfill(18)),
        # proposal fanout, max_children: "the implementation MAY floor the configuration parameter"
        (250, (123,), "c/1/01/23"),
        (1234, (123,), "c/0/123"),
        (999, (123,), "c/1/01/23"),
        (2**63 - 1, (7,), "c/0/" + "7".zfill(18)),
    ],
)
def test_keys_are_encoded_and_decoded(most: int, coords: tuple[int, ...], key: str) -> None:
    encoding = parse({"name": "fanout", "configuration": {"max_children": most}})
    assert encoding.encode(coords) == key
    assert encoding.decode(key, len(coords)) == coords
    assert encoding.decode(key, len(coords) + 1) is None


class TestThousands(KeyEncodingLaws):
    encoding = FanoutKeys()


class TestHundreds(KeyEncodingLaws):
    encoding = FanoutKeys(100)


@pytest.mark.parametrize(
    "key",
    [
        *("c/0/12", "c/0/0012", "c/1/000/012", "c/1/012", "c/00/012", "c/0/0٣2", "c/a/012", "c/0/012/", "0/012"),
        *("c//012", "c/0", "c/0/1_2", "c/0/+12", "c/9" + "/999" * 10),
    ],
)
def test_malformed_keys_are_not_decoded(key: str) -> None:
    assert FanoutKeys().decode(key, 1) is None


@pytest.mark.parametrize(("given", "effective"), [(250, 100), (1234, 1000), (100, 100), (99999, 10000)])
def test_max_children_is_rounded_down_to_a_power_of_ten_and_written_so(given: int, effective: int) -> None:
    encoding = parse({"name": "fanout", "configuration": {"max_children": given}})
    assert encoding == FanoutKeys(effective)
    assert encoding.to_json() == {"name": "fanout", "configuration": {"max_children": effective}}


def test_max_children_is_1000_by_default() -> None:
    assert parse("fanout") == parse({"name": "fanout"}) == FanoutKeys(1000)


@pytest.mark.parametrize(
    ("configuration", "pointer", "kind"),
    [
        ({"max_children": 99}, "/max_children", "value"),
        ({"max_children": 0}, "/max_children", "value"),
        ({"max_children": -1000}, "/max_children", "value"),
        ({"max_children": 2**63}, "/max_children", "value"),
        ({"max_children": 1000.0}, "/max_children", "type"),
        ({"max_children": "1000"}, "/max_children", "type"),
        ({"max_children": True}, "/max_children", "type"),
        ({"max_children": None}, "/max_children", "type"),
        ({"separator": "/"}, "/separator", "unknown-member"),
    ],
)
def test_invalid_configurations_are_refused_with_a_pointer(configuration: Any, pointer: str, kind: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse({"name": "fanout", "configuration": configuration})
    assert (caught.value.pointer, caught.value.kind) == ("/chunk_key_encoding/configuration" + pointer, kind)


def test_arrays_are_stored_in_folders(tmp_path: Any) -> None:
    data = np.arange(1002, dtype="uint16")
    zarrlite.create_array(tmp_path / "a", data=data, chunks=(1,), chunk_key_encoding=FanoutKeys(100), compressors=None)
    assert (tmp_path / "a/c/1/10/01").read_bytes() == b"\xe9\x03"
    array = zarrlite.open(tmp_path / "a", mode="r+")
    assert np.array_equal(array[...], data)
    assert array.nchunks_initialized == 1001  # chunk 0 contains only the fill value, so it is not stored
    array.resize((50,))
    assert array.nchunks_initialized == 49

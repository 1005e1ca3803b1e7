"""What answers are worth, beyond what the toy harness shows."""

from __future__ import annotations

import json

import pytest

from zarrlite.tools.conformance.extensions import extensions_of, ignorable_of, missing
from zarrlite.tools.conformance.judge import judge, worst
from zarrlite.tools.conformance.protocol import decode
from zarrlite.tools.conformance.reference import run_operations
from zarrlite.tools.conformance.steps import encode


def step_of(suite, name, op):
    return next(step for step in suite.find(name).steps if step.op == op)


def right_answer(step):
    return {name: value for name, value in step.expected.items() if name in ("document", "shape", "data", "coords")}


DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [{"name": "bytes"}],
}


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({}, "pass"),
        ({"attributes": {}, "storage_transformers": [], "dimension_names": [None, None]}, "pass"),
        ({"chunk_key_encoding": "default"}, "pass"),
        ({"codecs": ["bytes"]}, "pass"),
        ({"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}, "pass"),  # of single bytes
        ({"attributes": {"a": 1}}, "wrong-data"),
        ({"fill_value": 1}, "wrong-data"),
        ({"codecs": ["bytes", "crc32c"]}, "wrong-data"),
        ({"fill_value": 256}, "wrong-data"),
    ],
    ids=str,
)
def test_a_document_may_be_spelled_in_another_way_but_not_mean_something_else(suite, change, result):
    step = step_of(suite, "core/array/dimension_names/same", "open")
    expected = type(step)("open", step.request, {"document": DOCUMENT})
    assert judge(expected, {"document": {**DOCUMENT, **change}}, set())[0] == result


def test_a_document_that_is_written_back_wrong_is_said_with_its_fault(suite):
    step = step_of(suite, "core/array/dimension_names/same", "open")
    expected = type(step)("open", step.request, {"document": DOCUMENT})
    assert judge(expected, {"document": {**DOCUMENT, "fill_value": 256}}, set()) == (
        "wrong-data",
        "is written back as what is not valid: zarr.json#/fill_value: must be an integer from 0 to 255, not 256",
    )


@pytest.mark.parametrize(
    ("case", "stored", "verdict"),
    [
        ("core/codec_data/bytes/float32-little", None, ("pass", "")),
        ("core/codec_data/bytes/float32-little", b"x", ("wrong-data", "other bytes were stored")),
        ("core/codec_data/gzip/plain", None, ("pass", "")),
        (
            "core/codec_data/gzip/plain",
            b"x",
            ("wrong-data", "what was stored cannot be read: chunk c/0/0, codec gzip: the gzip stream ends too early"),
        ),
    ],
)
def test_what_was_written_is_compared_or_read(suite, case, stored, verdict):
    step = step_of(suite, case, "write")
    chunk = step.expected["chunk"]
    value = step_of(suite, case, "read").request["store"][chunk] if stored is None else encode(stored)
    assert judge(step, {"store": {chunk: value}}, set()) == verdict


def test_a_chunk_that_is_not_stored_must_be_empty(suite):
    step = step_of(suite, "core/codec_data/bytes/float32-little", "write")
    assert judge(step, {"store": {}}, set()) == ("wrong-data", "what was stored reads as other elements")
    zeros = type(step)(
        "write", {**step.request, "data": encode(bytes(16))}, {**step.expected, "data": encode(bytes(16))}
    )
    assert judge(zeros, {"store": {}}, set()) == ("pass", "")


def test_bytes_that_touch_are_one_read(suite):
    step = step_of(suite, "core/reads/shard-end", "rounds")
    rounds = [[[key, start, start + 1], [key, start + 1, stop]] for ((key, start, stop),) in step.expected["rounds"]]
    assert judge(step, {"rounds": rounds}, set()) == ("pass", "")
    assert judge(step, {"rounds": rounds[1:]}, set()) == ("wrong-data", "other bytes were read than needed")


def test_keys_are_compared_one_by_one(suite):
    step = step_of(suite, "proposals/suffix/keys/three-dimensions", "keys")
    right = right_answer(step)
    assert judge(step, right, set()) == ("pass", "")
    assert judge(step, {"coords": [*right["coords"][:-1], [1, 2, 3]]}, set()) == (
        "wrong-data",
        "'c/1/23/45' is [1, 2, 3], not None",
    )
    assert judge(step, {"coords": []}, set()) == ("wrong-data", "0 answers to 4 keys")


@pytest.mark.parametrize(
    ("results", "below", "verdict"),
    [
        ([{}], None, ("pass", "")),
        ([], None, ("wrong-data", "0 results of 1 operations")),
        ([{"refused": "no"}], None, ("refused-valid", "operation 0 (set): no")),
        ([{}], {}, ("wrong-data", "below lie [], not ['c/0', 'c/0.a', 'c/0.z']")),
        ([{}], {"c/0": ""}, ("wrong-data", "c/0 holds something else")),
    ],
)
def test_a_store_is_judged_by_its_results_and_by_what_lies_below(suite, results, below, verdict):
    step = step_of(suite, "proposals/concat-parts/store/split-order", "store")
    store = step.expected["store"] if below is None else below and {**step.expected["store"], **below}
    assert judge(step, {"results": results, "store": store}, set()) == verdict


def test_an_operation_that_must_fail_may_not_succeed(suite):
    step = step_of(suite, "proposals/concat-parts/store/size-short", "store")
    after = step.expected["store"]
    failed = [{"refused": "no"}] * 4
    assert judge(step, {"results": failed, "store": after}, set()) == ("pass", "")
    assert judge(step, {"results": [{"value": ""}, *failed[1:]], "store": after}, set())[0] == "accepted-invalid"
    other = [{"refused": "no", "error": "DataError"}, *failed[1:]]
    assert judge(step, {"results": other, "store": after}, set()) == (
        "wrong-data",
        "operation 0 (get) refused with DataError, not TruncatedError",
    )


def test_zarrlite_does_the_operations_of_every_store(suite):
    for case in suite.select(["kind=store"]):
        (step,) = case.steps
        values = {key: decode(value) for key, value in step.request["store"].items()}
        results, below = run_operations(step.document, values, step.request["operations"])
        answer = {"results": results, "store": {key: encode(value) for key, value in below.items()}}
        assert judge(step, answer, set()) == ("pass", ""), case.id


def test_the_worst_request_makes_the_case_and_what_is_not_supported_does_not_count():
    assert worst(["pass", "wrong-data", "pass"]) == "wrong-data"
    assert worst(["pass", "unsupported"]) == "pass"
    assert worst(["unsupported", "unsupported"]) == "unsupported"
    assert worst(["refused-valid", "crash"]) == "crash"


@pytest.mark.parametrize(
    ("change", "extra"),
    [
        ({}, set()),
        ({"codecs": ["bytes", {"name": "pad"}]}, {("codecs", "pad")}),
        ({"codecs": ["bytes", {"name": "pad", "must_understand": False}]}, set()),
        ({"storage_transformers": [{"name": "x"}]}, {("storage_transformers", "x")}),
        ({"storage_transformers": {"name": "x"}}, set()),
        ({"chunk_grid": {"name": "odd", "must_understand": False}}, {("chunk_grid", "odd")}),
        ({"data_type": "r16"}, set()),
        ({"data_type": "raw"}, {("data_type", "raw")}),
        ({"data_type": "int16"}, {("data_type", "int16")}),
        ({"http://x": 1}, {("member", "http://x")}),
        ({"extra": 1}, {("member", "extra")}),
        ({"extra": {"must_understand": False}}, set()),
        (
            {"codecs": [{"name": "bytes", "configuration": {"codecs": ["a"], "index_codecs": ["b"]}}]},
            {("codecs", "a"), ("codecs", "b")},
        ),
        (
            {"chunk_key_encoding": {"name": "default", "configuration": {"base-encoding": "odd"}}},
            {("chunk_key_encoding", "odd")},
        ),
        (
            {"data_type": {"name": "uint8", "configuration": {"fields": [{"data_type": "odd"}, 1]}}},
            {("data_type", "odd")},
        ),
        (
            {"storage_transformers": [{"extension": "https://purl.org/zarr/spec/storage_transformers/sharding/1.0"}]},
            {("storage_transformers", "sharding")},
        ),
        ({"codecs": None, "data_type": 1, "chunk_grid": {"name": 1}}, set()),
    ],
    ids=lambda value: None if isinstance(value, set) else str(value),
)
def test_the_extensions_that_a_document_needs_and_an_implementation_lacks(change, extra):
    claims = {
        "data_type": ["uint8", "r*"],
        "chunk_grid": ["regular"],
        "chunk_key_encoding": ["default"],
        "codecs": ["bytes"],
    }
    document = json.loads(json.dumps({**DOCUMENT, **change}))
    assert missing(extensions_of(document), claims) == extra


def test_an_address_is_claimed_by_the_name_of_today():
    claims = {"storage_transformers": ["sharding"]}
    old = ("storage_transformers", "https://purl.org/zarr/spec/storage_transformers/sharding/1.0")
    assert missing({old}, claims) == set()
    assert missing({old}, {}) == {old}


def test_what_may_be_left_out_and_is_proves_nothing(suite):
    step = step_of(suite, "core/arrays/known-codec-that-can-be-ignored", "read")
    left_out = ignorable_of(step.document)
    assert left_out == {("codecs", "crc32c")}
    refused = {"refused": "6 bytes, not 2"}
    assert judge(step, refused, set(), left_out) == ("unsupported", "left out crc32c, as it may")
    assert judge(step, refused, set())[0] == "refused-valid"
    assert judge(step, right_answer(step), set(), left_out) == ("pass", "")
    unknown = {**DOCUMENT, "codecs": ["bytes", {"name": "nobody.knows", "must_understand": False}]}
    assert ignorable_of(unknown) == ignorable_of({"node_type": "group"}) == ignorable_of([]) == set()

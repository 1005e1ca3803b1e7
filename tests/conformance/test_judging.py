"""Verdicts on the answers of harnesses, and the extensions that a document requires."""

from __future__ import annotations

import json

import pytest

from zarrlite.tools.conformance.extensions import ignorable_extensions, required_extensions, unclaimed
from zarrlite.tools.conformance.judge import judge, worst_result
from zarrlite.tools.conformance.protocol import decode
from zarrlite.tools.conformance.reference import run_operations
from zarrlite.tools.conformance.steps import encode


def step_of(suite, case_id, op):
    return next(step for step in suite.find(case_id).steps if step.op == op)


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
        (
            {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]},
            "pass",
        ),  # single bytes have no byte order
        ({"attributes": {"a": 1}}, "wrong-data"),
        ({"fill_value": 1}, "wrong-data"),
        ({"codecs": ["bytes", "crc32c"]}, "wrong-data"),
        ({"fill_value": 256}, "wrong-data"),
    ],
    ids=str,
)
def test_documents_are_compared_by_meaning_not_by_spelling(suite, change, result):
    step = step_of(suite, "core/array/dimension_names/same", "open")
    expected = type(step)("open", step.request, {"document": DOCUMENT})
    assert judge(expected, {"document": {**DOCUMENT, **change}}, set())[0] == result


def test_an_invalid_document_written_back_is_reported_with_its_fault(suite):
    step = step_of(suite, "core/array/dimension_names/same", "open")
    expected = type(step)("open", step.request, {"document": DOCUMENT})
    assert judge(expected, {"document": {**DOCUMENT, "fill_value": 256}}, set()) == (
        "wrong-data",
        "writes back an invalid document: zarr.json#/fill_value: must be an integer from 0 to 255, not 256",
    )


@pytest.mark.parametrize(
    ("case", "stored", "verdict"),
    [
        ("core/codec_data/bytes/float32-little", None, ("pass", "")),
        ("core/codec_data/bytes/float32-little", b"x", ("wrong-data", "stored wrong bytes")),
        ("core/codec_data/gzip/plain", None, ("pass", "")),
        (
            "core/codec_data/gzip/plain",
            b"x",
            ("wrong-data", "stored bytes that cannot be read: chunk c/0/0, codec gzip: the gzip stream ends too early"),
        ),
    ],
)
def test_written_chunks_are_compared_as_bytes_or_as_elements(suite, case, stored, verdict):
    step = step_of(suite, case, "write")
    chunk = step.expected["chunk"]
    value = step_of(suite, case, "read").request["store"][chunk] if stored is None else encode(stored)
    assert judge(step, {"store": {chunk: value}}, set()) == verdict


def test_missing_chunk_passes_only_if_it_has_only_the_fill_value(suite):
    step = step_of(suite, "core/codec_data/bytes/float32-little", "write")
    assert judge(step, {"store": {}}, set()) == ("wrong-data", "stored bytes that decode to wrong elements")
    zeros = type(step)(
        "write", {**step.request, "data": encode(bytes(16))}, {**step.expected, "data": encode(bytes(16))}
    )
    assert judge(zeros, {"store": {}}, set()) == ("pass", "")


def test_adjacent_ranges_count_as_one_read(suite):
    step = step_of(suite, "core/reads/shard-end", "rounds")
    rounds = [[[key, start, start + 1], [key, start + 1, stop]] for ((key, start, stop),) in step.expected["rounds"]]
    assert judge(step, {"rounds": rounds}, set()) == ("pass", "")
    assert judge(step, {"rounds": rounds[1:]}, set()) == ("wrong-data", "read more or other bytes than needed")


def test_coordinates_of_each_key_are_compared(suite):
    step = step_of(suite, "proposals/suffix/keys/three-dimensions", "keys")
    right = right_answer(step)
    assert judge(step, right, set()) == ("pass", "")
    assert judge(step, {"coords": [*right["coords"][:-1], [1, 2, 3]]}, set()) == (
        "wrong-data",
        "'c/1/23/45' is [1, 2, 3], not None",
    )
    assert judge(step, {"coords": []}, set()) == ("wrong-data", "has 0 answers for 4 keys")


@pytest.mark.parametrize(
    ("results", "change", "verdict"),
    [
        ([{}], dict, ("pass", "")),
        ([], dict, ("wrong-data", "has 0 results for 1 operations")),
        ([{"refused": "no"}], dict, ("refused-valid", "operation 0 (set): no")),
        ([{}], lambda store: {}, ("wrong-data", "stored the keys [], not ['c/0', 'c/0.a', 'c/0.z']")),
        ([{}], lambda store: {**store, "c/0": ""}, ("wrong-data", "stored a wrong value under c/0")),
    ],
)
def test_store_operations_are_judged_by_their_results_and_the_store_below(suite, results, change, verdict):
    step = step_of(suite, "proposals/concat-parts/store/split-order", "store")
    assert judge(step, {"results": results, "store": change(step.expected["store"])}, set()) == verdict


def test_operation_that_must_fail_is_judged_by_its_error(suite):
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


def test_zarrlite_passes_every_store_case(suite):
    for case in suite.select(["kind=store"]):
        (step,) = case.steps
        values = {key: decode(value) for key, value in step.request["store"].items()}
        results, below = run_operations(step.document, values, step.request["operations"])
        answer = {"results": results, "store": {key: encode(value) for key, value in below.items()}}
        assert judge(step, answer, set()) == ("pass", ""), case.id


def test_result_of_a_case_is_its_worst_supported_request():
    assert worst_result(["pass", "wrong-data", "pass"]) == "wrong-data"
    assert worst_result(["pass", "unsupported"]) == "pass"
    assert worst_result(["unsupported", "unsupported"]) == "unsupported"
    assert worst_result(["refused-valid", "crash"]) == "crash"


@pytest.mark.parametrize(
    ("change", "expected"),
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
def test_required_extensions_that_are_not_claimed_are_found(change, expected):
    claims = {
        "data_type": ["uint8", "r*"],
        "chunk_grid": ["regular"],
        "chunk_key_encoding": ["default"],
        "codecs": ["bytes"],
    }
    document = json.loads(json.dumps({**DOCUMENT, **change}))
    assert unclaimed(required_extensions(document), claims) == expected


def test_uri_of_the_draft_is_claimed_by_its_short_name():
    claims = {"storage_transformers": ["sharding"]}
    draft = ("storage_transformers", "https://purl.org/zarr/spec/storage_transformers/sharding/1.0")
    assert unclaimed({draft}, claims) == set()
    assert unclaimed({draft}, {}) == {draft}


def test_ignoring_a_codec_that_may_be_ignored_is_unsupported(suite):
    step = step_of(suite, "core/arrays/known-codec-that-can-be-ignored", "read")
    ignorable = ignorable_extensions(step.document)
    assert ignorable == {("codecs", "crc32c")}
    refused = {"refused": "6 bytes, not 2"}
    assert judge(step, refused, set(), ignorable) == ("unsupported", "ignored crc32c, which is allowed")
    assert judge(step, refused, set())[0] == "refused-valid"
    assert judge(step, right_answer(step), set(), ignorable) == ("pass", "")
    unknown = {**DOCUMENT, "codecs": ["bytes", {"name": "nobody.knows", "must_understand": False}]}
    for document in (unknown, {"node_type": "group"}, []):
        assert ignorable_extensions(document) == set()

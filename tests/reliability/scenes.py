"""Scenes: operations on stored arrays and groups, with the states in which a failure may leave them.

A kind of trial takes a scene, prepares a store, makes the operation fail in its own way, examines the store through a
fresh handle, and asks `judge` whether the state is acceptable:

    scene.prepare(store)           # the old state
    scene.operate(store)           # killed, interrupted, refused by a full disk ...
    judge(scene, old, new, scene.look(fresh_store))

`old, new = reference(scene, make_store)` are the states before and after the operation if nothing fails;
`make_store()` returns an empty store.

Rules
- A scene uses only the store that it receives. Scenes with `local=True` need a directory (they run the command line on
  `store.root`); all others run on any writable store.
- Old values, new values and the fill value differ in every element, so that a mixture is always recognized.
- A state has an entry for each node that has a document. Arrays are read chunk by chunk, so that one damaged chunk does
  not hide the others.
- A rule defines which states are acceptable. `changes`: each document and each chunk is the old one or the new one.
  `replaces`: each node is the old one with all of its values, or absent, or the new one, whose values may still be
  missing. `completes`: the same, but a new node has all of its values.
- `judge` returns an outcome: "old", "new" and "between" are acceptable, every other outcome is a defect:
  "unreadable" (an error instead of a value), "mixed" (a value that is neither old nor new), "lost" (fill value or
  absent node instead of data), "revived" (a value of the node that was replaced), "stale" (a wrong consolidated copy),
  "foreign" (an exception that is not the library's own), "document" (neither the old nor the new one).
- `atomic=False` marks operations that write into a stored object. According to the documentation, a crash during such a
  write may damage the object; an exception must not.
- `repeatable=True`: running the operation again after a failure must succeed and lead to the new state.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import zarrlite
from zarrlite.codecs import Bytes, Crc32c, ShardingIndexed, Zstd
from zarrlite.errors import ZarrliteError
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores import Store
from zarrlite.tools.cli.main import main

GOOD = ("old", "new", "between")


class Seen(NamedTuple):
    """A node as a reader sees it: its document and, for an array, its values."""

    document: str
    values: Any = None
    chunk_shape: tuple[int, ...] = ()
    fill: Any = None
    errors: tuple[str, ...] = ()


State = dict[str, Seen | str]  # path of a node -> the node, or the reason why it cannot be opened
Rule = Callable[[State, State, State], Iterator[tuple[str, str]]]  # old, new, seen -> (outcome, description) of defects


class Verdict(NamedTuple):
    """The verdict on a state."""

    outcome: str
    description: str = ""

    @property
    def good(self) -> bool:
        return self.outcome in GOOD


# Looking


def look(store: Store) -> State:
    """Read everything in a store through new handles."""
    state: State = {}
    documents: dict[str, Any] = {}
    for key in sorted(store.list()):
        if f"/{key}".endswith("/zarr.json"):
            path = key.removesuffix("zarr.json").rstrip("/")
            try:
                node = zarrlite.open(store, mode="r", path=path, use_consolidated=False)
                document = json.loads(bytes(store.get(key) or b"{}"))
                documents[path] = document
                copies = document.pop("consolidated_metadata", None)
                state[path] = _see(node, json.dumps(document, sort_keys=True))
                if copies is not None:
                    state[f"{path} (consolidated)"] = copies["metadata"]
            except Exception as error:
                state[path] = _describe(error)
    for name in [name for name in state if name.endswith(" (consolidated)")]:
        stale = _stale(name.removesuffix(" (consolidated)"), state.pop(name), documents)
        if stale:
            state[name] = stale
    return state


def _see(node: Any, document: str) -> Seen:
    if not isinstance(node, zarrlite.Array):
        return Seen(document)
    chunk_shape = node.shards or node.chunks
    values = np.full(node.shape, node.fill_value, node.dtype)
    errors = []
    for where in _boxes(node.shape, chunk_shape):
        try:
            values[where] = node[where]
        except Exception as error:
            errors.append(_describe(error))
    return Seen(document, values, chunk_shape, node.fill_value, tuple(errors))


def _boxes(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    for start in itertools.product(*(range(0, n, c) for n, c in zip(shape, chunk_shape, strict=True))):
        yield tuple(slice(a, min(a + c, n)) for a, c, n in zip(start, chunk_shape, shape, strict=True))


def _describe(error: Exception) -> str:
    kind = "unreadable" if isinstance(error, ZarrliteError) else "foreign"
    return f"{kind}: {type(error).__name__}: {error}"


def _stale(path: str, copies: Any, documents: dict[str, Any]) -> str:
    """Compare consolidated metadata with the documents below a group. Returns an empty text if they agree."""
    prefix = f"{path}/" if path else ""
    below = {name.removeprefix(prefix): text for name, text in documents.items() if name.startswith(prefix) and name}
    below = {name: text for name, text in below.items() if name != path}
    for copy in copies.values():
        copy.pop("consolidated_metadata", None)
    wrong = [name for name in below.keys() | copies.keys() if below.get(name) != copies.get(name)]
    return f"stale: the consolidated copies of {sorted(wrong)} are not what is stored" if wrong else ""


def equal(one: State, other: State) -> bool:
    """Whether two states are the same."""
    return one.keys() == other.keys() and all(_same(one[path], other[path]) for path in one)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return one.document == other.document and one.errors == other.errors and _equal_values(one.values, other.values)


def _equal_values(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


# Judging


def judge(scene: Scene, old: State, new: State, seen: State) -> Verdict:
    """Decide whether a state is acceptable after the operation of a `Scene` has failed."""
    for path, node in seen.items():
        for error in [node] if isinstance(node, str) else node.errors:
            return Verdict(error.split(":")[0], f"{path!r} {error}")
    for outcome, description in scene.rule(old, new, seen):
        return Verdict(outcome, description)
    if equal(seen, new):
        return Verdict("new")
    return Verdict("old") if equal(seen, old) else Verdict("between")


def changes(old: State, new: State, seen: State) -> Iterator[tuple[str, str]]:
    """Accept a state in which each document and each chunk is either the old one or the new one."""
    for path in old.keys() | new.keys() | seen.keys():
        before, after, now = old.get(path), new.get(path), seen.get(path)
        if now is None:
            if before is not None and after is not None:
                yield "lost", f"{path!r} is missing"
        elif now.document not in [node.document for node in (before, after) if node is not None]:
            yield "document", f"{path!r} has the document {now.document}"
        elif now.values is not None:
            yield from _check_chunks(path, now, [node for node in (before, after) if node is not None])


def _replaces(old: State, new: State, seen: State, *, whole: bool) -> Iterator[tuple[str, str]]:
    for path, now in seen.items():
        before, after = old.get(path), new.get(path)
        faults: list[tuple[str, str]] = [("document", f"{path!r} has the document {now.document}")]
        if before is not None and now.document == before.document:
            faults = [*_check_chunks(path, now, [before], [before, after])]
            if after is None or after.document != before.document:
                faults += [*_check_members(path, old, seen)]
        if faults and after is not None and now.document == after.document:
            faults = [*_check_chunks(path, now, [after] if whole else [after, _empty(after)], [before, after])]
            if before is None or after.document != before.document:
                faults += [*_check_members(path, new, seen)] if whole else []
        yield from faults
    for path in old.keys() & new.keys() - seen.keys():
        if _same(old[path], new[path]):
            yield "lost", f"{path!r} is missing"


def replaces(old: State, new: State, seen: State) -> Iterator[tuple[str, str]]:
    """Accept a state in which each node is absent, new (perhaps without values), or old with all of its values."""
    return _replaces(old, new, seen, whole=False)


def completes(old: State, new: State, seen: State) -> Iterator[tuple[str, str]]:
    """Accept a state in which each node is absent, or is the old or new one with all of its values and members."""
    return _replaces(old, new, seen, whole=True)


def _check_members(path: str, expected: State, seen: State) -> Iterator[tuple[str, str]]:
    prefix = f"{path}/" if path else ""
    for member in expected.keys() - seen.keys():
        if member.startswith(prefix) and member != path:
            yield "lost", f"{path!r} can be opened, but its member {member!r} is missing"


def _empty(node: Seen) -> Seen:
    values = node.values
    return node if values is None else node._replace(values=np.full(values.shape, node.fill, values.dtype))


def _check_chunks(path: str, now: Seen, accepted: list[Seen], known: Any = ()) -> Iterator[tuple[str, str]]:
    if now.values is None:
        return
    candidates = [_fit(node.values, now) for node in accepted]
    others = [_fit(node.values, now) for node in known if isinstance(node, Seen) and node.values is not None]
    # if the operation creates or deletes the node, values that are not accepted must come from an earlier node
    path_is_new = None in known
    for where in _boxes(now.values.shape, now.chunk_shape):
        found = now.values[where]
        if any(np.array_equal(found, values[where]) for values in candidates):
            continue
        outcome = "mixed"
        if np.array_equal(found, np.full(found.shape, now.fill, found.dtype)):
            outcome = "lost"
        elif path_is_new or any(np.array_equal(found, values[where]) for values in others):
            outcome = "revived"
        yield outcome, f"{path!r} has {found.tolist()} at {[(s.start, s.stop) for s in where]}"


def _fit(values: Any, like: Seen) -> Any:
    """Crop values to another shape, and pad them with the fill value where that shape is larger."""
    fitted = np.full(like.values.shape, like.fill, like.values.dtype)
    common = tuple(slice(0, min(a, b)) for a, b in zip(values.shape, like.values.shape, strict=True))
    fitted[common] = values[common]
    return fitted


# Scenes


@dataclass(frozen=True)
class Scene:
    """An operation, the state before it, and the rule for states that a failure may leave."""

    name: str
    prepare: Callable[[Store], object]
    operate: Callable[[Store], object]
    rule: Rule = changes
    look: Callable[[Store], State] = look
    local: bool = False
    atomic: bool = True
    repeatable: bool = True


def reference(scene: Scene, make_store: Callable[[], Store]) -> tuple[State, State]:
    """Return the states before and after the operation of a `Scene`."""
    store = make_store()
    scene.prepare(store)
    old = scene.look(store)
    store = make_store()  # a new store, because `look` may write to a store: it enlarges arrays that were shrunk
    scene.prepare(store)
    scene.operate(store)
    return old, scene.look(store)


@dataclass(frozen=True)
class Kind:
    """A kind of array: how it is created, and the runtime options with which it is opened for writing."""

    create: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    values: Callable[[int, int], Any] = lambda first, n: np.arange(first, first + n, dtype="int32")
    atomic: bool = True  # whether a change to part of a chunk replaces the stored object instead of writing into it


LENGTH = 8  # elements of an array; most kinds have chunks or shards of 4 elements, and inner chunks of 2


def _struct(first: int, n: int) -> Any:
    return np.array([(i, i / 2) for i in range(first, first + n)], dtype=[("x", "<i4"), ("y", "<f8")])


def _large(first: int, n: int) -> Any:
    """Return elements so large that several threads are used to write even a few of them."""
    return np.array([str(i) for i in range(first, first + n)], dtype="S262144")


def _text(first: int, n: int) -> Any:
    return np.array([str(i) * (i % 7 + 1) for i in range(first, first + n)], dtype=np.dtypes.StringDType())


def _shards(strategy: str = "rewrite", inner: tuple[Any, ...] = (Bytes(), Crc32c()), **more: Any) -> Kind:
    codec = ShardingIndexed((2,), inner, **more)
    options = {} if strategy == "rewrite" else {"/codecs/0": {"strategy": strategy}}
    return Kind({"chunks": (4,), "codecs": [codec]}, options, atomic=strategy == "rewrite")


def _with_parts(parts: list[Part], base: Kind | None = None, *after: Any, before: tuple[Any, ...] = ()) -> Kind:
    base = base or Kind({"chunks": (4,), "codecs": [Bytes()]})
    transformers = [*before, ConcatParts(parts), *after]
    return Kind({**base.create, "storage_transformers": transformers}, base.options, base.values)


def _draft(strategy: str) -> Kind:
    create = {"chunks": (2,), "codecs": [Bytes(), Crc32c()], "storage_transformers": [Sharding((2,))]}
    options = {} if strategy == "rewrite" else {"/storage_transformers/0": {"strategy": strategy}}
    return Kind(create, options, atomic=strategy == "rewrite")


_SUFFIX = {"name": "suffix", "configuration": {"suffix": ".bin"}}
_PAD = {"name": "pad", "configuration": {"location": "start", "nbytes": 5}}
_OFFSET = {"name": "offset", "configuration": {"offset": 3}}
_HEAD_TAIL = [Part(".a", 4), Part(""), Part(".c", 4)]
_INDEX_APART = [Part(""), Part(".index", 36)]
KINDS: dict[str, Kind] = {
    "raw": Kind({"chunks": (4,), "codecs": [Bytes()]}),
    "many chunks": Kind({"chunks": (2,), "codecs": [Bytes()]}),
    "several threads": Kind({"chunks": (2,), "codecs": [Bytes(), Zstd()]}, values=_large),
    "zstd": Kind({"chunks": (4,), "codecs": [Bytes(), Zstd()]}),
    "crc32c": Kind({"chunks": (4,), "codecs": [Bytes(), Crc32c()], "chunk_key_encoding": "v2"}),
    "shards rewritten": _shards(),
    "shards in place": _shards("in-place"),
    "shards appended": _shards("append", (Bytes(), Zstd())),
    "shards, index first": _shards(index_location="start"),
    "draft shards": _draft("rewrite"),
    "draft shards in place": _draft("in-place"),
    "draft shards appended": _draft("append"),
    "parts": _with_parts(_HEAD_TAIL),
    "parts, header": _with_parts([Part(".head", 4), Part(".data")]),
    "parts, all sized": _with_parts([Part(".a", 8), Part(".b", 8)]),
    "parts, last empty": _with_parts([Part(".x", 4), Part(""), Part(".z", 0)]),
    "parts, one": _with_parts([Part(".only")]),
    "parts, index apart": _with_parts(_INDEX_APART, _shards()),
    "parts, index apart, in place": _with_parts(_INDEX_APART, _shards("in-place")),
    "parts, index apart, appended": _with_parts(_INDEX_APART, _shards("append")),
    "parts, index first": _with_parts([Part(".index", 36), Part("")], _shards(index_location="start")),
    "parts in draft shards": _with_parts(
        _HEAD_TAIL, None, Sharding((2,)),
    ),
    "draft shards in parts": _with_parts(
        [Part(""), Part(".index", 32)], Kind({"chunks": (2,), "codecs": [Bytes()]}), before=(Sharding((2,)),)
    ),
    "pad, offset and suffix": Kind(
        {"chunks": (4,), "codecs": [Bytes(), Crc32c(), _PAD, _OFFSET], "chunk_key_encoding": _SUFFIX}
    ),
    "strings": Kind({"chunks": (4,), "dtype": "string"}, values=_text),
    "structs": Kind({"chunks": (4,), "codecs": [Bytes(), Zstd()]}, values=_struct),
}  # fmt: skip


def create(kind: Kind, store: Store, path: str = "a", first: int | None = 1, **more: Any) -> Any:
    """Create an array of a kind, with values that count up from `first`, or without values if `first` is None."""
    values = kind.values(1, LENGTH)
    create = {"shape": LENGTH, "dtype": values.dtype, **kind.create, **more}
    array = zarrlite.create_array(store, name=path, **create)
    if first is not None:
        array[...] = kind.values(first, LENGTH)
    return array


def _open(kind: Kind, store: Store, path: str = "a") -> Any:
    return zarrlite.open_array(store, path=path, mode="r+", options=kind.options)


def _write(kind: Kind, store: Store, start: int = 0, stop: int = LENGTH) -> None:
    _open(kind, store)[start:stop] = kind.values(101, LENGTH)[start:stop]


def _erase(kind: Kind, store: Store) -> None:
    array = _open(kind, store)
    array[...] = array.fill_value


def _append(kind: Kind, store: Store) -> None:
    _open(kind, store).append(kind.values(101, 7))


def _cut(kind: Kind, store: Store) -> None:
    _open(kind, store).resize((3,))


def _look_and_grow(kind: Kind, store: Store) -> State:
    """Examine an array and, if it was shrunk, examine it again after enlarging it: old values must not reappear."""
    state = look(store)
    node = state.get("a")
    if isinstance(node, Seen) and node.values.shape == (3,):
        _open(kind, store).resize((LENGTH,))
        state["a, grown"] = look(store)["a"]
    return state


def _of_kind(name: str, kind: Kind) -> Iterator[Scene]:
    empty, full = partial(create, kind, first=None), partial(create, kind)
    yield Scene(f"{name}: first write", empty, partial(_write, kind))
    yield Scene(f"{name}: replace", full, partial(_write, kind))
    yield Scene(f"{name}: change a part", full, partial(_write, kind, start=1, stop=5), atomic=kind.atomic)
    yield Scene(f"{name}: erase", full, partial(_erase, kind))


def _prepare_tree(store: Store) -> None:
    """Create a hierarchy of two groups and three arrays."""
    zarrlite.create_group(store, attributes={"title": "old"})
    create(KINDS["raw"], store)
    create(KINDS["crc32c"], store, "g/dots", chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}})
    create(KINDS["parts"], store, "g/parts")


def _prepare_consolidated(store: Store) -> None:
    _prepare_tree(store)
    zarrlite.consolidate_metadata(store)


def _prepare_leftovers(store: Store) -> None:
    """Leave the chunks of a node whose deletion was interrupted."""
    create(KINDS["raw"], store)
    store.erase("a/zarr.json")


def _delete(store: Store, path: str) -> None:
    with contextlib.suppress(KeyError):  # a removal that was interrupted may have left nothing to remove
        del zarrlite.open_group(store, mode="r+")[path]


def _look_and_create(store: Store, path: str, overwrite: bool = False) -> State:
    """Examine a hierarchy and, if a group was deleted, create it again: the new group must have no members."""
    state = look(store)
    if path not in state:
        names = sorted(zarrlite.create_group(store, path=path, overwrite=overwrite).keys())
        state[f"{path}, created again"] = Seen(f"members {names}")
    return state


def _set_attributes(store: Store, path: str) -> None:
    zarrlite.open(store, mode="r+", path=path).attrs.update({"title": "new", "more": [1, 2]})


def _copy(store: Store, source: str, target: str) -> None:
    zarrlite.copy(zarrlite.open(store, mode="r", path=source), store, target, overwrite=True)


def run_command(*arguments: str) -> Callable[[Any], None]:
    """Return an operation that runs a command line. An @ at the start of a word stands for the store's directory."""

    def operate(store: Any) -> None:
        words = [store.root + word[1:] if word[0] == "@" else word for word in arguments]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            code = main(words)
        if code == 130:  # the command line caught the interrupt
            raise KeyboardInterrupt
        if code:
            raise RuntimeError(f"zarrlite {' '.join(words)}: exit code {code}: {errors.getvalue()}")

    return operate


def _nodes() -> Iterator[Scene]:
    raw, tree = KINDS["raw"], _prepare_tree
    dots = {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}
    again = partial(create, raw, overwrite=True)

    def nothing(store: Store) -> None:
        """Leave the store empty."""

    yield Scene("node: create an array", nothing, partial(again, path="a", first=101), replaces)
    yield Scene("node: create deep below", nothing, partial(again, path="x/y/a", first=101), replaces)
    yield Scene("node: create a group", tree, lambda store: zarrlite.open_group(store, path="h/i", mode="a"), replaces)
    yield Scene("node: create over leftovers", _prepare_leftovers, partial(again, first=None), replaces)
    yield Scene("node: overwrite an array", tree, partial(again, first=101, attributes={"v": 2}), replaces)
    yield Scene("node: overwrite, same document", partial(create, raw), partial(again, first=101), replaces)
    yield Scene(
        "node: overwrite, keys with dots", partial(create, raw, **dots), partial(again, first=101, **dots), replaces
    )
    yield Scene("node: overwrite a group", tree, partial(again, path="g", first=101), replaces)
    yield Scene("node: delete an array", tree, partial(_delete, path="a"), completes)
    yield Scene("node: delete an array, keys with dots", tree, partial(_delete, path="g/dots"), completes)
    yield Scene("node: delete an array in parts", tree, partial(_delete, path="g/parts"), completes)
    for overwrite, suffix in ((False, ""), (True, ", then overwrite")):
        created_again = partial(_look_and_create, path="g", overwrite=overwrite)
        yield Scene(f"node: delete a group{suffix}", tree, partial(_delete, path="g"), completes, created_again)
        yield Scene(
            f"node: delete the root{suffix}",
            tree,
            lambda store: zarrlite.open_group(store, mode="r+").delete(),
            completes,
            partial(_look_and_create, path="", overwrite=overwrite),
            repeatable=False,
        )
    yield Scene("node: attributes of an array", tree, partial(_set_attributes, path="a"))
    yield Scene("node: attributes of a group", tree, partial(_set_attributes, path="g"))
    yield Scene("node: copy an array", tree, partial(_copy, source="g/parts", target="b"), completes)
    yield Scene("node: copy a group", tree, partial(_copy, source="g", target="h"), completes)
    yield Scene("node: copy over an array", tree, partial(_copy, source="g", target="a"), completes)
    yield Scene("consolidated: consolidate", tree, zarrlite.consolidate_metadata)
    yield Scene("consolidated: again", _prepare_consolidated, zarrlite.consolidate_metadata)
    yield Scene("consolidated: attributes", _prepare_consolidated, partial(_set_attributes, path="g/dots"))
    yield Scene("consolidated: create", _prepare_consolidated, partial(again, path="g/b", first=101), replaces)
    yield Scene("consolidated: delete", _prepare_consolidated, partial(_delete, path="g/parts"), completes)
    for name in ("raw", "shards rewritten", "shards appended", "draft shards", "parts", "strings"):
        kind = KINDS[name]
        full = partial(create, kind)
        yield Scene(f"resize: append to {name}", full, partial(_append, kind), atomic=kind.atomic, repeatable=False)
        yield Scene(f"resize: cut {name}", full, partial(_cut, kind), completes, partial(_look_and_grow, kind))


def _prepare_outside(store: Store) -> None:
    """Create an array with a chunk outside the chunk grid."""
    create(KINDS["raw"], store)
    store.set("a/c/7", bytes(16))


def _prepare_n5(store: Store) -> None:
    """Create an N5 container with a dataset of one block."""
    dataset = {"dimensions": [4], "blockSize": [4], "dataType": "uint8", "compression": {"type": "raw"}}
    store.set("attributes.json", json.dumps({"n5": "2.5.0"}).encode())
    store.set("d/attributes.json", json.dumps(dataset).encode())
    store.set("d/0", bytes([0, 0, 0, 1, 0, 0, 0, 4, 1, 2, 3, 4]))


def _look_at_file(store: Any, name: str) -> State:
    """Examine all nodes and one other file."""
    state = look(store)
    content = store.get(name)
    if content is not None:
        state[name] = Seen(bytes(content).hex())
    return state


def _commands() -> Iterator[Scene]:
    tree = _prepare_tree
    for name in ("out.npy", "out.csv"):
        dump = run_command("dump", "@/a", "-o", f"@/{name}")
        yield Scene(f"command: dump {name}", tree, dump, look=partial(_look_at_file, name=name), local=True)
    repair = run_command("fsck", "@/a", "--repair-outside")
    yield Scene("command: fsck", _prepare_outside, repair, look=partial(_look_at_file, name="a/c/7"), local=True)
    yield Scene("command: n5", _prepare_n5, run_command("n5", "@", "--overwrite"), completes, local=True)
    copy = run_command("copy", "@/g", "@/h", "--overwrite")
    yield Scene("command: copy", tree, copy, completes, local=True)
    yield Scene("command: copy over", tree, run_command("copy", "@/g", "@/a", "--overwrite"), completes, local=True)
    reencode = partial(run_command, "reencode", "@/g/dots")
    yield Scene(
        "command: reencode",
        tree,
        reencode("@/b", "--chunks", "2", "--codecs", "zstd", "--overwrite"),
        completes,
        local=True,
    )
    yield Scene(
        "command: reencode over shards", tree, reencode("@/a", "--chunks", "2", "--shards", "4", "--overwrite"),
        completes, local=True,
    )  # fmt: skip


SCENES: dict[str, Scene] = {
    scene.name: scene
    for scene in itertools.chain(
        itertools.chain.from_iterable(_of_kind(name, kind) for name, kind in KINDS.items()), _nodes(), _commands()
    )
}


def choose(trials: int | None, each: int) -> list[Scene]:
    """Return all scenes or, if `trials` does not suffice for `each` trials per scene, an evenly spread selection."""
    scenes = list(SCENES.values())
    if trials is None:
        return scenes
    count = max(1, min(len(scenes), math.ceil(trials / each)))
    return [scenes[i * len(scenes) // count] for i in range(count)]

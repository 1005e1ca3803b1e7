"""`tests.words`: planted sentences are found, and plain English passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import words
from tests.words import find_faults

VERB = 'the docstring of a function must begin with a verb or "Whether"'


def reasons(source: str) -> list[str]:
    return [fault.reason for fault in find_faults(source)]


@pytest.mark.parametrize("opening", ["What", "Who", "Whoever", "Whatever", "Whose", "Of"])
@pytest.mark.parametrize(
    "docstring",
    [
        "{} is read.",
        "Read a chunk. {} is longer is refused.",
        "Rules\n- Keys are text.\n- {} is it?",
        "Read:\n\n  {} x.",
    ],
)
def test_a_docstring_sentence_that_begins_with_a_pronoun_is_found(docstring: str, opening: str) -> None:
    text = docstring.format(opening)
    expected = f'a sentence must not begin with "{opening}": name the thing'
    assert expected in reasons(f'"""{text}"""')
    assert expected in reasons(f'class Chunk:\n    """{text}"""')
    assert expected in reasons(f'def read():\n    """{text}"""')
    assert expected in reasons(f'async def read():\n    """{text}"""')


@pytest.mark.parametrize("word", ["of", "which", "whose", "who", "whom", "what", "Which"])
def test_a_comment_that_begins_with_a_pronoun_is_found(word: str) -> None:
    expected = [f'a comment must not begin with "{word}": name the thing']
    assert reasons(f"x = 1  # {word} the chunk") == expected
    assert reasons(f"# {word} the chunk\nx = 1") == expected
    assert reasons(f"# Bytes of the chunk,\n# {word} are compressed\nx = 1") == []
    assert reasons(f"x = 1  # bytes\n# {word} the chunk") == expected
    assert reasons(f"# Bytes of the chunk\nx = 1\n# {word} the chunk") == expected


def test_a_sentence_within_a_comment_is_checked() -> None:
    assert reasons("# Chunks are small. What is larger\n# is refused.\n") == [
        'a sentence must not begin with "What": name the thing'
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Write the shard anew.",
        "Write the shard\n    anew.",
        "Lock the key for whoever comes.",
        "Write a file that nobody reads.",
        "Read values that are had in one step.",
        "Parse an integer: 4.0 is none.",
        "Refuse a key that is no text.",
        "Decode chunks one behind the other.",
        "Compare both side by side.",
        "Read the shard behind a header.",
        "Return the offset where the chunk lies.",
        "Return the pointer where a member stands.",
        "Keep the lock lest another writer comes.",
        "Return memory that is lent to the caller.",
        "Read into a buffer that is used again.",
        "Let threads hand the interpreter over.",
        "Try a fast path that may say no.",
        "Return the size, or None if there is no telling.",
        "Copy a hierarchy, which can be gone on with.",
        "Return elements that are stored as they are in a chunk.",
        "Copy the values as they are.",
        "Report all that is said of a chunk.",
        "Read all, unless you say `partial=True`.",
    ],
)
def test_a_phrase_of_the_glossary_is_found(sentence: str) -> None:
    (reason,) = reasons(f'def read():\n    """{sentence}"""')
    assert ": write " in reason
    comment = sentence.replace("\n   ", "\n#")
    assert reasons(f"# {comment}\nx = 1") == [reason]


def test_names_of_tests_are_checked() -> None:
    assert reasons("def test_a_key_that_is_no_chunk_key_lies_elsewhere(): pass") == [
        '"is no": write is not an X',
        '"lies": write is, is stored',
    ]
    assert reasons("def test_a_missing_key_is_none(): pass") == []


def test_pages_are_checked_outside_of_code_blocks() -> None:
    page = "# Keys\n\n```python\nnobody = 1\n```\n\nKeys are text.\n\n## What is stored\n\nA key lies in a store.\n"
    assert [(fault.line, fault.sentence) for fault in words.find_page_faults(page)] == [
        (9, "What is stored"),
        (11, "A key lies in a store."),
    ]
    assert words.find_page_faults("Keys.\n\n## Words\n\n| lies | is |\n\n## Code\n\nKeys.\n") == []


def test_messages_are_checked_on_request() -> None:
    source = 'raise ValueError(f"{key!r} is no key: nobody reads it")'
    assert sorted(reasons(source)) == [
        '"is no": write is not an X',
        '"nobody": write no reader, no caller, no other program',
    ]
    assert find_faults(source, messages=False) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The chunks of an array.",
        "A chunk.",
        "Its name.",
        "Every key under a prefix.",
        "How many bytes there are.",
        "Bytes of a chunk.",
        "Returns the bytes.",
        "So many bytes.",
        "`n` bytes.",
        "CRC32C of a chunk.",
        "zarr-python's name.",
    ],
)
def test_the_docstring_of_a_function_begins_with_a_verb(sentence: str) -> None:
    assert reasons(f'def size(self):\n    """{sentence}"""') == [VERB]
    assert reasons(f'class Store:\n    @classmethod\n    def size(cls):\n        """{sentence}"""') == [VERB]
    for decorator in ("property", "cached_property", "functools.cached_property", "pytest.fixture(scope='session')"):
        assert reasons(f'@{decorator}\ndef size(self):\n    """{sentence}"""') == []
    assert reasons(f'def test_size():\n    """{sentence}"""') == []
    assert reasons(f'class Size:\n    """{sentence}"""') == []
    assert reasons(f'"""{sentence}"""') == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Whether the key exists.",
        "Return the chunk. Returns None if it is None.",
        "Re-read the index, or process it. There is no other way.",
        "Compress a chunk, which is no longer than before.",
        "Write an index that stands for a shard.",
        "Refuse a part whose size differs, whatever its name.",
        'Refuse what the spec calls "anew"; `nobody` is a user.',
        "Pass `limit=1`: the file is read as it is written.",
        "Raise an error about users who are told apart by name.",
    ],
)
def test_plain_english_passes(sentence: str) -> None:
    assert reasons(f'def read():\n    """{sentence}"""') == []


def test_a_fault_has_its_line_and_its_sentence() -> None:
    source = (
        '"""Chunks.\n\nRules\n- Keys are text.\n- What is\n  long is refused. Sizes are bytes.\n"""\nx = 1  # of x\n'
    )
    assert [(fault.line, fault.sentence) for fault in find_faults(source)] == [
        (5, "What is long is refused."),
        (8, "of x"),
    ]


def test_the_command_prints_faults_and_fails(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    (tmp_path / "zarrlite").mkdir()
    (tmp_path / "zarrlite" / "keys.py").write_text('x = 1  # of a key\ny = "written anew"\n')
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_keys.py").write_text('y = "written anew"\n')
    assert words.main(["zarrlite", "tests/test_keys.py"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "zarrlite/keys.py:1: of a key",
        '    a comment must not begin with "of": name the thing',
        "zarrlite/keys.py:2: written anew",
        '    "anew": write again, from scratch',
        "2 sentences against the house style (CONTRIBUTING.md)",
    ]
    assert words.main(["tests"]) == 0
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit, match="nowhere does not exist"):
        words.main(["nowhere"])

"""`python -m tests.words [PATH ...]`: check the words of code, tests and pages against the house style.

Rules (CONTRIBUTING.md, "Words")
- No sentence of a docstring or a comment begins with one of `SENTENCE_OPENINGS`, and no comment begins with one of
  `COMMENT_OPENINGS`.
- The docstring of a function or method begins with a verb, or with "Whether". A script cannot tell verbs from nouns,
  so it refuses only plurals and the words in `NEVER_VERBS`. Properties, fixtures and tests may begin with a noun
  phrase.
- The phrases of `GLOSSARY` are not used in docstrings, comments, test names and (outside of the tests) messages.
- Pages in Markdown follow the same rules as docstrings, except for their code blocks.
- Text in backticks or double quotes is code or a quotation, and is not checked.

Without arguments, everything in `EVERYTHING` is checked. One line is printed for each fault; the exit code is 1 if
there are any.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CORRECTNESS.md")
GENERATED = {"docs/coverage.md", "docs/conformance-results.md", "benchmarks/RESULTS.md"}
EVERYTHING = ("zarrlite", "tests", "benchmarks", "docs", "spec_fixtures", *PAGES)

SENTENCE_OPENINGS = re.compile(r"\W*(What|Who|Whoever|Whatever|Whose|Whom|Of)\b")
COMMENT_OPENINGS = re.compile(r"\W*(of|what|which|who|whoever|whom|whose)\b", re.IGNORECASE)

NEVER_VERBS = """
a an the this that these those such same another other others own
i we you he she it they its his her their our your my one ones
all any both each either every everything enough few fewer less many more most much neither no nobody none nothing
several some somebody something someone whole
zero two three four five six seven eight nine ten eleven twelve sixteen
first second third last next once twice
how what whatever when whenever where wherever which whichever while who whoever whom whose why
about above across after against along although among and around as at because before behind below beneath beside
besides between beyond but by despite down during except for from if in inside into like near nor not of off on onto
or out outside over since so than then there though through to toward under unless until unlike up upon via with
within without yet
also always else ever here just never now often only perhaps quite rather still too very
array chunk core element memory number text value
bare big bigger different equal inner large larger long longer new old outer random raw short shorter
single small smaller true false
"""
FIRST_WORD = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*\b")

# Phrases from the glossary's left column, and what to write instead. A space also matches a line break.
COMPARATIVES = "better|bigger|different|earlier|faster|fewer|further|greater|higher|larger|later|less|longer|lower|more"
COMPARATIVES += "|other|shorter|slower|smaller|sooner|worse"
THINGS = "array|checksum|chunk|codec|header|index|key|padding|prefix|value"
GLOSSARY = {
    "anew": "again, from scratch",
    "whoever|whomever": "readers, callers, other programs",
    "nobody": "no reader, no caller, no other program",
    "(?:is|are|was|were|be) had": "is obtained",
    "(?:is|are|was|were) (?-i:none)": "is not an X, is missing",
    rf"(?<!there\s)(?:is|are|was|were) no(?= \w)(?! (?:{COMPARATIVES})\b)": "is not an X",
    "one behind the other|side by side": "consecutive, contiguous",
    f"behind (?:an?|the|its|their|each|every|this) (?:{THINGS})": "after",
    "lies?": "is, is stored",
    "stands?(?! (?:alone|for|in for|out)\\b)": "is, is stored",
    "lest": "so that ... not",
    "lent|lends": "scratch buffer, valid until",
    "(?:memory|buffers?) (?:that|which) (?:is|are) used again": "scratch buffer",
    "hand(?:s|ed|ing)? (?:over the interpreter|the interpreter over)": "releases the GIL",
    "says? no(?! to)": "declines",
    "there is no telling": "is not known",
    "the other way r?a?round": "the opposite",
    "(?:is|are|was|were) dearer": "costs more",
    "(?:has|have) no more": "no longer has",
    "not there any more": "no longer exists",
    "a (?:inner|index) \\w+": "an inner, an index",
    "gone on with": "resumed",
    "stored as (?:it is|they are)|as (?:it is|they are)(?=\\s*(?:[.,;:)]|$))": "uncompressed, unchanged",
    "(?:is|are|was|were) (?:said|told)(?! (?:apart|otherwise|to)\\b)": "is reported",
    "(?:gives?|says?) `[\\w.]+(?==)": "pass `x=1`, use `x=1`",
}
PHRASES = [
    (re.compile(rf"\b(?:{phrase.replace(' ', chr(92) + 's+')})(?!\w)", re.IGNORECASE), instead)
    for phrase, instead in GLOSSARY.items()
]
QUOTED = re.compile(r'`[^`]*`|"[^"\n]*"')
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HOUSE_STYLE = re.compile(r"^## Words$.*?(?=^## )", re.MULTILINE | re.DOTALL)  # in CONTRIBUTING.md
BOUNDARY = re.compile(r"(?<=[.:;?!])\s+(?:[-*]\s+)?|\n\s*\n\s*|\n\s*[-*]\s+")


class Fault(NamedTuple):
    """A sentence that violates the house style."""

    line: int
    sentence: str
    reason: str


class Passage(NamedTuple):
    """A docstring, a comment of one or more lines, or a message."""

    line: int  # in the file, from 1
    text: str


def find_faults(source: str, messages: bool = True) -> list[Fault]:
    """Return the faults of a Python file, in the order of its lines. Strings are checked too if `messages` is true."""
    tree = ast.parse(source)
    docstrings = list(_docstrings(tree))
    faults: list[Fault] = []
    for node, passage in docstrings:
        faults += _check_sentences(passage)
        if _needs_verb(node):
            faults += _check_first_word(passage)
    for passage in _comments(source):
        faults += _check_sentences(passage)
        opening = COMMENT_OPENINGS.match(_masked(passage.text))
        if opening and not SENTENCE_OPENINGS.match(opening.group()):
            faults.append(Fault(passage.line, _shown(passage.text), _opening_reason("comment", opening)))
    for passage in _test_names(tree):
        faults += _check_phrases(passage, passage.text)
    if messages:
        lines = {passage.line for _, passage in docstrings}
        for passage in _strings(tree):
            if passage.line not in lines:
                faults += _check_phrases(passage, _masked(passage.text))
    return sorted(set(faults))


def find_page_faults(text: str) -> list[Fault]:
    """Return the faults of a page in Markdown. Code blocks, and the house style itself, are not checked."""
    for hidden in (CODE_BLOCK, HOUSE_STYLE):
        text = hidden.sub(lambda match: re.sub(r"\S", "", match.group()), text)
    return sorted(set(_check_sentences(Passage(1, re.sub(r"^#+ ", "", text, flags=re.MULTILINE)))))


def _test_names(tree: ast.Module) -> Iterator[Passage]:
    """Yield the names of tests, with spaces instead of underscores."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield Passage(node.lineno, node.name.replace("_", " ").replace(" none", " None"))


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, Passage]]:
    """Yield the docstrings of a module, each with the node that it belongs to."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        text = ast.get_docstring(node, clean=False)
        if text:
            yield node, Passage(node.body[0].lineno, text)


def _comments(source: str) -> Iterator[Passage]:
    """Yield the comments of a file. Consecutive comment lines in the same column are one comment."""
    block: list[str] = []
    first = last = column = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, start = token.start
        alone = not token.line[:start].strip()
        if block and not (alone and row == last + 1 and start == column):
            yield Passage(first, "\n".join(block))
            block = []
        if not block:
            first = row
        block.append(token.string.lstrip("#!").strip())
        last, column = row, start if alone else -1  # a comment after code never continues on the next line
    if block:
        yield Passage(first, "\n".join(block))


def _strings(tree: ast.Module) -> Iterator[Passage]:
    """Yield the strings of a module that may be messages: those with a space."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Passage(node.lineno, node.value)


def _check_sentences(passage: Passage) -> Iterator[Fault]:
    """Yield the faults in a docstring or a comment: forbidden first words of sentences, and forbidden phrases."""
    masked = _masked(passage.text)
    start = 0
    for end in [*(match.end() for match in BOUNDARY.finditer(masked)), len(masked)]:
        opening = SENTENCE_OPENINGS.match(masked[start:end])
        if opening:
            line = passage.line + masked.count("\n", 0, start + opening.start(1))
            yield Fault(line, _shown(passage.text[start:end]), _opening_reason("sentence", opening))
        start = end
    yield from _check_phrases(passage, masked)


def _opening_reason(kind: str, opening: re.Match[str]) -> str:
    """Return the message about a sentence or comment that begins with a pronoun."""
    return f'a {kind} must not begin with "{opening.group(1)}": name the thing'


def _check_phrases(passage: Passage, masked: str) -> Iterator[Fault]:
    """Yield a fault for each phrase from the glossary's left column."""
    for phrase, instead in PHRASES:
        for match in phrase.finditer(masked):
            line = passage.line + masked.count("\n", 0, match.start())
            begin = max((end for end in map(re.Match.end, BOUNDARY.finditer(masked, 0, match.start()))), default=0)
            sentence = BOUNDARY.split(passage.text[begin:])[0]
            yield Fault(line, _shown(sentence), f'"{_shown(match.group())}": write {instead}')


def _check_first_word(passage: Passage) -> Iterator[Fault]:
    """Yield a fault if a docstring certainly does not begin with a verb."""
    text = passage.text.lstrip()
    match = FIRST_WORD.match(text)
    word = match.group().lower() if match else ""
    plural = word.endswith("s") and not word.endswith("ss")
    if not word or word in NEVER_VERBS.split() or plural:
        sentence = BOUNDARY.split(text)[0]
        yield Fault(passage.line, _shown(sentence), 'the docstring of a function must begin with a verb or "Whether"')


def _needs_verb(node: ast.AST) -> bool:
    """Whether a node is a function or method that is neither a property nor a fixture nor a test."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("test_"):
        return False
    decorators = {re.split(r"[.(]", ast.unparse(decorator).split("(")[0])[-1] for decorator in node.decorator_list}
    return not any(name.endswith(("property", "fixture")) for name in decorators)


def _masked(text: str) -> str:
    """Return `text` with the letters of code and quotations replaced, so that no rule matches there."""
    return QUOTED.sub(lambda match: re.sub(r"\w", "_", match.group()), text)


def _shown(text: str) -> str:
    """Return `text` in one line."""
    return " ".join(text.split())


def _files(path: Path) -> list[Path]:
    """Return the Python files and the pages at and below a path, except generated ones."""
    files = sorted([*path.rglob("*.py"), *path.rglob("*.md")]) if path.is_dir() else [path]
    return [file for file in files if file.relative_to(ROOT).as_posix() not in GENERATED]


def main(paths: list[str]) -> int:
    """Check the files and folders of `paths`, print the faults, and return the exit code."""
    count = 0
    for name in paths:
        path = ROOT / name
        if not path.exists():
            sys.exit(f"{name} does not exist")
        for file in _files(path):
            relative = file.relative_to(ROOT)
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".md":
                faults = find_page_faults(text)
            else:
                faults = find_faults(text, messages=relative.parts[0] != "tests")
            for fault in faults:
                print(f"{relative}:{fault.line}: {fault.sentence}\n    {fault.reason}")
            count += len(faults)
    if count:
        print(f"{count} sentences against the house style (CONTRIBUTING.md)")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(EVERYTHING)))

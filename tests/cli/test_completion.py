"""Completion in bash, zsh and fish, tested in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.required import lacking
from zarrlite.tools.cli import grammar
from zarrlite.tools.cli.main import COMMANDS

# $1 is the completion script, $2 the word to complete; the remaining arguments are the words before it
BASH = """
source "$1"; current=$2; shift 2; COMP_WORDS=("$@" "$current"); COMP_CWORD=$#; _zarrlite
printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh's functions that offer completions work only in an interactive shell; these replacements print the completions
ZSH = """
compdef() { :; }
_describe() { print -l -- "${(@)${(P)@[-1]}%%:*}"; }
_files() { print -l -- *(N); }
compadd() { shift; print -l -- "$@"; }
source "$1"; current=$2; shift 2; words=("$@" "$current"); CURRENT=$#words; _zarrlite
"""
FISH = 'source $argv[1]; complete -C (string join -- " " $argv[3..] $argv[2])'
SHELLS = {"bash": (BASH, ["bash"]), "zsh": (ZSH, ["zsh"]), "fish": (FISH, ["--"])}


@pytest.fixture(params=SHELLS)
def offers(request, run, tmp_path, monkeypatch):
    """Return a function that takes words, and returns the completions that the shell offers for the last one."""
    shell = request.param
    if not shutil.which(shell):
        lacking(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "image.zarr").mkdir()
    monkeypatch.chdir(folder)
    program, name = SHELLS[shell]

    def offers(*words: str) -> set[str]:
        command = [shell, "-c", program, *name, str(script), words[-1], "zarrlite", *words[:-1]]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        lines = {line.split("\t")[0] for line in done.stdout.split("\n")} - {""}
        return {line.rstrip("/") for line in lines if line.startswith(words[-1])}

    return offers


def test_the_commands_are_offered_first(offers):
    assert offers("") == set(COMMANDS)
    assert offers("con") == {"conformance", "consolidate"}


def test_options_of_the_command_are_offered(offers):
    assert {"--format", "--full", "--output"} <= offers("dump", "--")
    assert "--format" not in offers("tree", "--")


def test_subcommands_and_their_options_are_offered(offers):
    assert {"run", "diff", "show", "list"} <= offers("conformance", "")
    assert "--junit" in offers("conformance", "run", "--")
    assert "--junit" not in offers("conformance", "show", "--")


def test_the_choices_of_options_and_arguments_are_offered(offers):
    assert offers("dump", "image.zarr", "--format", "") == {"text", "csv", "json", "npy"}
    assert offers("completion", "f") == {"fish"}


def test_paths_are_offered_as_arguments(offers):
    assert offers("dump", "im") == {"image.zarr"}


def test_the_grammar_has_every_command_with_its_options_and_arguments():
    commands = {command.name: command for command in grammar.commands()}
    assert list(commands) == list(COMMANDS)
    dump = commands["dump"]
    assert [argument.name for argument in dump.arguments] == ["location", "selection"]
    assert [argument.required for argument in dump.arguments] == [True, False]
    assert dump.example.startswith("zarrlite dump ")
    (output,) = [option for option in dump.options if "--output" in option.flags]
    assert (output.flags, output.value) == (("-o", "--output"), "FILE")
    assert [sub.name for sub in commands["conformance"].subcommands] == [
        "conformance run",
        "conformance diff",
        "conformance show",
        "conformance list",
    ]


def test_scripts_start_no_python(run):
    for shell in SHELLS:
        script = run("completion", shell, "--json").json
        assert script["shell"] == shell
        assert "python" not in script["script"]

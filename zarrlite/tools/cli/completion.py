"""`zarrlite completion`: print the script that completes the command in a shell.

Rules
- The script is self-contained: pressing Tab does not start Python.
- Commands, options and their choices come from grammar.py; everything else is completed as a path.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.grammar import Command, Option, commands

HELP = "print the script that completes the command in a shell"
EXAMPLE = "zarrlite completion bash > ~/.local/share/bash-completion/completions/zarrlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell whose script is printed")


def run(args: argparse.Namespace, console: Console) -> int:
    script = _SCRIPTS[args.shell]([*commands()])
    if console.as_json:
        console.json({"shell": args.shell, "script": script})
    else:
        console.print(script.rstrip("\n"))
    return 0


def _every(listed: list[Command]) -> Iterator[Command]:
    """Yield commands, each followed by its subcommands."""
    for command in listed:
        yield command
        yield from _every([*command.subcommands])


def _words(command: Command) -> list[str]:
    """Return the words that may follow a command: subcommands, options, and the choices of arguments."""
    names = [sub.name.split()[-1] for sub in command.subcommands]
    flags = [flag for option in command.options for flag in option.flags]
    return [*names, *flags, *(choice for argument in command.arguments for choice in argument.choices)]


def _quoted(text: str) -> str:
    """Quote a word so that bash, zsh and fish take it literally."""
    escaped = text.replace("'", "'\\''")
    return f"'{escaped}'"


def _with_choices(command: Command) -> list[Option]:
    return [option for option in command.options if option.choices]


_BASH = """\
# Completion of zarrlite in bash: eval "$(zarrlite completion bash)"
_zarrlite() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} words={names}
  if ((COMP_CWORD > 1)); then
    case $command in {with_subcommands}) ((COMP_CWORD > 2)) && command+=" ${{COMP_WORDS[2]}}" ;; esac
    words=
    case "$command $previous" in
{choices}
    esac
    if [[ -n $words ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
      return
    fi
    case $command in
{words}
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if ((COMP_CWORD > 1)) && [[ $current != -* ]]; then
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -o filenames -F _zarrlite zarrlite
"""


def _bash(listed: list[Command]) -> str:
    every = [*_every(listed)]
    parents = [command.name for command in every if command.subcommands]
    choices = [
        f"      {' | '.join(_quoted(f'{command.name} {flag}') for flag in option.flags)}) "
        f"words={_quoted(' '.join(option.choices))} ;;"
        for command in every
        for option in _with_choices(command)
    ]
    return _BASH.format(
        names=_quoted(" ".join(command.name for command in listed)),
        with_subcommands=" | ".join(parents),
        choices="\n".join(choices),
        words="\n".join(f"      {_quoted(c.name)}) words={_quoted(' '.join(_words(c)))} ;;" for c in every),
    )


_ZSH = """\
#compdef zarrlite
# Completion of zarrlite in zsh: eval "$(zarrlite completion zsh)" after compinit
_zarrlite() {{
  local command=${{words[2]}} previous=${{words[CURRENT - 1]}}
  local -a offered
  if ((CURRENT == 2)); then
    offered=(
{names}
    )
    _describe command offered
    return
  fi
  case $command in {with_subcommands}) ((CURRENT > 3)) && command+=" ${{words[3]}}" ;; esac
  case "$command $previous" in
{choices}
  esac
  case $command in
{words}
  esac
  _describe -o option offered
  _files
}}
compdef _zarrlite zarrlite
"""


def _zsh(listed: list[Command]) -> str:
    every = [*_every(listed)]
    parents = [command.name for command in every if command.subcommands]
    choices = [
        f"    {' | '.join(_quoted(f'{command.name} {flag}') for flag in option.flags)}) "
        f"compadd -- {' '.join(map(_quoted, option.choices))}; return ;;"
        for command in every
        for option in _with_choices(command)
    ]
    words = [f"    {_quoted(command.name)}) offered=({' '.join(_zsh_offered(command))}) ;;" for command in every]
    return _ZSH.format(
        names="\n".join(f"      {_described(command.name, command.help)}" for command in listed),
        with_subcommands=" | ".join(parents),
        choices="\n".join(choices),
        words="\n".join(words),
    )


def _zsh_offered(command: Command) -> Iterator[str]:
    for sub in command.subcommands:
        yield _described(sub.name.split()[-1], sub.help)
    for option in command.options:
        yield from (_described(flag, option.help) for flag in option.flags)
    for argument in command.arguments:
        yield from map(_quoted, argument.choices)


def _described(word: str, description: str) -> str:
    """Return a word and its description in the form that zsh's `_describe` expects."""
    return _quoted(f"{word}:{description.replace(':', '')}")


def _fish(listed: list[Command]) -> str:
    names = " ".join(command.name for command in listed)
    lines = ["# Completion of zarrlite in fish: zarrlite completion fish | source"]
    for command in listed:
        condition = _quoted(f"not __fish_seen_subcommand_from {names}")
        lines.append(f"complete -c zarrlite -f -n {condition} -a {command.name} -d {_quoted(command.help)}")
    for command in _every(listed):
        parts = command.name.split()
        condition = "; and ".join(f"__fish_seen_subcommand_from {part}" for part in parts)
        lines += _fish_lines(command, f"complete -c zarrlite -n {_quoted(condition)}")
    return "\n".join(lines) + "\n"


def _fish_lines(command: Command, start: str) -> Iterator[str]:
    for sub in command.subcommands:
        yield f"{start} -a {sub.name.split()[-1]} -d {_quoted(sub.help)}"
    for argument in command.arguments:
        if argument.choices:
            yield f"{start} -f -a {_quoted(' '.join(argument.choices))}"
    for option in command.options:
        flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
        value = f" -x -a {_quoted(' '.join(option.choices))}" if option.choices else " -r" if option.value else ""
        yield f"{start} {flags} -d {_quoted(option.help)}{value}"


_SCRIPTS: dict[str, Callable[[list[Command]], str]] = {"bash": _bash, "fish": _fish, "zsh": _zsh}

"""The commands, their options and their arguments as data, which is extracted from the argparse parsers.

Rules
- Shell completion and the reference page are generated from this data, so that both always match the command.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from zarrlite.tools.cli.main import COMMANDS, command_parser


@dataclass(frozen=True)
class Option:
    """An option, such as `-o FILE`, `--output FILE`."""

    flags: tuple[str, ...]
    help: str
    value: str  # the placeholder for its value, such as FILE; empty if the option takes no value
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Argument:
    """A positional argument."""

    name: str
    help: str
    choices: tuple[str, ...]
    required: bool


@dataclass(frozen=True)
class Command:
    """A command or a subcommand."""

    name: str  # as typed after `zarrlite`, such as "conformance run"
    help: str
    usage: str
    example: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    subcommands: tuple[Command, ...]


def commands() -> Iterator[Command]:
    """Yield every command, in the order of the help."""
    for name, line in COMMANDS.items():
        yield _command(name, line, command_parser(name))


def _command(name: str, line: str, parser: argparse.ArgumentParser) -> Command:
    options, arguments, subcommands = [], [], []
    for action in parser._actions:
        choices = tuple(map(str, action.choices or ()))
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            subcommands += [_command(f"{name} {key}", helps[key], sub) for key, sub in action.choices.items()]
        elif action.option_strings:
            value = "" if action.nargs == 0 else str(action.metavar or ",".join(choices) or (action.dest or "").upper())
            options.append(Option(tuple(action.option_strings), action.help or "", value, choices))
        else:
            required = action.nargs not in ("?", "*")
            arguments.append(Argument(str(action.metavar or action.dest), action.help or "", choices, required))
    example = (parser.epilog or "").removeprefix("example:").strip()
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip()
    return Command(name, line, usage, example, tuple(options), tuple(arguments), tuple(subcommands))

"""The generated pages of the reference: the commands from argparse, the errors from their classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import zarrlite
from zarrlite import errors
from zarrlite.tools.cli import grammar


def pages() -> dict[str, str]:
    """Return the sources of the generated pages, by path."""
    return {"reference/commands.md": commands(), "reference/errors.md": error_classes()}


def commands() -> str:
    """Return the page that describes all commands."""
    lines = [
        "# Commands",
        "",
        "This page is generated from the commands themselves. [The command](../cli.md) is a guide.",
        "",
    ]
    for command in grammar.commands():
        lines += _command(command, 2)
    return "\n".join(lines) + "\n"


def _command(command: grammar.Command, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} zarrlite {command.name}", "", f"{_sentence(command.help)}", "")
    yield from ("```text", command.usage, "```", "")
    rows = [(argument.name, argument.help, argument.choices) for argument in command.arguments]
    for option in command.options:
        flags = ", ".join(f"{flag} {option.value}".rstrip() for flag in option.flags)
        rows.append((flags, option.help, option.choices))
    yield from ("| argument | |", "|---|---|")
    for name, text, choices in rows:
        listed = f" ({', '.join(f'`{choice}`' for choice in choices)})" if choices and choices[0] not in name else ""
        yield f"| `{_cell(name)}` | {_cell(text)}{listed} |"
    yield ""
    if command.example:
        yield from ("Example:", "", "```console", f"$ {command.example}", "```", "")
    for sub in command.subcommands:
        yield from _command(sub, level + 1)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def error_classes() -> str:
    """Return the page that describes all errors."""
    lines = [
        "# Errors",
        "",
        "This page is generated from the classes. [Errors](../errors.md) is a guide.",
        "",
        "| error | also a | |",
        "|---|---|---|",
    ]
    exceptions = {n: v for n, v in vars(errors).items() if inspect.isclass(v) and issubclass(v, Exception)}
    named = {name: cls for name, cls in exceptions.items() if cls.__module__ == errors.__name__}
    classes = [cls for name, cls in named.items() if cls.__name__ == name]
    for cls in classes:
        bases = ", ".join(f"`{base.__name__}`" for base in cls.__bases__)
        summary = (inspect.getdoc(cls) or "").partition("\n\n")[0].replace("\n", " ")
        lines.append(f"| `{cls.__name__}` | {bases} | {_cell(summary)} |")
    lines += ["", "These names of zarr-python are in `zarrlite.errors`:", "", "| name | error |", "|---|---|"]
    lines += [f"| `{name}` | `{cls.__name__}` |" for name, cls in named.items() if cls.__name__ != name]
    lines += ["", *(f"::: zarrlite.errors.{cls.__name__}\n" for cls in classes)]
    assert zarrlite.ZarrliteError in classes
    return "\n".join(lines) + "\n"

"""The manual page of each command, from the same help that the command shows: `docs/commands/`."""

from __future__ import annotations

import argparse

from hotloop.cli import commands


def page(name: str) -> str:
    module, summary = commands.module(name), commands.SUMMARIES[name]
    parser = argparse.ArgumentParser(prog=f"hotloop {name}", add_help=False)
    module.add_arguments(parser)
    actions = [one for one in parser._actions if one.help != argparse.SUPPRESS]
    positional = [one for one in actions if not one.option_strings]
    options = [one for one in actions if one.option_strings]
    lines = [
        f"# hotloop {name}",
        "",
        f"{summary[0].upper()}{summary[1:]}.",
        "",
        "```",
        module.USAGE,
        "```",
        "",
        module.DESCRIPTION.strip(),
        "",
        *_table("argument", positional),
        *_table("option", options),
        "Made from `hotloop " + name + " --help`.",
    ]
    return "\n".join(lines) + "\n"


def index() -> str:
    rows = [
        f"| [hotloop {name}]({name}.md) | {_cell(summary)} |"
        for name, summary in commands.SUMMARIES.items()
    ]
    return "\n".join(["# Commands", "", "| command | |", "| --- | --- |", *rows, ""])


def _table(what: str, actions: list[argparse.Action]) -> list[str]:
    if not actions:
        return []
    rows = [f"| {_names(one)} | {_cell(_help(one))} |" for one in actions]
    return [f"| {what} | |", "| --- | --- |", *rows, ""]


def _names(action: argparse.Action) -> str:
    """As they are typed, with what follows them."""
    value = _value(action)
    if not action.option_strings:
        return f"`{value}`"
    names = [f"{name} {value}".strip() for name in action.option_strings]
    return ", ".join(f"`{name}`" for name in names)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices is not None and action.metavar is None:
        return " or ".join(map(str, action.choices))
    name = str(action.metavar or action.dest.upper())
    return f"[{name}]" if action.nargs == "?" else name


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {"default": action.default, "prog": "hotloop"}


def _cell(words: str) -> str:
    return words.replace("|", "\\|")

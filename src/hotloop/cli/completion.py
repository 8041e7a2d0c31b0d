"""`hotloop completion`: a script that teaches a shell our commands and options."""

from __future__ import annotations

import argparse
import sys

from hotloop.cli import commands

USAGE = "hotloop completion (bash | zsh | fish)"
DESCRIPTION = """\
Prints a script for your shell. To have it in every new one:

  bash   hotloop completion bash > ~/.local/share/bash-completion/completions/hotloop
  zsh    hotloop completion zsh > "${fpath[1]}/_hotloop"
  fish   hotloop completion fish > ~/.config/fish/completions/hotloop.fish
"""
SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="whose script to print")


def run(arguments: argparse.Namespace) -> int:
    made = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell]
    sys.stdout.write(made(_commands()))
    return 0


class _Command:
    """What can follow its name on a command line."""

    def __init__(self, name: str, summary: str, actions: list[argparse.Action]) -> None:
        self.name = name
        self.summary = summary
        self.options = [one for one in actions if one.option_strings]
        words = [one for one in actions if not one.option_strings and one.choices]
        self.words = [str(word) for one in words for word in one.choices or ()]

    @property
    def names(self) -> list[str]:
        return [name for one in self.options for name in one.option_strings]


def _commands() -> list[_Command]:
    found = []
    for name, summary in commands.SUMMARIES.items():
        parser = argparse.ArgumentParser(prog=name)
        commands.module(name).add_arguments(parser)
        found.append(_Command(name, summary, parser._actions))
    return found


def _bash(commands: list[_Command]) -> str:
    """Options where a word begins with a dash, otherwise files: a script or a study follows."""
    cases = "".join(
        f"        {one.name}) options='{' '.join(one.names)}' words='{' '.join(one.words)}' ;;\n"
        for one in commands
    )
    values = "".join(
        f"        {name}) COMPREPLY=($(compgen -W '{' '.join(map(str, option.choices))}' -- "
        '"$word")); return ;;\n'
        for name, option in _with_choices(commands).items()
        if option.choices
    )
    names = " ".join(one.name for one in commands)
    return f"""\
_hotloop() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= words=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '{names} --help --version' -- "$word"))
        return
    fi
    case $before in
{values}    esac
    case ${{COMP_WORDS[1]}} in
{cases}    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}}
complete -o default -F _hotloop hotloop
"""


def _zsh(commands: list[_Command]) -> str:
    listed = "".join(f"        {_quoted(f'{one.name}:{one.summary}')}\n" for one in commands)
    cases = "".join(_zsh_case(one) for one in commands)
    return f"""\
#compdef hotloop
_hotloop() {{
    local -a commands
    commands=(
{listed}    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    case $words[2] in
{cases}    esac
}}
compdef _hotloop hotloop
"""


def _zsh_case(command: _Command) -> str:
    parts = [
        _quoted(f"{name}[{_plain(option.help)}]{_zsh_value(option)}")
        for option in command.options
        for name in option.option_strings
    ]
    rest = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
    shift = "shift words; ((CURRENT--))"
    return f"        {command.name}) {shift}; _arguments {' '.join([*parts, rest])} ;;\n"


def _zsh_value(option: argparse.Action) -> str:
    if option.nargs == 0:
        return ""
    if option.choices:
        return f":value:({' '.join(map(str, option.choices))})"
    return ":value:_files"


def _fish(commands: list[_Command]) -> str:
    lines = ["complete -c hotloop -n __fish_use_subcommand -s h -l help"]
    for one in commands:
        start = "complete -c hotloop -n"
        summary = _quoted(one.summary)
        lines.append(f"{start} __fish_use_subcommand -f -a {one.name} -d {summary}")
        seen = f"'__fish_seen_subcommand_from {one.name}'"
        lines += [f"{start} {seen} -f -a {_quoted(' '.join(one.words))}"] if one.words else []
        lines += [f"{start} {seen} {_fish_option(option)}" for option in one.options]
    return "\n".join(lines) + "\n"


def _fish_option(option: argparse.Action) -> str:
    names = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in option.option_strings
    ]
    value = [] if option.nargs == 0 else ["-r"]
    if option.choices:
        value = ["-x", "-a", _quoted(" ".join(map(str, option.choices)))]
    return " ".join([*names, *value, "-d", _quoted(_plain(option.help))])


def _with_choices(commands: list[_Command]) -> dict[str, argparse.Action]:
    options = [option for one in commands for option in one.options if option.choices]
    return {name: option for option in options for name in option.option_strings}


def _plain(words: str | None) -> str:
    """Without what a shell's own syntax would read as something else."""
    text = (words or "").replace("%%", "%")
    return text.translate(str.maketrans("[]:'", "()  "))


def _quoted(words: str) -> str:
    return "'" + words.replace("'", "'\\''") + "'"

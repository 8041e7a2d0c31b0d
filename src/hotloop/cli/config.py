"""`[tool.hotloop]` in pyproject.toml: what the user always wants. Flags win over it.

    [tool.hotloop]
    study = "runs/.hotloop"       # for every command that has --study

    [tool.hotloop.optimize]
    budget = "20m"                # for this one alone
    skip = ["tf32"]

`hotloop run` reads only its own table: a training must not change because of a general setting.
"""

from __future__ import annotations

import argparse
import os

from hotloop.errors import UsageError

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Parser = argparse.ArgumentParser

FILE = "pyproject.toml"
HEAD = b"[tool.hotloop"
APART = ("run",)
"""Commands that no general setting is for."""


def read(folder: str) -> tuple[str, dict[str, Any]]:
    """The file and its table; nothing where there is none, up to the top of the repository."""
    while True:
        path = os.path.join(folder, FILE)
        if os.path.isfile(path):
            return path, _table(path)
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return "", {}
        folder = above


def preset(parsers: Mapping[str, Parser], path: str, table: dict[str, Any]) -> None:
    """Makes what the table says the default of the options it names."""
    general = {key: value for key, value in table.items() if not isinstance(value, dict)}
    for name, own in table.items():
        if isinstance(own, dict) and name not in parsers:
            raise _wrong(path, f"[tool.hotloop.{name}] is for no command that there is")
    for key, value in general.items():
        meant = [one for name, one in parsers.items() if name not in APART and _option(one, key)]
        if not meant:
            raise _wrong(path, f"no command has an option for {key!r}")
        for parser in meant:
            _set(parser, path, key, value)
    for name, parser in parsers.items():
        for key, value in table.get(name, {}).items():
            if _option(parser, key) is None:
                raise _wrong(path, f"hotloop {name} has no option for {key!r}")
            _set(parser, path, key, value)


def _table(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            text = file.read()
        if HEAD not in text:
            return {}
        import tomllib

        table = tomllib.loads(text.decode()).get("tool", {}).get("hotloop", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Mend it.") from None
    return table if isinstance(table, dict) else {}


def _option(parser: Parser, key: str) -> argparse.Action | None:
    return parser._option_string_actions.get(f"--{key.replace('_', '-')}")


def _set(parser: Parser, path: str, key: str, value: Any) -> None:
    option = _option(parser, key)
    assert option is not None
    if option.nargs == 0:
        if not isinstance(value, bool):
            raise _wrong(path, f"{key} must be true or false")
        option.default = value
        if value:
            _add_opposite(parser, option, key.replace("_", "-"))
        return
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    try:
        option.default = parser._get_value(option, text)
        parser._check_value(option, option.default)
    except argparse.ArgumentError as error:
        raise _wrong(path, f"{key}: {error.message}") from None
    option.required = False


def _add_opposite(parser: Parser, option: argparse.Action, key: str) -> None:
    """A flag wins over the file also where the file has turned something on."""
    name = f"--{key.removeprefix('no-')}" if key.startswith("no-") else f"--no-{key}"
    if name not in parser._option_string_actions:
        told = "as without what pyproject.toml says"
        parser.add_argument(name, dest=option.dest, action="store_false", default=True, help=told)


def _wrong(path: str, what: str) -> UsageError:
    return UsageError(f"{path}: {what}.", "See: hotloop COMMAND --help")

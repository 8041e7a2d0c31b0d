"""The command line. Imports next to nothing until it is known what is asked for."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys

from hotloop.cli import commands, config
from hotloop.cli.helping import Formatter
from hotloop.errors import HotloopError, StudyNotWritable, UsageError
from hotloop.version import VERSION

TYPE_CHECKING = False  # importing typing would take a fifth of the time that --help takes
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""What writing to a file that standard output was led into can come to."""

WELCOME = """\
hotloop makes PyTorch jobs fast. Three commands do for most people:

  hotloop optimize train.py --lr 3e-4
      find what makes it faster, and prove it
  hotloop run --plan hotloop.json train.py …
      train under the plan that was found
  hotloop report --open
      what was found, as a page to show

hotloop --help lists the others, hotloop COMMAND --help explains one.
"""


class _Parser(argparse.ArgumentParser):
    """Usage errors exit with our own code: a script's own argparse exits with 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[0].upper()}{message[1:]}.", f"See: {self.prog} --help")

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """A command refuses what it does not know itself: its own --help is the one to read."""
        arguments, unknown = super().parse_known_args(*args, **kwargs)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments, unknown


def parser(folder: str | None = None, asked: str | None = None) -> argparse.ArgumentParser:
    """`folder`: where to look for a configuration. None: there is none.

    `asked`: the word in a command's place. The others then go without their options, which take
    longer to put together than all the rest, unless a configuration may name them. None: all.
    """
    path, table = config.read(folder) if folder is not None else ("", {})
    top = _Parser(
        prog="hotloop",
        description="Makes PyTorch jobs fast.",
        epilog="hotloop COMMAND --help explains one.",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"hotloop {VERSION}")
    places = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in commands.SUMMARIES.items():
        command = places.add_parser(
            name, help=summary, formatter_class=Formatter, allow_abbrev=False
        )
        if table or asked in (None, name):
            module = commands.module(name)
            command.usage, command.description = module.USAGE, module.DESCRIPTION
            module.add_arguments(command)
    if table:
        config.preset(places.choices, path, table)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    _have_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows no × gets a ?
    try:
        try:
            return _obey(words)
        finally:
            sys.stdout.flush()
    except HotloopError as error:
        return _explain(error)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python makes a RuntimeError of a Ctrl-C that comes while a class is being made.
        if not isinstance(error.__cause__ or error, KeyboardInterrupt):
            raise
        sys.stderr.write("hotloop: Interrupted.\n")
        return 130
    except BrokenPipeError:
        _write_no_more()  # whoever read has left
        return 141
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        _write_no_more()
        why = os.strerror(error.errno)
        return _explain(
            StudyNotWritable(f"The standard output cannot be written: {why}.", "Free some space.")
        )


def _have_streams() -> None:
    """Whoever started us may have closed them, and then Python has none."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _write_no_more() -> None:
    """Python would try again while shutting down, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _obey(words: list[str]) -> int:
    if not words:
        sys.stdout.write(WELCOME)
        return 0
    if words[0] == "optimize":
        from hotloop.cli import resume

        words = [words[0], *resume.spelled_out(words[1:])]
    asked = next((word for word in words if not word.startswith("-")), "")
    arguments = parser(_here(), asked).parse_args(words)
    return int(commands.module(arguments.command).run(arguments))


def _here() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # somebody has deleted it
        return None


def _explain(error: HotloopError) -> int:
    from hotloop.trial.terminal import harmless

    if error.detail:
        sys.stderr.write(harmless(error.detail).rstrip() + "\n\n")
    sys.stderr.write(harmless(f"hotloop: {error.sentence} {error.remedy}").rstrip() + "\n")
    return error.exit_code

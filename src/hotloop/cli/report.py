"""`hotloop report`: what a study says, as a page to show, as Markdown, or as the data itself."""

from __future__ import annotations

import argparse
import sys

from hotloop.cli import common

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.report.page import Page
    from hotloop.study import Study

USAGE = "hotloop report [options] [STUDY]"
DESCRIPTION = """\
Makes the report of a study that `hotloop optimize`, `profile` or `verify` has left: one HTML file
that needs nothing else, Markdown for a pull request, each figure as SVG or PNG, or the study as
JSON.
STUDY is a folder under .hotloop or a study.json (default: the newest study in .hotloop).
Without an option report.html is written into the study. A FILE may be -, the standard output.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", nargs="?", metavar="STUDY", help="a folder under .hotloop, or a study.json")
    add("--html", metavar="FILE", help="write the page here (default: report.html in the study)")
    add("--markdown", metavar="FILE", help="write it as Markdown")
    add("--figures", metavar="DIR", help="write each figure as SVG into this folder")
    add("--png", metavar="DIR", help="write each figure as PNG, by a program that makes PNG of SVG")
    add("--json", action="store_true", help="print the study itself as JSON")
    add("--open", action="store_true", help="open the page in a browser")
    add("--price-hour", type=_price, metavar="N", help="what the machine costs an hour")
    add("--price-kwh", type=_price, metavar="N", help="what a kWh of electricity costs")
    add("--currency", default="", metavar="TEXT", help="of these prices, such as EUR")
    add(
        "--study",
        metavar="DIR",
        default=".hotloop",
        help="where studies are kept (default: .hotloop)",
    )


def run(arguments: argparse.Namespace) -> int:
    return common.obeyed(arguments, _report)


def _report(arguments: argparse.Namespace, received: list[int]) -> int:
    from pathlib import Path

    from hotloop import reporting, studies
    from hotloop.report.energy_rows import Prices

    path = studies.find(arguments.what, Path(arguments.study))
    record = studies.read(path) if arguments.json else studies.skim(path)
    if arguments.json:
        _print_study(record)
    prices = Prices(arguments.price_hour, arguments.price_kwh, arguments.currency)
    made = reporting.page_of(record, path.parent, prices)
    written = _write(arguments, made, path)
    if not arguments.json and "-" not in (arguments.html, arguments.markdown):
        _say(made, written)
    return 0


def _write(arguments: argparse.Namespace, made: Page, study: Path) -> list[Path]:
    """Whatever was asked for; the page when nothing was."""
    from pathlib import Path

    from hotloop import reporting
    from hotloop.report.markdown import markdown

    written = []
    asked = arguments.markdown or arguments.figures or arguments.png or arguments.json
    if arguments.html or arguments.open or not asked:
        page = arguments.html or str(_beside(study))
        written += _put(page, reporting.html(made))
        if arguments.open and page != "-":
            _open(Path(page).resolve())
    if arguments.markdown:
        written += _put(arguments.markdown, markdown(made))
    if arguments.figures:
        written += reporting.write_figures(made, Path(arguments.figures))
    if arguments.png:
        written += reporting.paint_figures(made, Path(arguments.png))
    return written


def _open(page: Path) -> None:
    import webbrowser

    if not webbrowser.open(page.as_uri()):
        sys.stderr.write("hotloop: No browser could be opened here; the page is written.\n")


def _beside(study: Path) -> Path:
    """In the study's folder; beside a study that lies alone, under its own name."""
    if study.name == "study.json":
        return study.with_name("report.html")
    return study.with_name(study.name.removesuffix(".gz").removesuffix(".json") + ".html")


def _put(name: str, text: str) -> list[Path]:
    from pathlib import Path

    from hotloop import reporting

    if name == "-":
        sys.stdout.write(text)
        return []
    reporting.write(Path(name), text)
    return [Path(name)]


def _print_study(record: Study) -> None:
    from hotloop import codec

    sys.stdout.write(codec.encode(record).decode() + "\n")


def _say(made: Page, written: list[Path]) -> None:
    from hotloop.trial.terminal import harmless

    head = made.headline
    lines = [f"{made.name}: {head.big}. {head.sentence}", *(common.short(path) for path in written)]
    sys.stdout.write("\n".join(" ".join(harmless(line).split()) for line in lines) + "\n")


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a price")
    return price

"""A study's report, made and written: what `hotloop report` does, and every search at its end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotloop import painting, studies
from hotloop.collecting import no_collection
from hotloop.errors import StudyNotWritable, StudyUnreadable
from hotloop.painting import Drawing
from hotloop.report.energy_rows import Prices
from hotloop.report.html import render
from hotloop.report.html.standalone import size
from hotloop.report.markdown import markdown
from hotloop.report.page import Page, page
from hotloop.study import Study

HTML, MARKDOWN = "report.html", "report.md"


def page_of(
    record: Study, folder: Path, prices: Prices | None = None, plan_file: str = "hotloop.json"
) -> Page:
    """`folder`: where the study lies, and what its trials printed."""
    with _contradictions_told(f"The study in {folder}"), no_collection():
        return page(record, studies.printed(record, folder), prices, plan_file)


def html(made: Page) -> str:
    with _contradictions_told(f"The study of {made.name}"):
        return render.render(made)


@contextmanager
def _contradictions_told(what: str) -> Iterator[None]:
    """Columns of different lengths, times beyond all numbers: no run of ours leaves such."""
    try:
        yield
    except (ValueError, ArithmeticError, LookupError) as error:
        why = "part of it is missing" if isinstance(error, LookupError) else str(error)
        raise StudyUnreadable(
            f"{what} contradicts itself: {why}.", "It may have been edited by hand."
        ) from None


def leave(record: Study, folder: Path, plan_file: str = "hotloop.json") -> tuple[Path, Page]:
    """Both reports, in the study. Returns where the page is."""
    made = page_of(record, folder, plan_file=plan_file)
    write(folder / MARKDOWN, markdown(made))
    path = folder / HTML
    write(path, html(made))
    return path, made


def write_figures(made: Page, folder: Path) -> list[Path]:
    """Each figure as an SVG file of its own."""
    return [drawing.path for drawing in _draw_all(made, folder)]


def paint_figures(made: Page, folder: Path) -> list[Path]:
    """Each figure as a PNG file of its own, where a program for that is installed."""
    with tempfile.TemporaryDirectory() as scratch:
        drawings = _draw_all(made, Path(scratch))
        _make(folder)
        return painting.paint(drawings, folder)


def _draw_all(made: Page, folder: Path) -> list[Drawing]:
    _make(folder)
    drawings = []
    with _contradictions_told(f"The study of {made.name}"):
        figures = render.figures(made)
    for figure in figures:
        path, text = folder / f"{figure.key}.svg", render.picture(figure)
        write(path, text)
        drawings.append(Drawing(path, *size(text)))
    return drawings


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from None


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_written(path, error) from None


def _not_written(path: Path, error: OSError) -> StudyNotWritable:
    return StudyNotWritable(
        f"{path} cannot be written: {error.strerror}.",
        "Free some space, or name another place. The study is kept: hotloop report makes it again.",
    )

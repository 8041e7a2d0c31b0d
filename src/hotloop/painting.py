"""SVG files as PNG files, by whatever program for it is installed. We depend on none of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hotloop.errors import NoPainter

SHARP = 2
"""Pixels of the picture to one of the drawing."""
PATIENCE = 60.0
"""Seconds for one figure. A browser starts in one or two."""


@dataclass(frozen=True)
class Drawing:
    path: Path
    width: float
    height: float


Words = Callable[[str, Drawing, Path, Path], list[str]]
"""The command line, of: the program, a drawing, where its picture goes, a folder for scratch."""


def _rsvg(program: str, drawing: Drawing, to: Path, scratch: Path) -> list[str]:
    return [program, f"--zoom={SHARP}", f"--output={to}", str(drawing.path)]


def _resvg(program: str, drawing: Drawing, to: Path, scratch: Path) -> list[str]:
    return [program, f"--zoom={SHARP}", str(drawing.path), str(to)]


def _inkscape(program: str, drawing: Drawing, to: Path, scratch: Path) -> list[str]:
    return [program, f"--export-width={SHARP * drawing.width:.0f}", f"-o{to}", str(drawing.path)]


def _browser(program: str, drawing: Drawing, to: Path, scratch: Path) -> list[str]:
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root cannot have one
    return [
        program,
        "--headless",
        *sandbox,
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        f"--user-data-dir={scratch}",
        f"--force-device-scale-factor={SHARP}",
        f"--window-size={drawing.width:.0f},{drawing.height:.0f}",
        f"--screenshot={to}",
        drawing.path.as_uri(),
    ]


PAINTERS: dict[str, Words] = {
    "rsvg-convert": _rsvg,
    "resvg": _resvg,
    "inkscape": _inkscape,
    "chromium": _browser,
    "chromium-browser": _browser,
    "google-chrome": _browser,
}
"""The quickest first."""


def paint(drawings: Iterable[Drawing], folder: Path) -> list[Path]:
    """Each as a PNG of the same name in `folder`. Raises NoPainter."""
    program, words = _painter()
    painted = []
    with tempfile.TemporaryDirectory() as scratch:
        for drawing in drawings:
            to = folder / drawing.path.with_suffix(".png").name
            _run(words(program, drawing, to.resolve(), Path(scratch)), to)
            painted.append(to)
    return painted


def _painter() -> tuple[str, Words]:
    for name, words in PAINTERS.items():
        program = shutil.which(name)
        if program is not None:
            return program, words
    raise NoPainter(
        "No program is installed that makes PNG of SVG.",
        f"Install one of {', '.join(PAINTERS)}; or open the page, where each figure has a button "
        "for it.",
    )


def _run(command: list[str], to: Path) -> None:
    to.unlink(missing_ok=True)  # what lay there before is no proof that it was made now
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    except (OSError, subprocess.TimeoutExpired) as error:
        said = [str(error)]
    if not to.is_file():
        why = f": {said[0]}" if said else ""
        raise NoPainter(
            f"{Path(command[0]).name} did not make {to}{why}.",
            "Open the page instead: each figure has a button that saves it as PNG.",
        )

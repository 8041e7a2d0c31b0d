"""What stays of an experiment: results/NAME.json and figures/NAME.svg, under the user's folder."""

from __future__ import annotations

from pathlib import Path

from hotloop import codec
from hotloop.errors import StudyNotWritable
from hotloop.experiments.base import Outcome
from hotloop.experiments.drawing import drawn


def keep(outcome: Outcome, folder: Path) -> tuple[Path, Path]:
    """The JSON has every process of every case, not only what the table says."""
    results = folder / "results" / f"{outcome.name}.json"
    picture = folder / "figures" / f"{outcome.name}.svg"
    figure = drawn(outcome.figure)
    try:
        for path in (results, picture):
            path.parent.mkdir(parents=True, exist_ok=True)
        codec.write(results, outcome)
        partial = picture.with_name(picture.name + ".partial")
        partial.write_text(figure, encoding="utf-8")
        partial.replace(picture)
    except OSError as error:
        raise StudyNotWritable(
            f"{folder} cannot be written: {error.strerror}.", "Name another folder with --out."
        ) from None
    return results, picture

"""Studies that were kept: which one is meant, and what it holds. For those who only read."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from hotloop import codec, skimmed, study
from hotloop.collecting import no_collection
from hotloop.errors import StudyUnreadable
from hotloop.study import Study
from hotloop.trial.trial import State, Trial

ANOTHER = "Name a folder under .hotloop, or the study.json in it."
MUCH, LITTLE = 6000, 1500
"""Bytes of what a script printed: of a run that failed, and of one that did not."""


@dataclass(frozen=True)
class _Header:
    """What tells a study of any version from other files."""

    command: str
    job_digest: str
    version: int = 0
    hotloop: str = "?"


def find(named: str | None, base: Path = Path(study.FOLDER)) -> Path:
    """The study.json that is meant: a folder's, a file itself, or the newest in `base`."""
    if named is None:
        return _newest(base)
    for path in (Path(named), base / named):
        if path.is_dir() and (path / "study.json").is_file():
            return path / "study.json"
        if path.is_file():
            return path
    if Path(named).is_dir():
        raise StudyUnreadable(f"There is no study in {named}.", ANOTHER)
    raise StudyUnreadable(f"There is no study {named}.", ANOTHER)


def read(path: Path) -> Study:
    """Raises StudyUnreadable with one sentence, whatever is wrong with the file."""
    return _whole(path, _bytes(path))


def skim(path: Path) -> Study:
    """As `read`, but samples are read, and found to be wrong, when somebody asks for them.

    For those who ask for few, or for those of one trial at a time: see `skimmed`.
    """
    data = _bytes(path)
    whole = partial(_whole, path, data)
    try:
        record = skimmed.skim(data, complain=whole)
    except ValueError:
        return whole()  # which says what is wrong with it, unless it can be read after all
    return _known(path, record)


def _whole(path: Path, data: bytes) -> Study:
    try:
        with no_collection():  # else all samples are looked through again and again
            record = codec.decode(data, Study)
    except ValueError as error:
        raise _unreadable(path, data, error) from None
    return _known(path, record)


def _known(path: Path, record: Study) -> Study:
    if record.version > study.VERSION:
        raise _newer(path, record.version, record.hotloop)
    return record


def _unreadable(path: Path, data: bytes, error: ValueError) -> StudyUnreadable:
    """What is wrong with it, by what can still be read of it."""
    try:
        header = codec.decode(data, _Header)
    except msgspec.ValidationError:
        return StudyUnreadable(f"{path} is not a study of hotloop's.", ANOTHER)
    except ValueError as broken:
        cut_off = _ends_in_the_middle(data, broken)
        what = "is cut off: it ends in the middle" if cut_off else "is not a study: it is no JSON"
        return StudyUnreadable(f"{path} {what}.", ANOTHER)
    if header.version > study.VERSION:
        return _newer(path, header.version, header.hotloop)
    return StudyUnreadable(
        f"{path} does not hold what a study holds: {error}.", "It may have been edited by hand."
    )


def _newer(path: Path, version: int, hotloop: str) -> StudyUnreadable:
    return StudyUnreadable(
        f"{path} was written by hotloop {hotloop} in study format {version};"
        f" this hotloop reads up to {study.VERSION}.",
        "Update hotloop.",
    )


def printed(record: Study, folder: Path) -> dict[str, str]:
    """The end of what scripts printed, by the name that a trial knows it under."""
    inside = folder.resolve()
    found = ((trial.log, _end(inside, trial)) for trial in record.trials if trial.log)
    return {name: text for name, text in found if text}


def _newest(base: Path) -> Path:
    found = [path for path in base.glob("*/study.json") if path.is_file()]
    if not found:
        raise StudyUnreadable(
            f"There is no study in {base}.",
            "Make one with hotloop profile or hotloop optimize, or name one.",
        )
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except EOFError:
        raise StudyUnreadable(f"{path} is cut off: it ends in the middle.", ANOTHER) from None
    except (OSError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise StudyUnreadable(f"{path} cannot be read: {why}.", ANOTHER) from None


def _ends_in_the_middle(data: bytes, error: ValueError) -> bool:
    """Begun as a study begins, and wrong only at its end."""
    whole = data.strip()
    if not whole.startswith(b"{"):
        return not whole
    at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip())
    return at_end or not whole.endswith(b"}")


def _end(folder: Path, trial: Trial) -> str:
    """Only of files inside the study: one edited by hand could name any other."""
    most = LITTLE if trial.state is State.COMPLETE else MUCH
    try:
        path = (folder / trial.log).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - most))
            text = file.read(most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    whole = path.stat().st_size <= most
    return text.strip("\n") if whole else "…\n" + text.partition("\n")[2].strip("\n")

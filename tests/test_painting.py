from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hotloop import painting
from hotloop.errors import NoPainter
from hotloop.painting import PAINTERS, Drawing, paint
from tests.browser.conftest import missing

DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 40" width="80" height="40"/>'


@pytest.fixture
def drawing(tmp_path: Path) -> Drawing:
    path = tmp_path / "one & only.svg"
    path.write_text(DRAWING)
    return Drawing(path, 80, 40)


def fake(folder: Path, name: str, does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only program on the path: notes what it is told, and does as told here."""
    program = folder / "bin" / name
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/told"\n{does}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda asked: real(asked) if asked == name else None)


@pytest.mark.parametrize("name", PAINTERS)
def test_each_program_is_told_what_and_where(
    name: str, drawing: Drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "one & only.png"
    fake(tmp_path, name, f'echo picture > "{to}"', monkeypatch)
    assert paint([drawing], tmp_path) == [to]
    told = (tmp_path / "told").read_text()
    assert str(to) in told
    assert str(drawing.path) in told or drawing.path.as_uri() in told
    assert to.read_text() == "picture\n"


def test_one_that_fails_is_told_in_a_sentence(
    drawing: Drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one & only.png").write_text("an old one")
    fake(tmp_path, "resvg", "echo first >&2; echo no such font >&2; exit 3", monkeypatch)
    with pytest.raises(NoPainter, match=r"resvg did not make .*: no such font\.") as caught:
        paint([drawing], tmp_path)
    assert "page" in caught.value.remedy


def test_one_that_hangs_is_given_up(
    drawing: Drawing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, "resvg", "exec sleep 60", monkeypatch)
    monkeypatch.setattr(painting, "PATIENCE", 0.2)
    with pytest.raises(NoPainter, match="timed out"):
        paint([drawing], tmp_path)


def test_none_is_installed(drawing: Drawing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(NoPainter) as caught:
        paint([drawing], drawing.path.parent)
    assert "rsvg-convert" in caught.value.remedy and caught.value.exit_code == 103


@pytest.mark.skipif(bool(missing()), reason="no chromium is installed")
def test_a_browser_paints_it_twice_as_sharp(drawing: Drawing, tmp_path: Path) -> None:
    if any(map(shutil.which, ("rsvg-convert", "resvg", "inkscape"))):
        pytest.skip("another program is asked first")
    (picture,) = paint([drawing], tmp_path)
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == (160, 80)

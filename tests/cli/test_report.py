from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import codec, study
from hotloop.cli import common
from hotloop.cli.main import main
from hotloop.errors import TimedOut
from hotloop.painting import Drawing
from hotloop.study import Study
from tests.builders import job
from tests.report.studies import lost, won


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(record: Study, name: str = "train-1") -> Path:
    folder = Path(".hotloop", name)
    folder.mkdir(parents=True)
    return study.save(record, folder)


def test_without_a_word_the_newest_study_gets_its_page(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = keep(won())
    assert main(["report"]) == 0
    assert "2.00× faster" in path.with_name("report.html").read_text()
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("train.py: 2.00× faster. Indistinguishable training")
    assert last == ".hotloop/train-1/report.html"


def test_a_study_elsewhere_gets_a_page_of_its_own_name(project: Path) -> None:
    Path("old.json").write_bytes(codec.encode(lost()))
    assert main(["report", "old.json"]) == 0
    assert "No plan is handed out" in Path("old.html").read_text()


def test_only_what_was_asked_for_is_written(project: Path) -> None:
    path = keep(won())
    assert main(["report", "--markdown", "pr.md", "--figures", "drawn/deep"]) == 0
    assert Path("pr.md").read_text().startswith("# train.py")
    assert Path("drawn/deep/ladder.svg").read_text().startswith("<svg ")
    assert not path.with_name("report.html").exists()
    assert main(["report", "train-1", "--html", "page.html", "--price-hour", "3.6"]) == 0
    assert "the machine, for an epoch" in Path("page.html").read_text()


def test_figures_as_png(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(won())

    def paint(drawings: list[Drawing], folder: Path) -> list[Path]:
        assert all(one.path.read_text().startswith("<svg ") for one in drawings)
        return [folder / one.path.with_suffix(".png").name for one in drawings]

    with monkeypatch.context() as patched:
        patched.setattr("hotloop.painting.paint", paint)
        assert main(["report", "--png", "drawn"]) == 0
    assert "drawn/ladder.png" in capsys.readouterr().out and Path("drawn").is_dir()
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["report", "--png", "drawn"]) == 103
    assert "Install one of rsvg-convert" in capsys.readouterr().err


def test_on_standard_output(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(won())
    assert main(["report", "--html", "-"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("<!doctype html>") and out.endswith("</html>\n")


def test_json_is_the_study_itself(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(won())
    assert main(["report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text())
    assert not path.with_name("report.html").exists()


def test_it_is_opened_in_a_browser(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", browse)
    keep(won())
    assert main(["report", "--open"]) == 0
    assert opened == [(project / ".hotloop/train-1/report.html").as_uri()]


def test_where_there_is_no_browser_that_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    path = keep(won())
    assert main(["report", "--open"]) == 0
    assert "No browser could be opened" in capsys.readouterr().err
    assert path.with_name("report.html").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["report"], 101, "There is no study in .hotloop."),
        (["report", "gone"], 101, "There is no study gone."),
        (["report", "--price-hour", "dear"], 80, "'dear' is not a price"),
        (["report", "--price-kwh", "-1"], 80, "price"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    project: Path, words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == "" and says in err and err.count("\n") == 1


def test_a_place_that_cannot_be_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(won())
    assert main(["report", "--html", "gone/page.html"]) == 94
    assert "gone/page.html cannot be written" in capsys.readouterr().err
    Path("file").touch()
    assert main(["report", "--figures", "file/x"]) == 94


def test_a_study_that_contradicts_itself(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = won()
    made = record.trials[0].measurement
    assert made is not None
    made.events.key.pop()
    keep(record)
    assert main(["report"]) == 101
    assert "contradicts itself" in capsys.readouterr().err


def test_a_terminal_is_not_reprogrammed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = lost(verdict="\x1b]0;owned\x07\x1b[2Jnothing\r\nat all")
    keep(replace(record, job=job(target="\x1b[31mtrain.py")))
    assert main(["report"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out
    assert out.startswith("train.py: No plan is handed out. nothing at all\n")


def test_what_fails_has_its_report_too(project: Path) -> None:
    path = keep(lost())

    def fail() -> int:
        raise TimedOut("It was stopped.", "Give it longer.")

    with pytest.raises(TimedOut) as caught:
        common.reported(path.parent, fail)
    assert caught.value.remedy == "Give it longer. The report: .hotloop/train-1/report.html"
    assert path.with_name("report.html").exists()


def test_without_a_run_there_is_nothing_to_report(project: Path) -> None:
    path = keep(replace(lost(), trials=()))

    def fail() -> int:
        raise TimedOut("It was stopped.", "Give it longer.")

    for folder in (path.parent, project / "gone"):
        with pytest.raises(TimedOut) as caught:
            common.reported(folder, fail)
        assert caught.value.remedy == "Give it longer."

from __future__ import annotations

import copy
import json
import random
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import codec, reporting, skimmed, studies, study
from hotloop.cli.main import main
from hotloop.errors import StudyUnreadable
from hotloop.measurement import GpuTimes
from hotloop.picking import picked
from hotloop.skimmed import Skimmed
from hotloop.study import Study
from tests.report.large import large_study
from tests.report.studies import won
from tests.sources import ROOT

RECORDED = sorted((ROOT / "tests" / "recordings").glob("*-h200.json.gz"))
STEPS = 20


def first(record: Study) -> Skimmed:
    measured = record.trials[0].measurement
    assert isinstance(measured, Skimmed)
    return measured


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_an_old_study_is_the_same_either_way(path: Path) -> None:
    whole, record = studies.read(path), studies.skim(path)
    assert first(record) and record == whole and whole == record
    assert codec.decode(codec.encode(record), Study) == whole


def test_it_is_a_value_like_any_other(tmp_path: Path) -> None:
    whole, record = won(), studies.skim(study.save(won(), tmp_path))
    measured, plain = first(record), whole.trials[0].measurement
    assert plain is not None
    assert record == whole and copy.deepcopy(measured) == plain
    assert replace(measured, lost_events=3) == replace(plain, lost_events=3) != plain
    assert measured != replace(plain, gpu=GpuTimes([1], [2.0])) and measured != 7
    assert list(measured.events.times_at([3, 1])) == plain.events.times_at([3, 1])
    later = replace(measured.events, time_ns=[time + 7 for time in plain.events.time_ns])
    assert later.times_at([3, 1]) == [time + 7 for time in plain.events.times_at([3, 1])]
    with pytest.raises(AttributeError):
        measured.colour  # noqa: B018
    with pytest.raises(AttributeError):
        measured.events.colour  # type: ignore[attr-defined] # noqa: B018


def spoilt(folder: Path, path: tuple[str, ...], value: object, place: int = -1) -> Path:
    """One entry of a column of the first trial is another, as by hand."""
    made = large_study(4, STEPS, random.Random(0))
    told = json.loads(study.save(made, folder).read_bytes())
    column = told["trials"][0]["measurement"]
    for name in path:
        column = column[name]
    column[place] = value
    (folder / "study.json").write_text(json.dumps(told, separators=(",", ":")))
    return folder / "study.json"


class TestBroken:
    @pytest.mark.parametrize("value", ["soon", 1.5, None, [1], {"a": 1}])
    @pytest.mark.parametrize("column", ["time_ns", "kind", "key", "n"])
    def test_a_page_says_it_as_reading_does(
        self, tmp_path: Path, column: str, value: object
    ) -> None:
        path = spoilt(tmp_path, ("events", column), value, place=1)
        with pytest.raises(StudyUnreadable) as read:
            studies.read(path)
        record = studies.skim(path)
        with pytest.raises(StudyUnreadable) as skimmed:
            reporting.page_of(record, tmp_path)
        assert skimmed.value.sentence == read.value.sentence
        assert f"$.trials[0].measurement.events.{column}[1]" in read.value.sentence

    @pytest.mark.parametrize("path", [("losses", "value"), ("losses", "event")])
    def test_what_no_page_asks_for_is_found_when_it_is(
        self, tmp_path: Path, path: tuple[str, str]
    ) -> None:
        record = studies.skim(spoilt(tmp_path, path, "soon"))
        with pytest.raises(StudyUnreadable, match=f"losses.{path[1]}"):
            assert first(record).losses

    def test_the_command_ends_with_one_sentence(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = spoilt(tmp_path, ("events", "n"), "soon")
        assert main(["report", str(path)]) == StudyUnreadable.exit_code
        assert "does not hold what a study holds: Expected `int`" in capsys.readouterr().err

    def test_half_a_name_is_read_all_the_same(self, tmp_path: Path) -> None:
        """A file's name that is not UTF-8 is no JSON to msgspec."""
        told = json.loads(study.save(won(), tmp_path).read_bytes())
        told["trials"][0]["reason"] = "\udce9"
        (tmp_path / "study.json").write_text(json.dumps(told))
        assert studies.skim(tmp_path / "study.json").trials[0].reason == "\udce9"


class Watched:
    """What is read of a study, and how much of it is kept."""

    def __init__(self) -> None:
        self.fields: Counter[object] = Counter()
        self.letters = 0
        self.most = 0
        self._alive: weakref.WeakSet[Any] = weakref.WeakSet()

    def noted(self, kind: object, text: Any) -> None:
        self.fields[kind] += 1
        self.letters += len(memoryview(text))

    def kept(self, events: Any) -> Any:
        # By themselves: a set would ask whether they are equal.
        self._alive.add(_Mark(events))
        self.most = max(self.most, len(self._alive))
        return events


class _Mark:
    """Lives as long as some events do."""

    def __init__(self, events: Any) -> None:
        vars(events)["_mark"] = self


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    seen = Watched()
    decode, events = skimmed.decode, skimmed._events

    def decoding(text: Any, kind: Any, complain: Any) -> Any:
        seen.noted(kind, text)
        return decode(text, kind, complain)

    def picking(text: Any, places: list[int]) -> Any:
        seen.noted("picked", text)
        return picked(text, places)

    monkeypatch.setattr(skimmed, "decode", decoding)
    monkeypatch.setattr(skimmed, "picked", picking)
    monkeypatch.setattr(skimmed, "_events", lambda *given: seen.kept(events(*given)))
    skimmed._read.cache_clear()
    yield seen
    skimmed._read.cache_clear()


def reported(folder: Path, trials: int, watched: Watched) -> int:
    """Makes the report by the command, and returns how large the study was."""
    path = study.save(large_study(trials, STEPS, random.Random(0)), folder)
    watched.__init__()  # type: ignore[misc]
    assert main(["report", str(path), "--html", str(folder / "page.html")]) == 0
    return path.stat().st_size


class TestALargeStudy:
    def test_each_column_is_read_once(self, tmp_path: Path, watched: Watched) -> None:
        """However often a page asks, and for more trials than any search had yet."""
        few, many = 40, 340
        reported(tmp_path, few, watched)
        before = watched.fields.copy()
        size = reported(tmp_path, many, watched)
        more = {what: watched.fields[what] - before[what] for what in watched.fields}
        # Kind, key and n of each further trial; its times at the ends of steps, and of batches.
        assert {what for what, count in more.items() if count > 0} == {list[int], "picked"}
        assert more["picked"] == 2 * (many - few) and more[list[int]] <= 3 * (many - few)
        assert 0 < watched.letters < size

    def test_samples_of_few_trials_are_kept_at_a_time(
        self, tmp_path: Path, watched: Watched
    ) -> None:
        reported(tmp_path, 60, watched)
        assert 0 < watched.most <= skimmed.AT_ONCE + 1

    def test_the_data_itself_is_checked_as_a_whole(
        self, tmp_path: Path, watched: Watched, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = spoilt(tmp_path, ("losses", "value"), "soon")
        assert main(["report", str(path), "--json"]) == StudyUnreadable.exit_code
        assert "losses.value" in capsys.readouterr().err and not watched.fields

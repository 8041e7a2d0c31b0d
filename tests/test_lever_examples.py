"""Of every optimisation there is a job on which it wins, and one on which it is refused."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import lever_examples
import pytest
from lever_examples import EXAMPLES, Example, command_of

from hotloop import codec
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import diagnose
from hotloop.figures import figures
from hotloop.levers.registry import LEVERS
from hotloop.optimization import OUT_OF_TIME
from hotloop.profiling import looked_into
from hotloop.study import NO_TIME, Options, Study
from hotloop.workshop.promising import promising
from hotloop.workshop.refusals import NOT_EXAMINED
from tests.sources import ROOT

KEPT = json.loads((ROOT / "benchmarks" / "results" / "lever-examples-cpu.json").read_text())
NEEDS_TWO_NODES = {("affinity", True)}

THREE = "tf32,compile,shape_padding"
TF32 = Example("tf32", True, "job.py", only=THREE)
PADDING = Example("shape_padding", False, "job.py", only="compile,tf32")
OTHER = Example("threads", True, "other.py")


def test_every_optimisation_has_both() -> None:
    wanted = {(lever, wins) for lever in LEVERS for wins in (True, False)}
    assert {(one.lever, one.wins) for one in EXAMPLES} == wanted - NEEDS_TWO_NODES


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.where == "cpu"], ids=lambda example: example.key
)
def test_what_was_kept_of_those_for_a_cpu_is_as_said(example: Example) -> None:
    kept = KEPT[example.key]
    assert kept["as_said"] and (example.lever in kept["kept"]) == example.wins
    assert (kept["job"], kept["options"]) == (example.job, example.options)
    assert example.wins or kept["refused"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.key)
def test_a_search_may_try_the_optimisation_and_those_beside_it(example: Example) -> None:
    beside = example.only.split(",") if example.only else []
    assert {*example.names.split(",")} == {example.lever, *beside} <= {*LEVERS}


def test_those_that_share_a_well_tuned_job_are_refused_there_by_what_an_h200_showed() -> None:
    """So that one search does for all of them: nothing is left to be proven beside."""
    record = ROOT / "tests" / "recordings" / "planted" / "control_gpu.json.gz"
    study = codec.decode(gzip.decompress(record.read_bytes()), Study)
    timed, looked = study.trials[0], looked_into(study)
    assert timed.measurement is not None and looked is not None
    found = figures(timed.measurement)
    assert found is not None
    case = case_of(timed.measurement, found, study.machine, looked, study.roof, timed)
    shared = [one for one in EXAMPLES if one.job == lever_examples.WELL_TUNED]
    assert len({command_of(one, 20) for one in shared}) == 1
    options = Options(only=tuple(shared[0].names.split(",")))
    offered, refused = promising(
        timed.measurement,
        found,
        study.machine.cores,
        options,
        diagnose(case),
        looked.inspection,
        study.machine,
    )
    assert not offered
    assert {one.lever for one in shared} <= {one.lever for one in refused}
    assert not any(one.wins for one in shared)


def test_the_order_of_names_does_not_matter() -> None:
    assert TF32.names == PADDING.names == THREE
    assert command_of(TF32, 20) == command_of(PADDING, 20)


@pytest.mark.parametrize(
    "other",
    [
        Example("tf32", True, "job.py", only="compile"),
        Example("tf32", True, "job.py --wide", only=THREE),
        Example("tf32", True, "job.py", only=THREE, options="--objective memory"),
    ],
    ids=["names", "job", "options"],
)
def test_another_search_is_another_command(other: Example) -> None:
    assert command_of(other, 20) != command_of(TF32, 20)


def answer(plan: dict[str, float], refused: dict[str, str]) -> CompletedProcess[str]:
    """`plan`: what is kept, and the gain of each."""
    told = {
        "plan": {"levers": [{"lever": lever} for lever in plan]} if plan else None,
        "ratio": {"ratio": 2.0, "low": 1.9, "high": 2.1, "pairs": 5} if plan else None,
        "ladder": [
            {"lever": lever, "gain": {"ratio": gain, "low": gain, "high": gain}}
            for lever, gain in plan.items()
        ],
        "verdict": "so it is",
        "refused": [
            {"lever": lever, "reason": reason, "tried": True} for lever, reason in refused.items()
        ],
    }
    return CompletedProcess([], 0, json.dumps(told), "")


FAILURE = CompletedProcess[str]([], 3, "", "starting\n" * 99 + "There is no such job.\n")
KEEPS_TF32 = answer({"tf32": 1.5, "compile": 1.2}, {"shape_padding": "no gain"})
KEEPS_THREADS = answer({"threads": 2.0}, {})


@dataclass
class Searches:
    """In place of real ones: what those of each job come to, and the commands that were run."""

    answers: dict[str, CompletedProcess[str]]
    commands: list[Sequence[str]] = field(default_factory=list)

    def execute(self, command: Sequence[str], folder: Path) -> CompletedProcess[str]:
        self.commands.append(command)
        study = folder / ".hotloop" / "a-study" / "study.json"
        study.parent.mkdir(parents=True)
        study.write_text(json.dumps({"machine": {"system": "Linux 6"}, "cwd": str(folder)}))
        return self.answers[self.jobs[-1]]

    @property
    def jobs(self) -> list[str]:
        return [Path(command[-1]).name for command in self.commands]


Examine = Callable[..., tuple[dict[str, Any], int]]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    fake = Searches({"job.py": KEEPS_TF32, "other.py": KEEPS_THREADS})
    monkeypatch.setattr(lever_examples, "execute", fake.execute)
    monkeypatch.setattr(lever_examples, "EXAMPLES", (TF32, OTHER, PADDING))
    return fake


@pytest.fixture
def examine(searches: Searches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """The whole script with these words: what it keeps, and its exit status."""
    results = tmp_path / "results.json"

    def examine(*words: str) -> tuple[dict[str, Any], int]:
        monkeypatch.setattr(sys, "argv", ["lever_examples.py", "--out", str(results), *words])
        with pytest.raises(SystemExit) as end:
            lever_examples.main()
        return json.loads(results.read_text()), int(end.value.code or 0)

    return examine


def test_examples_of_one_command_share_a_search_and_are_judged_each_by_itself(
    searches: Searches, examine: Examine
) -> None:
    kept, status = examine()
    assert searches.jobs == ["job.py", "other.py"]
    assert status == 0 and all(one["as_said"] for one in kept.values())
    tf32, padding = kept[TF32.key], kept[PADDING.key]
    assert tf32["only"] == padding["only"] == THREE
    assert (tf32["own"]["ratio"], tf32["refused"]) == (1.5, "")
    assert (padding["own"], padding["refused"]) == (None, "no gain")


def test_one_of_those_that_share_a_search_can_be_not_as_said(
    searches: Searches, examine: Examine
) -> None:
    searches.answers["job.py"] = answer({"tf32": 1.5, "shape_padding": 1.1}, {})
    kept, status = examine()
    assert (kept[TF32.key]["as_said"], kept[PADDING.key]["as_said"]) == (True, False)
    assert status == 1


def test_what_a_result_is_made_of_is_as_in_those_kept_before(examine: Examine) -> None:
    before = next(iter(KEPT.values()))
    assert {*examine()[0][TF32.key]} == {*before, "only"}


def test_what_was_found_is_not_searched_again(searches: Searches, examine: Examine) -> None:
    assert examine() == examine()
    assert len(searches.commands) == 2


def test_an_example_that_is_another_one_now_is_searched_again(
    searches: Searches, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    examine("threads")
    other = Example("threads", True, "other.py --wide")
    searches.answers["--wide"] = KEEPS_THREADS
    monkeypatch.setattr(lever_examples, "EXAMPLES", (other,))
    kept, _ = examine("threads")
    assert searches.jobs == ["other.py", "--wide"]
    assert kept[other.key]["job"] == other.job


def test_one_that_is_missing_is_judged_without_those_it_shares_a_search_with(
    searches: Searches, examine: Examine
) -> None:
    first, _ = examine("tf32")
    searches.answers["job.py"] = answer({}, {"tf32": "worse", "shape_padding": "worse"})
    then, _ = examine("tf32", "shape_padding")
    assert searches.jobs == ["job.py", "job.py"]
    assert then[TF32.key] == first[TF32.key] and then[PADDING.key]["refused"] == "worse"


def test_a_search_that_fails_stops_no_other_and_is_run_again(
    searches: Searches, examine: Examine, capsys: pytest.CaptureFixture[str]
) -> None:
    searches.answers["job.py"] = FAILURE
    kept, status = examine()
    assert searches.jobs == ["job.py", "other.py"]
    assert status == 1 and kept[OTHER.key]["as_said"]
    for failed in (kept[TF32.key], kept[PADDING.key]):
        assert failed.keys() == {"as_said", "error"} and not failed["as_said"]
        assert failed["error"].endswith("There is no such job.")
        assert failed["error"].count("\n") < 20
    assert "There is no such job." in capsys.readouterr().out

    searches.answers["job.py"] = KEEPS_TF32
    kept, status = examine()
    assert searches.jobs == ["job.py", "other.py", "job.py"]
    assert status == 0 and "error" not in kept[TF32.key] and "error" not in kept[PADDING.key]


def test_one_that_fails_without_a_word_is_told_by_its_status(
    searches: Searches, examine: Examine
) -> None:
    searches.answers["other.py"] = CompletedProcess([], -9, "", "")
    assert examine("threads")[0] == {OTHER.key: {"as_said": False, "error": "exit status -9"}}


@pytest.mark.parametrize("reason", [NO_TIME, NOT_EXAMINED])
def test_what_no_time_was_left_for_is_not_refused(
    reason: str, searches: Searches, examine: Examine
) -> None:
    searches.answers["job.py"] = answer({"tf32": 1.5}, {"shape_padding": reason})
    kept, status = examine()
    assert not kept[PADDING.key]["as_said"] and status == 1


@pytest.mark.parametrize(("verdict", "refused"), [(OUT_OF_TIME, ""), ("so it is", NO_TIME)])
def test_what_a_budget_cut_short_is_searched_again_and_what_lost_is_not(
    verdict: str, refused: str, searches: Searches, examine: Examine
) -> None:
    told = json.loads(answer({}, {"tf32": refused or "worse"}).stdout) | {"verdict": verdict}
    searches.answers["job.py"] = CompletedProcess([], 0, json.dumps(told), "")
    examine("tf32")
    searches.answers["job.py"] = answer({}, {"tf32": "worse"})
    kept, status = examine("tf32")
    assert searches.jobs == ["job.py", "job.py"]
    assert kept[TF32.key]["refused"] == "worse" and status == 1
    examine("tf32")
    assert len(searches.jobs) == 2


def test_after_the_time_that_there_is_no_search_is_begun(
    searches: Searches, examine: Examine, capsys: pytest.CaptureFixture[str]
) -> None:
    examine("tf32")
    kept, status = examine("--within", "-1")
    assert searches.jobs == ["job.py"] and {*kept} == {TF32.key} and status == 1
    told = capsys.readouterr().out
    assert "left for another time: 2 searches" in told  # one was kept alone, and is shared
    kept, status = examine("--within", "600")
    assert {*kept} == {TF32.key, OTHER.key, PADDING.key} and status == 0


def test_a_budget_is_handed_on(searches: Searches, examine: Examine) -> None:
    examine("threads", "--budget", "4m")
    command = searches.commands[0]
    assert command[command.index("--budget") + 1] == "4m"
    assert "--budget" not in command_of(OTHER, 20)


def test_each_search_is_told_with_its_time(
    searches: Searches, examine: Examine, capsys: pytest.CaptureFixture[str]
) -> None:
    examine()
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("searched ")]
    assert len(told) == len(searches.commands)
    assert all(re.search(r": [\d.]+ (µs|ms|s)$", line) for line in told)


def test_a_study_of_each_search_is_kept_without_the_paths_of_this_machine(
    examine: Examine, tmp_path: Path
) -> None:
    examine("--keep", str(tmp_path / "studies"))
    kept = {one.name: one for one in (tmp_path / "studies").iterdir()}
    assert kept.keys() == {"tf32-wins-cpu.study.json.gz", "threads-wins-cpu.study.json.gz"}
    study = json.loads(gzip.decompress(kept["tf32-wins-cpu.study.json.gz"].read_bytes()))
    assert study == {"machine": {"system": "Linux"}, "cwd": "/project"}

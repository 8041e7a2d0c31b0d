"""`hotloop optimize` on a real script: to the end, stopped, resumed, refused."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.e2e.conftest import TORCH, Desk, Ended, until

pytestmark = pytest.mark.e2e

LOADER_BOUND = (
    TORCH
    + """\
import time
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 101
    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.full((4,), index / 101.0)

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Slow(), batch_size=4, shuffle=True)
for epoch in range(int(sys.argv[1])):
    for x in loader:
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
)
JOB = ("train.py", "1000")
QUICK = ("--steps", "20", "--only", "loader_workers")
"""The shortest search there is."""
MINE = '{"mine": true}'


class Story:
    """One search that is stopped twice, each time otherwise, and in the end comes to a plan."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.survivors: list[list[str]] = []
        desk.write(LOADER_BOUND)
        desk.write(MINE, "hotloop.json")
        before = desk.files()
        self.dry = desk.hotloop("optimize", "--dry-run", "--json", *QUICK, *JOB)
        self.after_dry = desk.study()["trials"]
        self.killed = self._stopped(signal.SIGKILL, in_trial=3)
        self.after_kill = desk.study()["trials"]
        self.interrupted = self._stopped(signal.SIGINT, in_trial=4)
        self.after_interrupt = desk.study()["trials"]
        self.ended = desk.hotloop("optimize", "--resume", "--json", *QUICK, *JOB)
        self.survivors += desk.survivors()
        self.trials = desk.study()["trials"]
        self.files_are_as_before = desk.files() == before
        (self.folder,) = desk.project.glob(".hotloop/train-*")

    @property
    def told(self) -> Any:
        return json.loads(self.ended.out)

    @property
    def plan(self) -> str:
        return str(self.told["paths"]["plan"])

    def _stopped(self, how: signal.Signals, in_trial: int) -> Ended:
        process = self.desk.start("optimize", "--resume", *QUICK, *JOB)
        progress = f".hotloop/*/trial-{in_trial}/progress"
        until(lambda: any(int(one.read_text() or 0) for one in self.desk.project.glob(progress)))
        process.send_signal(how)
        ended = self.desk.finish(process)
        self.survivors += self.desk.survivors(seconds=4)
        return ended


@pytest.fixture(scope="module")
def story(shared_desk: Desk) -> Story:
    return Story(shared_desk)


def purposes(trials: Any) -> list[str]:
    return [trial["purpose"] for trial in trials]


def test_a_dry_run_times_the_script_looks_into_it_and_says_what_would_follow(story: Story) -> None:
    assert story.dry.code == 0, story.dry
    assert purposes(story.after_dry) == ["baseline", "look"]
    told = json.loads(story.dry.out)
    assert [one["lever"] for one in told["candidates"]] == ["loader_workers"]
    assert told["candidates"][0]["predicted"] > 0.3  # of a step, by the finding that it addresses
    assert told["outlook"]["runs"][0] > 1


def test_killed_in_a_trial_it_keeps_those_before(story: Story) -> None:
    assert story.killed.code == -signal.SIGKILL
    assert story.after_kill == story.after_dry


def test_interrupted_it_says_how_to_go_on(story: Story) -> None:
    assert story.interrupted.code == 130, story.interrupted
    assert purposes(story.after_interrupt) == ["baseline", "look", "screen"]
    folder = story.folder.relative_to(story.desk.project)
    again = f"hotloop optimize --resume {folder} {' '.join((*QUICK, *JOB))}\n"
    assert story.interrupted.err.endswith(f"To go on: {again}")


def test_however_it_was_stopped_no_process_is_left(story: Story) -> None:
    assert story.survivors == []


def test_resumed_it_proves_that_workers_help(story: Story) -> None:
    assert story.ended.code == 0, story.ended
    assert story.trials[:3] == story.after_interrupt
    told = story.told
    assert told["ratio"]["ratio"] > 1.3
    assert told["ratio"]["low"] > 1
    assert [one["lever"] for one in told["plan"]["levers"]] == ["loader_workers"]
    assert told["equivalence"]["same"]
    assert told["equivalence"]["forced"] > 0
    assert {"a second epoch", "the last, short batch"} <= {*told["soak"]["met"]}
    assert told["cost"]["runs"] == len(story.trials)


def test_what_is_large_is_gone_and_the_report_is_there(story: Story) -> None:
    assert not list(story.folder.rglob("*.pt"))
    assert not list(story.folder.glob("reference*"))
    assert "× faster" in (story.folder / "report.md").read_text()


def test_a_file_that_is_no_plan_is_not_overwritten(story: Story) -> None:
    assert story.files_are_as_before
    assert (story.desk.project / "hotloop.json").read_text() == MINE
    assert story.plan == str(story.folder / "hotloop.json")


def test_the_plan_trains_for_real(story: Story) -> None:
    ran = story.desk.hotloop("run", "--plan", story.plan, "train.py", "2")
    assert ran.code == 0, ran
    assert (story.desk.project / "model.pt").is_file()


def test_the_study_of_another_script_is_refused(story: Story) -> None:
    desk, before = story.desk, (story.folder / "study.json").read_bytes()
    desk.write(LOADER_BOUND, "other.py")
    named = desk.hotloop("optimize", "--resume", str(story.folder), "other.py", "1000")
    named.expect(98, "is of another job", "without --resume")
    newest = desk.hotloop("optimize", "--resume", "other.py", "1000")
    newest.expect(98, "no search of this job", "without --resume")
    assert (story.folder / "study.json").read_bytes() == before


def test_two_at_once_in_a_folder_are_one_too_many(desk: Desk) -> None:
    desk.write(LOADER_BOUND)
    process = desk.start("optimize", *QUICK, *JOB)
    until(lambda: list(desk.project.glob(".hotloop/*/trial-1")))
    second = desk.hotloop("optimize", *QUICK, *JOB)
    second.expect(97, f"Another hotloop (process {process.pid})", "--study")
    process.send_signal(signal.SIGTERM)
    assert desk.finish(process).code == 143


def test_a_budget_that_does_not_do_for_a_first_look(desk: Desk) -> None:
    desk.write(LOADER_BOUND)
    before = desk.files()
    ended = desk.hotloop("optimize", "--quiet", "--budget", "1s", *QUICK, *JOB)
    ended.expect(79, "could not even be measured", "--budget")
    desk.expect_clean(before)


def test_there_is_nothing_to_resume(desk: Desk) -> None:
    desk.write(LOADER_BOUND)
    ended = desk.hotloop("optimize", "--resume", *JOB)
    ended.expect(98, "no search of this job", "without --resume")


def test_an_optimisation_that_does_not_exist(desk: Desk) -> None:
    desk.write(LOADER_BOUND)
    ended = desk.hotloop("optimize", "--only", "nonsense", *JOB)
    ended.expect(80, "no optimisation nonsense", "loader_workers")
    assert not (desk.project / ".hotloop").exists()


def test_a_script_that_fails_shows_its_own_failure(desk: Desk) -> None:
    desk.write("import torch\nraise ValueError('of its own')\n")
    ended = desk.hotloop("optimize", "--quiet", "train.py")
    assert ended.code == 87, ended
    assert "ValueError: of its own" in ended.err
    assert not desk.survivors()

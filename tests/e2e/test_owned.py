"""Jobs that are described as a class, in real processes: the same commands, the same results."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.e2e.conftest import TORCH, Desk, Ended, chosen, cleared

pytestmark = pytest.mark.e2e

JOBS = (
    TORCH
    + """\
import hotloop
from torch import nn

class Good(hotloop.TrainingJob):
    batch_size = 8
    epochs = 30
    hidden = 4

    def model(self):
        return nn.Sequential(nn.Linear(4, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1))

    def data(self):
        return torch.randn(60, 4), torch.randn(60, 1)

    def loss(self, model, batch):
        x, y = batch
        return nn.functional.mse_loss(model(x), y)

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.01)

    def finished(self, trained):
        torch.save(trained.model.state_dict(), "model.pt")

class Detached(Good):
    def loss(self, model, batch):
        return super().loss(model, batch).detach()

class Raises(Good):
    def model(self):
        return {}["nothing"]

class OutOfMemory(Good):
    def loss(self, model, batch):
        raise torch.OutOfMemoryError("CUDA out of memory")
"""
)
WRONG = {
    "jobs.py:Detached": (100, "Detached.loss(model, batch) must return", "help("),
    "broken.py:Good": (100, "broken.py cannot be imported: NameError", "Correct it"),
    "jobs.py:Raises": (87, "failed before its first training step: KeyError", "Run it"),
    "jobs.py:OutOfMemory": (92, "memory was exhausted before its first", "smaller batch"),
    "missing.py:Good": (81, "There is no file missing.py", "check the path"),
    "jobs.py:": (80, "names no class", "jobs.py:MyJob"),
}


def write(desk: Desk) -> None:
    desk.write(JOBS, "jobs.py")
    desk.write("this_is_not_defined\n", "broken.py")


@pytest.fixture(scope="module")
def wrong(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    pool: ThreadPoolExecutor,
) -> dict[str, Future[Ended]]:
    def end(name: str) -> Ended:
        with cleared(tmp_path_factory.mktemp("desk")) as desk:
            write(desk)
            return desk.profile(*name.split())

    return {name: pool.submit(end, name) for name in chosen(request, "test_what_is_wrong", "name")}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, wrong: dict[str, Future[Ended]]) -> None:
    ended = wrong[name].result()
    ended.expect(*WRONG[name])
    assert ended.sentence.count(WRONG[name][2]) == 1  # its remedy is said once


@pytest.fixture
def described(desk: Desk) -> Desk:
    write(desk)
    return desk


def test_profiles_a_class_with_its_settings(described: Desk) -> None:
    ended = described.profile("--json", "--steps", "30", "jobs.py:Good", "hidden=9")
    assert ended.code == 0, ended
    found = json.loads(ended.out)
    assert found["inventory"]["models"][0]["parameters"] == 9 * 6 + 1
    assert found["inventory"]["loaders"][0]["batch_size"] == 8
    assert described.trial.parent.name.startswith("jobs-Good-")
    assert not (described.project / "model.pt").exists()


def test_runs_for_real_with_and_without_a_plan(described: Desk) -> None:
    plain = described.hotloop("run", "jobs.py:Good", "epochs=4")
    assert plain.code == 0, plain
    assert [line.split("  ")[0] for line in plain.out.splitlines()] == [
        f"epoch {number}" for number in range(1, 5)
    ]
    weights = saved(described)
    described.write(json.dumps(PLAN), "hotloop.json")
    planned = described.hotloop("run", "--plan", "hotloop.json", "jobs.py:Good", "epochs=4")
    assert planned.code == 0, planned
    assert losses(planned) == losses(plain)
    assert saved(described) == weights


PLAN = {"version": 1, "levers": [{"lever": "loader_workers", "setting": {"workers": 1}}]}


def saved(desk: Desk) -> bytes:
    path = desk.project / "model.pt"
    content = path.read_bytes()
    path.unlink()
    return content


def losses(ended: Ended) -> list[str]:
    return [line.split("  ")[3] for line in ended.out.splitlines()]


def test_a_wrong_job_that_is_run(described: Desk) -> None:
    ended = described.hotloop("run", "broken.py:Good")
    ended.expect(100, "broken.py cannot be imported: NameError", "Correct it")
    assert "this_is_not_defined" in ended.err.partition("hotloop: ")[0]  # its own traceback


def test_a_job_in_an_interpreter_that_does_not_have_hotloop(described: Desk) -> None:
    """As with pipx: only torch is there."""
    described.write(
        "import sys\n"
        "class Nowhere:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('hotloop', 'msgspec', 'rich', 'scipy'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Nowhere())\n",
        "../site/sitecustomize.py",
    )
    site, bare = described.base / "site", described.base / "python"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{described.executable}" "$@"\n')
    bare.chmod(0o755)
    ended = described.hotloop("run", "--python", str(bare), "jobs.py:Good", "epochs=2")
    assert ended.code == 0, ended
    assert ended.out.startswith("epoch 1")


def test_from_python(described: Desk) -> None:
    described.write(PROGRAM, "program.py")
    ended = described.call([described.executable, "program.py"])
    assert ended.code == 0, ended
    assert ended.out.splitlines()[-2:] == ["Mine: cannot find it", "trained 2"]


PROGRAM = """\
import hotloop
from jobs import Good

class Mine(Good):
    pass

if __name__ == "__main__":
    found = hotloop.profile(Good, steps=20, look=False, hidden=3)
    assert "<table>" in found._repr_html_()
    assert "jobs.py:Good" in str(found), str(found)
    assert found.study.trials[0].measurement.inventory.models[0].parameters == 19
    try:
        hotloop.optimize(Mine)
    except Exception as error:
        print("Mine:", "cannot find it" if "cannot find it" in error.sentence else error)
    Good.epochs = 2
    print("trained", len(hotloop.train(Good, quiet=True).epochs))
"""

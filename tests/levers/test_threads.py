from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.levers.threads import Threads
from hotloop.measurement import Software
from hotloop.plan import LeverSetting, Plan
from hotloop.planned import environment
from tests import builders

SCRIPT = """\
import json, sys, torch
from torch.utils.data import DataLoader, Dataset

class Told(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.tensor(float(torch.get_num_threads()))

torch.set_num_threads(int(sys.argv[1]))
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
there = []
for x in DataLoader(Told(), batch_size=2, num_workers=1):
    there += x.tolist()
    model(x[:, None]).mean().backward()
    optimizer.step()
print(json.dumps([torch.get_num_threads(), sorted(set(there))]))
"""


@pytest.fixture(autouse=True)
def put_back(jobs: Any) -> Iterator[None]:
    with jobs.switches_put_back():
        yield


def test_it_wins_over_what_the_script_sets(jobs: Any, torch: Any) -> None:
    lever = Threads(threads=3)
    torch.set_num_threads(2)
    with jobs.under(lever):
        assert torch.get_num_threads() == 3
        torch.set_num_threads(16)
        assert torch.get_num_threads() == 3
        jobs.train()
    torch.set_num_threads(2)  # and afterwards torch's own is back
    assert torch.get_num_threads() == 2
    assert lever.receipt().evidence == {"threads": 3, "wanted": 16}


def test_what_is_there_already_is_not_claimed(jobs: Any, torch: Any) -> None:
    torch.set_num_threads(2)
    lever = Threads(threads=2)
    with jobs.under(lever):
        jobs.train()
    assert lever.receipt().reason == "the job has 2 threads by itself"


def test_a_job_that_updates_its_weights_by_hand(jobs: Any, torch: Any) -> None:
    torch.set_num_threads(2)
    lever = Threads(threads=1)
    weights = torch.ones(3, requires_grad=True)
    with jobs.under(lever):
        weights.square().sum().backward()
    assert lever.receipt().evidence == {"threads": 1, "wanted": 2}
    again = Threads(threads=1)
    torch.set_num_threads(1)
    with jobs.under(again):
        weights.square().sum().backward()
    assert again.receipt().reason == "the job has 1 thread by itself"


def test_a_way_around_it_shows(jobs: Any, torch: Any) -> None:
    lever = Threads(threads=3)
    with jobs.under(lever):
        torch._C.set_num_threads(2)
        jobs.train()
    assert lever.receipt().reason == "torch computed with 2 threads all the same"


def test_other_threads_have_their_own_number(jobs: Any, torch: Any) -> None:
    """Torch's own that pins memory asks for one, for itself."""
    lever = Threads(threads=3)
    seen: list[int] = []

    def pin() -> None:
        torch.set_num_threads(1)
        seen.append(torch.get_num_threads())

    with jobs.under(lever):
        other = threading.Thread(target=pin)
        other.start()
        other.join()
        jobs.train()
    assert seen == [1]
    assert lever.receipt().evidence["threads"] == 3


def test_none_given_is_one_for_each_core(jobs: Any, torch: Any) -> None:
    with jobs.under(Threads()):
        assert torch.get_num_threads() == len(os.sched_getaffinity(0))


def test_the_variable_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Threads(threads=3).environment() == {}


@pytest.mark.e2e
@pytest.mark.parametrize("own", [1, 16])
def test_in_a_job_of_its_own_workers_keep_one(own: int, tmp_path: Path, torch: Any) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    plan = Plan((LeverSetting("threads", {"threads": 2}),))
    words = [sys.executable, str(script), str(own)]
    ended = subprocess.run(words, env=environment(plan, False), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [2, [1.0]]


def expected(jobs: Any, threads: int, workers: int, cores: int = 8, **known: Any) -> Any:
    seen = jobs.seen(cores, loaders=[builders.loader(workers=workers)], threads=threads)
    return Threads.expected(replace(seen, **known))


def test_what_it_expects_on_a_cpu(jobs: Any) -> None:
    computing = 0.8
    assert expected(jobs, 16, 0, cores=2).share == pytest.approx(computing * 0.8 * 7 / 8)
    assert expected(jobs, 1, 0, cores=2).share == pytest.approx(computing * 0.85 / 2)
    assert expected(jobs, 8, 8).share == pytest.approx(computing * 0.8 / 2)
    assert expected(jobs, 8, 0).reason == "torch computes with 8 threads on 8 cores already"
    assert "beside 2 workers" in expected(jobs, 8, 2).reason
    assert "beside 1 worker already" in expected(jobs, 1, 1, cores=1).reason
    assert "not known" in expected(jobs, 0, 0).reason


def test_two_cores_that_share_all_count_as_one(jobs: Any) -> None:
    assert expected(jobs, 4, 0).is_worth_trying
    assert expected(jobs, 4, 0, physical_cores=4).reason
    assert Threads.settings(replace(jobs.seen(8, threads=1), physical_cores=4)) == [
        {"threads": 2},
        {"threads": 4},
    ]


def test_on_a_gpu_only_loading_could_win(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    loads = [builders.loader(workers=0)]
    seen = jobs.seen(measurement=on_gpu, loaders=loads, threads=1)
    assert Threads.expected(seen).share == pytest.approx(0.2 * 0.85 * 7 / 8)
    phases = tuple(replace(one, share=0.0) for one in seen.figures.phases)
    idle = replace(seen, figures=replace(seen.figures, phases=phases))
    assert Threads.expected(idle).reason == "the GPU does the computing"
    assert "workers load" in Threads.expected(jobs.seen(measurement=on_gpu)).reason


def test_what_it_tries_is_not_what_is_there(jobs: Any) -> None:
    def tried(threads: int, workers: int) -> list[int]:
        loaders = [builders.loader(workers=workers)]
        seen = jobs.seen(8, loaders=loaders, threads=threads)
        return [one["threads"] for one in Threads.settings(seen)]

    assert tried(16, 4) == [4, 8]
    assert tried(8, 4) == [4]
    assert tried(8, 0) == []
    assert tried(8, 12) == [1]


def test_impossible_numbers_are_refused() -> None:
    assert "0 to 1024" in Threads(threads=-1).problem()

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.runtime import checkpoint
from hotloop.runtime.checkpoint import Parts


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state.pt")


def trained(torch: Any, jobs: Any, model: Any = None) -> Parts:
    model = jobs.Net() if model is None else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    jobs.train(model, 3, optimizer=optimizer)
    return Parts([model], [optimizer])


def test_a_state_comes_back_as_it_was(torch: Any, jobs: Any, path: str) -> None:
    there, here = trained(torch, jobs), trained(torch, jobs)
    assert checkpoint.save(torch, there, path) == ""
    assert checkpoint.load(torch, here, path) == ""
    for one, other in zip(there.models[0].parameters(), here.models[0].parameters(), strict=True):
        assert torch.equal(one, other)
    weight = next(here.models[0].parameters())
    moment = there.optimizers[0].state[next(there.models[0].parameters())]["exp_avg"]
    assert torch.equal(here.optimizers[0].state[weight]["exp_avg"], moment)


def test_a_state_is_what_plain_pytorch_would_read(torch: Any, jobs: Any, path: str) -> None:
    parts = trained(torch, jobs)
    checkpoint.save(torch, parts, path)
    state = torch.load(path)
    jobs.Net().load_state_dict(state["models"][0])
    assert len(state["optimizers"]) == 1


def test_optimizers_in_another_order_get_what_is_theirs(torch: Any, jobs: Any, path: str) -> None:
    def parts(turn: int) -> Parts:
        model = jobs.Net()
        weights = list(model.parameters())
        optimizers = [torch.optim.Adam([one]) for one in weights[turn:] + weights[:turn]]
        jobs.plain_loss(model, *jobs.batch()).backward()
        for optimizer in optimizers:
            optimizer.step()
        return Parts([model], optimizers)

    there, here = parts(0), parts(3)
    assert checkpoint.save(torch, there, path) == ""
    assert checkpoint.load(torch, here, path) == ""
    for optimizer in here.optimizers:
        ((weight, state),) = optimizer.state.items()
        assert state["exp_avg"].shape == weight.shape


def test_models_without_an_optimizer_have_a_state_and_optimizers_alone_have_none() -> None:
    assert Parts([object()], [])
    assert not Parts([], [object()])


class TestWhatDoesNotFit:
    def problem(self, torch: Any, jobs: Any, path: str, model: Any) -> str:
        assert checkpoint.save(torch, trained(torch, jobs), path) == ""
        return checkpoint.load(torch, trained(torch, jobs, model), path)

    def test_another_number_of_models(self, torch: Any, jobs: Any, path: str) -> None:
        one = trained(torch, jobs)
        checkpoint.save(torch, one, path)
        two = Parts([*one.models, jobs.Net()], one.optimizers)
        assert checkpoint.load(torch, two, path) == "the state has 1 models, the job 2"

    def test_other_names(self, torch: Any, jobs: Any, path: str) -> None:
        problem = self.problem(torch, jobs, path, torch.nn.Sequential(jobs.Net()))
        assert problem == (
            "body.0.weight of Sequential is float32 (4, 4) in the state, and not there in the job"
        )

    def test_another_shape(self, torch: Any, jobs: Any, path: str) -> None:
        problem = self.problem(torch, jobs, path, jobs.Net(width=5))
        assert "float32 (4, 4) in the state, and float32 (5, 4) in the job" in problem

    def test_another_format_which_pytorch_would_cast_in_silence(
        self, torch: Any, jobs: Any, path: str
    ) -> None:
        checkpoint.save(torch, trained(torch, jobs), path)
        model = jobs.Net().double()
        optimizer = torch.optim.AdamW(model.parameters())
        problem = checkpoint.load(torch, Parts([model], [optimizer]), path)
        assert "float32 (4, 4) in the state, and float64 (4, 4) in the job" in problem

    def test_another_optimizers_groups(self, torch: Any, jobs: Any, path: str) -> None:
        checkpoint.save(torch, trained(torch, jobs), path)
        model = jobs.Net()
        groups = [{"params": [weight]} for weight in model.parameters()]
        parts = Parts([model], [torch.optim.AdamW(groups)])
        assert "parameter group" in checkpoint.load(torch, parts, path)

    def test_a_file_that_is_not_there(self, torch: Any, jobs: Any, path: str) -> None:
        assert "could not be loaded" in checkpoint.load(torch, trained(torch, jobs), path)


def test_a_state_that_cannot_be_saved_is_a_sentence(torch: Any, jobs: Any, tmp_path: Path) -> None:
    class Stubborn(jobs.Net):  # type: ignore[misc]
        def state_dict(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("first line\n  second line")

    problem = checkpoint.save(torch, Parts([Stubborn()], []), str(tmp_path / "state.pt"))
    assert problem == "the state could not be saved: first line second line"

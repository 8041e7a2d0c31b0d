from __future__ import annotations

from typing import Any

import pytest

from hotloop.errors import JobInvalid
from hotloop.runtime.owned.loop import Epoch, Loop


def trained(torch: Any, kind: Any, **settings: Any) -> Any:
    job = kind()
    for name, value in settings.items():
        setattr(job, name, value)
    return Loop(torch, job).train()


def by_hand(torch: Any, owned: Any) -> list[Any]:
    """The loop that a user would write for `Plain`, without anything of ours."""
    job = owned.Plain()
    torch.manual_seed(0)
    x, y = job.data()
    torch.manual_seed(0)
    model = job.model()
    optimizer = job.optimizer(model.parameters())
    order = torch.Generator().manual_seed(0)
    for _ in range(job.epochs):
        for chosen in torch.randperm(len(x), generator=order).split(job.batch_size):
            optimizer.zero_grad()
            job.loss(model, (x[chosen], y[chosen])).backward()
            optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def test_trains_as_a_loop_by_hand_does(torch: Any, owned: Any) -> None:
    found = trained(torch, owned.Plain)
    for ours, theirs in zip(owned.weights(found), by_hand(torch, owned), strict=True):
        assert torch.equal(ours, theirs)


def test_trains_the_same_every_time(torch: Any, owned: Any) -> None:
    once, again = (owned.weights(trained(torch, owned.Plain)) for _ in range(2))
    other = owned.weights(trained(torch, owned.Plain, seed=1))
    assert all(map(torch.equal, once, again))
    assert not torch.equal(once[0], other[0])


@pytest.mark.parametrize("kind", ["Plain", "Tokens"])
@pytest.mark.parametrize("size", [1, 3, 4, 7])
def test_microbatches_train_as_the_whole_batch_does(
    kind: str, size: int, torch: Any, owned: Any
) -> None:
    whole = owned.weights(trained(torch, getattr(owned, kind)))
    split = owned.weights(trained(torch, getattr(owned, kind), microbatch=size))
    for one, other in zip(whole, split, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_epochs_are_counted_and_told(torch: Any, owned: Any) -> None:
    told: list[Epoch] = []
    found = Loop(torch, owned.Plain()).train(told.append)
    assert told == found.epochs
    assert [(epoch.number, epoch.steps) for epoch in told] == [(1, 7), (2, 7)]
    assert all(epoch.seconds > 0 and epoch.loss > 0 for epoch in told)


def test_evaluation_changes_nothing(torch: Any, owned: Any) -> None:
    seen: list[tuple[bool, bool]] = []

    class Evaluated(owned.Plain):  # type: ignore[misc]
        def evaluate(self, model: Any) -> Any:
            seen.append((model.training, torch.is_grad_enabled()))
            return 0.5

    found = trained(torch, Evaluated)
    assert seen == [(False, False)] * 2
    assert [epoch.evaluation for epoch in found.epochs] == [0.5, 0.5]
    assert found.model.training
    assert torch.equal(owned.weights(found)[0], owned.weights(trained(torch, owned.Plain))[0])


def test_the_end_is_told(torch: Any, owned: Any) -> None:
    class Kept(owned.Plain):  # type: ignore[misc]
        def finished(self, trained: Any) -> None:
            self.kept = trained

    job = Kept()
    assert Loop(torch, job).train() is job.kept


def test_a_schedule_steps_with_the_optimizer(torch: Any, owned: Any) -> None:
    class Scheduled(owned.Plain):  # type: ignore[misc]
        def schedule(self, optimizer: Any) -> Any:
            return torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    found = trained(torch, Scheduled, epochs=1)
    assert found.optimizer.param_groups[0]["lr"] == pytest.approx(0.05 * 0.5**7)


def test_gradients_are_clipped(torch: Any, owned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    norms: list[float] = []
    original = torch.nn.utils.clip_grad_norm_

    def clip(parameters: Any, most: float) -> Any:
        original(parameters, most)
        norms.append(float(torch.nn.utils.get_total_norm([p.grad for p in parameters])))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)
    trained(torch, owned.Plain, max_grad_norm=0.01, microbatch=3)
    assert len(norms) == 14
    assert max(norms) < 0.0101


def test_products_in_bfloat16(torch: Any, owned: Any) -> None:
    seen = []

    class Watched(owned.Plain):  # type: ignore[misc]
        def loss(self, model: Any, batch: Any) -> Any:
            x, y = batch
            out = model(x)
            seen.append(out.dtype)
            return (out - y).square().mean()

    found = trained(torch, Watched, precision="bfloat16")
    assert set(seen) == {torch.bfloat16}
    assert {weight.dtype for weight in owned.weights(found)} == {torch.float32}


def test_float16_trains_with_a_scaler(torch: Any, owned: Any) -> None:
    scaled = []

    class Watched(owned.Tokens):  # type: ignore[misc]
        def optimizer(self, parameters: Any) -> Any:
            scaled.append(parameters[0])
            return super().optimizer(parameters)

        def loss(self, model: Any, batch: Any) -> Any:
            if scaled[0].grad is not None:  # of the part before
                scaled.append(scaled[0].grad.abs().max())
            return super().loss(model, batch)

    half = owned.weights(trained(torch, Watched, precision="float16", microbatch=3))
    full = owned.weights(trained(torch, owned.Tokens))
    assert max(scaled[1:]) > 100
    for one, other in zip(half, full, strict=True):
        torch.testing.assert_close(one, other, rtol=0.1, atol=0.02)


def test_an_iterable_makes_its_own_batches(torch: Any, owned: Any) -> None:
    class Batches(owned.Plain):  # type: ignore[misc]
        def data(self) -> Any:
            return [(torch.ones(8, 4), torch.ones(8, 1))] * 3

    assert trained(torch, Batches).epochs[0].steps == 3
    with pytest.raises(JobInvalid, match="yields batches of 8 samples, but batch_size is 16"):
        trained(torch, Batches, batch_size=16)


def test_without_data_there_is_nothing_to_train(torch: Any, owned: Any) -> None:
    with pytest.raises(JobInvalid, match="holds no batch"):
        trained(torch, owned.Plain, batch_size=64, drop_last=True)

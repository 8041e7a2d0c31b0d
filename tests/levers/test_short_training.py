"""A short training as tutorials write it, under all at once that makes such a one fast.

Where there is no GPU other recorders stand in for CUDA's, and nothing is pinned.
"""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.levers.base import Lever
from hotloop.levers.cache_dataset import CacheDataset
from hotloop.levers.device_prefetch import DevicePrefetch
from hotloop.levers.model_graph import ModelGraph
from hotloop.levers.update_graph import UpdateGraph
from tests.levers.model_graphs import ModelGraphOnCpu
from tests.levers.test_update_graph import UpdateGraphOnCpu

PICTURES, BATCH, EPOCHS = 100, 16, 4
"""The last batch of an epoch is a short one."""


@pytest.fixture
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


def trained(torch: Any, device: str, dropout: float) -> tuple[list[float], list[Any], set[bool]]:
    """Losses and weights; and whether the batches were pinned."""
    nn, F = torch.nn, torch.nn.functional

    class Pictures(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
        def __init__(self, count: int) -> None:
            self.made = torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(count))

        def __len__(self) -> int:
            return len(self.made)

        def __getitem__(self, index: int) -> Any:
            return self.made[index] - 0.5, index % 3

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(1, 4, 3)
            self.dropout = nn.Dropout(dropout)
            self.linear = nn.Linear(36, 3)

        def forward(self, x: Any) -> Any:
            x = F.max_pool2d(F.relu(self.convolution(x)), 2)
            return F.log_softmax(self.linear(self.dropout(x.flatten(1))), dim=1)

    torch.manual_seed(1)
    how = {"num_workers": 1, "persistent_workers": True, "shuffle": True}
    how["pin_memory"] = device == "cuda"
    loader = torch.utils.data.DataLoader(Pictures(PICTURES), batch_size=BATCH, **how)
    others = torch.utils.data.DataLoader(Pictures(40), batch_size=20, **how)
    model = Net().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    losses, pinned = [], set()
    for _ in range(EPOCHS):
        model.train()
        for step, (x, y) in enumerate(loader):
            pinned.add(device == "cuda" and x.is_pinned())
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 3 == 0:
                losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            for x, y in others:
                losses.append(F.nll_loss(model(x.to(device)), y.to(device)).item())
        schedule.step()
    return losses, [p.detach().clone() for p in model.parameters()], pinned


def receipts(*levers: Lever) -> dict[str, dict[str, Any]]:
    found = [lever.receipt() for lever in levers]
    assert [one.reason for one in found] == [""] * len(found)
    return {one.lever: one.evidence for one in found}


def test_the_same_training(jobs: Any, torch: Any) -> None:
    losses, weights, _ = trained(torch, "cpu", dropout=0.25)
    levers = CacheDataset(), ModelGraphOnCpu(), UpdateGraphOnCpu()
    with jobs.under(*levers):
        found = trained(torch, "cpu", dropout=0.25)
    assert found[0] == pytest.approx(losses, rel=1e-4)
    torch.testing.assert_close(found[1], weights, rtol=1e-3, atol=1e-5)
    told = receipts(*levers)
    assert told["cache_dataset"]["datasets"] == 2 and told["cache_dataset"]["workers_spared"] == 1
    # An epoch has six whole batches. Of the first some go by until all is recorded.
    assert told["model_graph"]["other_shapes"] == EPOCHS
    assert told["model_graph"]["replays"] >= 2 * (6 * EPOCHS - 5)
    assert told["update_graph"]["updates"] >= 6 * EPOCHS - 8


@pytest.mark.gpu
@pytest.mark.parametrize("ahead", [False, True], ids=["as it is", "copied ahead"])
def test_on_a_gpu(jobs: Any, torch: Any, ahead: bool) -> None:
    """Without dropout: replayed passes may draw other masks."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    levers: tuple[Lever, ...] = (CacheDataset(), ModelGraph(), UpdateGraph())
    levers = (DevicePrefetch(), *levers) if ahead else levers
    with jobs.precision_put_back():
        torch.backends.cudnn.allow_tf32 = False
        losses, weights, pinned = trained(torch, "cuda", dropout=0.0)
        with jobs.under(*levers):
            found = trained(torch, "cuda", dropout=0.0)
    assert found[0] == pytest.approx(losses, rel=1e-2)
    torch.testing.assert_close(found[1], weights, rtol=1e-2, atol=1e-3)
    assert found[2] == pinned == {True}
    told = receipts(*levers)
    assert told["cache_dataset"]["workers_spared"] == 1
    assert told["model_graph"]["other_shapes"] == EPOCHS

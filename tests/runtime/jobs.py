"""Small training jobs, as scripts write them. Imports torch: tests get this as a fixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hotloop.measurement import Inventory, Kind, Losses
from hotloop.runtime.watching import Watch

STEPS = 8
"""More than discovery takes."""


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


class Task(nn.Module):  # type: ignore[misc]
    """A model together with its loss, as transformers have it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.criterion = nn.MSELoss()

    def forward(self, x: Any, y: Any) -> Any:
        return self.criterion(self.model(x), y)


class OwnCall(Net):
    """Does something of its own around every call."""

    calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return super().__call__(*args, **kwargs)


class Tree(nn.Module):  # type: ignore[misc]
    """A module of modules of its own class."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.below = Tree(depth - 1) if depth else None

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.linear(x))
        return x if self.below is None else self.below(x)


class Transformed(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """A dataset that runs a module on each item, as torchvision's transforms are run."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> Any:
        with torch.no_grad():
            return self.transform(torch.full((4,), float(index))), torch.ones(1)


def batch(size: int = 6) -> tuple[Any, Any]:
    return torch.randn(size, 4), torch.randn(size, 1)


def sgd(*models: Any) -> Any:
    return torch.optim.SGD([p for model in models for p in model.parameters()], lr=0.01)


def train(
    model: Any,
    steps: int = STEPS,
    loss_of: Callable[[Any, Any, Any], Any] | None = None,
    optimizer: Any = None,
) -> None:
    optimizer = optimizer or sgd(model)
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        loss = (loss_of or plain_loss)(model, x, y)
        loss.backward()
        optimizer.step()


def plain_loss(model: Any, x: Any, y: Any) -> Any:
    return (model(x) - y).square().mean()


def loader(dataset: Any = None, size: int = 4, **options: Any) -> Any:
    if dataset is None:
        dataset = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    return torch.utils.data.DataLoader(dataset, batch_size=size, **options)


def train_on(loader: Any, model: Any, loss_of: Callable[..., Any] = plain_loss) -> None:
    optimizer = sgd(model)
    for x, y in loader:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


def seen(watch: Watch) -> Counter[Kind]:
    return Counter(Kind(kind) for kind in watch.clock.events.kind)


def found(watch: Watch) -> Inventory:
    return watch.inventory.inventory(watch.clock.events)


def losses(watch: Watch) -> Losses:
    return watch.loss.losses(watch.clock.events)


def roots(watch: Watch) -> list[Any]:
    return [known() for known in watch.driver.roots.roots]

"""Small jobs to try levers on, and what is known of one. Imports torch: tests import this late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from hotloop.levers import graphs
from hotloop.levers.base import Lever
from hotloop.runtime.script import ScriptDriver
from hotloop.seams import Seams

ITEMS = 24


@contextmanager
def under(*levers: Lever) -> Iterator[Seams]:
    """The levers, applied as they are in a job's process; torch is put back afterwards."""
    seams = Seams()
    for lever in levers:
        lever.apply(torch, seams)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    try:
        yield seams
    finally:
        driver.detach()


def rewritten(lever: Lever, function: Any, **how: Any) -> Any:
    """Compiled, with the lever seeing its graphs; where things are to be quick, as captured."""
    with under(lever) as seams:
        backend = graphs.Backend(torch, "default", None, seams.captured)
    return torch.compile(function, backend=backend, **how)


@contextmanager
def switches_put_back() -> Iterator[None]:
    """Around levers that change torch's threads, its convolutions or its attention at once."""
    threads, benchmark = torch.get_num_threads(), torch.backends.cudnn.benchmark
    names = ("flash_sdp", "mem_efficient_sdp", "cudnn_sdp")
    were = {name: getattr(torch.backends.cuda, f"{name}_enabled")() for name in names}
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = benchmark
        for name, was in were.items():
            getattr(torch.backends.cuda, f"enable_{name}")(was)


@contextmanager
def precision_put_back() -> Iterator[None]:
    """Around levers that change torch's global settings at once."""
    owners = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [owner.allow_tf32 for owner in owners]
    try:
        yield
    finally:
        for owner, value in zip(owners, before, strict=True):
            owner.allow_tf32 = value


class Numbers(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """A dataset without randomness of its own."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index)) / ITEMS, torch.tensor([index / ITEMS])


class Stream(torch.utils.data.IterableDataset[Any]):  # type: ignore[misc]
    def __iter__(self) -> Iterator[Any]:
        numbers = Numbers()
        return (numbers[index] for index in range(ITEMS))


def loader(dataset: Any = None, **options: Any) -> Any:
    return torch.utils.data.DataLoader(dataset or Numbers(), batch_size=4, **options)


def network() -> Any:
    """With dropout: a random stream that is out of step shows in the losses."""
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 1))


def train(
    kind: str = "AdamW",
    epochs: int = 2,
    shuffle: bool = True,
    loading: dict[str, Any] | None = None,
    scaler: Any = None,
    **options: Any,
) -> list[float]:
    """An ordinary loop, whole, from the seed to its losses."""
    torch.manual_seed(7)
    model = network()
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options)
    batches = loader(shuffle=shuffle, **(loading or {}))
    losses = []
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            if scaler is None:
                loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            losses.append(loss.item())
    return losses


def order(batches: Any) -> list[list[int]]:
    """Which items each batch of a pass holds."""
    return [(y * ITEMS).round().int().flatten().tolist() for _, y in batches]


def seen(cores: int = 8, measurement: Any = None, **changes: Any) -> Any:
    """What is known of an ordinary job. `changes` are to its inventory."""
    from hotloop.figures import figures, training_loader
    from hotloop.levers.base import Seen
    from tests import builders

    made = measurement or builders.measurement()
    made = replace(made, inventory=replace(made.inventory, **changes))
    known = figures(made)
    assert known is not None
    return Seen(made, known, training_loader(made), cores)


def losses(model: nn.Module, sizes: tuple[int, ...], *levers: Lever) -> list[float]:
    """Of a few steps towards small outputs, on random inputs of these sizes."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    found = []
    with under(*levers):
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(torch.randn(sizes)).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found

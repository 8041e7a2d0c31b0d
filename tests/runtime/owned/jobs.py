"""Small jobs, as users describe them. Imports torch: tests get this as a fixture."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hotloop.training_job import TrainingJob

SAMPLES = 50


class Plain(TrainingJob):
    """A regression on tensors, with a short last batch."""

    batch_size = 8
    epochs = 2

    def model(self) -> Any:
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def data(self) -> Any:
        x = torch.randn(SAMPLES, 4)
        return x, x.sum(1, keepdim=True)

    def loss(self, model: Any, batch: Any) -> Any:
        x, y = batch
        return (model(x) - y).square().mean()

    def optimizer(self, parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


class Tokens(Plain):
    """Sequences of different lengths, padded: a sample counts by its tokens."""

    def model(self) -> Any:
        return nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11))

    def data(self) -> Any:
        words = torch.randint(1, 11, (SAMPLES, 7))
        lengths = torch.randint(1, 8, (SAMPLES, 1))
        return {"words": torch.where(torch.arange(7) < lengths, words, 0)}

    def loss(self, model: Any, batch: Any) -> Any:
        words = batch["words"]
        logits, wanted = model(words[:, :-1]), words[:, 1:]
        summed = nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), ignore_index=0, reduction="sum"
        )
        return summed, (wanted != 0).sum()


class Squares(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), index / SAMPLES), torch.tensor([float(index)])


class Stream(torch.utils.data.IterableDataset[Any]):  # type: ignore[misc]
    def __iter__(self) -> Any:
        squares = Squares()
        return (squares[index] for index in range(SAMPLES))


def weights(trained: Any) -> list[Any]:
    return [parameter.detach().clone() for parameter in trained.model.parameters()]

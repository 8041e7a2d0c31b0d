"""The microbatch MLP: a batch that goes through in many tiny passes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hotloop.workloads.common import Workload
from hotloop.workloads.encoded import Encoded


def shaken(point: Any, label: Any) -> Any:
    return point.float() + 0.1 * torch.randn(point.shape), label


class MicrobatchMlp(Workload):
    """64 passes of 32 samples to one step, as if 2048 did not fit."""

    batch_size = 2048
    microbatch = 32
    epochs = 1000
    features = 256
    hidden = 256
    classes = 16
    pool = 16384
    lr = 0.05

    def model(self) -> Any:
        first, last = nn.Linear(self.features, self.hidden), nn.Linear(self.hidden, self.classes)
        return self.built(nn.Sequential(first, nn.ReLU(), last))

    def data(self) -> Any:
        """Clouds of points around as many centres as there are classes."""
        centres = torch.randn(self.classes, self.features)
        labels = torch.randint(self.classes, (self.pool,))
        points = centres[labels] + 2 * torch.randn(self.pool, self.features)
        if self.decode:
            return Encoded((points.half(), labels), self.pool, shaken)
        return self.number(points.to(self.place)), labels.to(self.place)

    def loss(self, model: Any, batch: Any) -> Any:
        x, y = batch
        return nn.functional.cross_entropy(model(x).float(), y)

    def optimizer(self, parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=0.9)

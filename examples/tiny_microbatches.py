"""A job that is described, not scripted: an MLP whose batch of 2048 goes through in passes of 32.

    hotloop optimize examples/tiny_microbatches.py:TinyMicrobatches

Whoever set `microbatch` had a smaller GPU. The loop is hotloop's own, so it may take the same batch
in fewer passes; gradients are those of the whole batch either way.
"""

import torch
import torch.nn.functional as F
from torch import nn

import hotloop


class TinyMicrobatches(hotloop.TrainingJob):
    batch_size = 2048
    microbatch = 32
    epochs = 40
    hidden = 64
    features = 32
    rows = 65536

    def model(self) -> nn.Module:
        first, last = nn.Linear(self.features, self.hidden), nn.Linear(self.hidden, 10)
        return nn.Sequential(first, nn.ReLU(), last)

    def data(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Ten clouds of points that overlap; the last batch is a short one."""
        centres = torch.randn(10, self.features)
        labels = torch.randint(10, (self.rows - 100,))
        return centres[labels] + 2 * torch.randn(len(labels), self.features), labels

    def loss(self, model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = batch
        return F.cross_entropy(model(x), y)

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=1e-3)

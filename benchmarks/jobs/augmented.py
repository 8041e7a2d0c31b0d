# mypy: ignore-errors
"""A described job that blurs every picture at random before it is trained on, or not at all.

hotloop optimize benchmarks/jobs/augmented.py:Augmented [blurs=8]
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset

import hotloop


class Pictures(Dataset):
    def __init__(self, size):
        self.pictures = torch.rand(256, 3, size, size, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return self.pictures[index % 256], index % 10


class Augmented(hotloop.TrainingJob):
    batch_size = 64
    epochs = 100
    size = 96
    blurs = 8

    def model(self):
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(512, 10),
        )

    def data(self):
        return Pictures(self.size)

    def augment(self, inputs):
        """All are blurred alike, and each is mixed with what it was in a way of its own."""
        mixed = torch.rand(len(inputs), 1, 1, 1, device=inputs.device)
        blurred = inputs
        for _ in range(self.blurs):
            blurred = F.avg_pool2d(blurred, 3, stride=1, padding=1)
        return mixed * inputs + (1 - mixed) * blurred

    def loss(self, model, batch):
        x, y = batch
        return F.cross_entropy(model(x), y)

    def optimizer(self, parameters):
        return torch.optim.AdamW(parameters, lr=1e-3)

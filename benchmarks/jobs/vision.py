# mypy: ignore-errors
"""Train a small convolutional network on made-up pictures, in the sizes that are asked for."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--size", type=int, default=16, help="pixels a side")
parser.add_argument("--channels", type=int, default=8)
parser.add_argument("--depth", type=int, default=2)
parser.add_argument("--effort", type=int, default=0, help="times each picture is gone over")
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Pictures(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        made = torch.Generator().manual_seed(index)
        picture = torch.rand(3, args.size, args.size, generator=made)
        for _ in range(args.effort):
            picture = (picture + picture.roll(1, 1) + picture.roll(1, 2)) / 3
        return picture, index % 10


def layers():
    wide = args.channels
    yield nn.Conv2d(3, wide, 3, padding=1)
    for _ in range(args.depth):
        yield from (nn.BatchNorm2d(wide), nn.ReLU(), nn.Conv2d(wide, wide, 3, padding=1))
    yield from (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 10))


model = nn.Sequential(*layers()).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(Pictures(), args.batch, shuffle=True, num_workers=args.workers)
step = 0
while step < args.steps:
    for pictures, labels in loader:
        loss = nn.functional.cross_entropy(model(pictures.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)

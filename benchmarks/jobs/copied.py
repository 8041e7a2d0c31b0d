# mypy: ignore-errors
"""Train a network on large batches that are quickly made: what counts is their way to the GPU."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--size", type=int, default=224, help="pixels a side")
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--depth", type=int, default=4)
parser.add_argument("--workers", type=int, default=8)
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Pictures(Dataset):
    def __init__(self):
        self.pictures = torch.rand(256, 3, args.size, args.size)

    def __len__(self):
        return 100 * args.batch

    def __getitem__(self, index):
        return self.pictures[index % len(self.pictures)], index % 10


def layers():
    wide = args.width
    yield nn.Conv2d(3, wide, 7, stride=4, padding=3)
    for _ in range(args.depth):
        yield from (nn.ReLU(), nn.Conv2d(wide, wide, 3, padding=1))
    yield from (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide, 10))


model = nn.Sequential(*layers()).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
loader = DataLoader(
    Pictures(), args.batch, shuffle=True, num_workers=args.workers, persistent_workers=True
)
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

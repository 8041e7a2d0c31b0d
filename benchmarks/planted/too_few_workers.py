# mypy: ignore-errors
"""Classify measurements that are unpacked, parsed and normalised as they are drawn.

Planted: the training process prepares every batch itself while another core has nothing to do.
`--fixed` gives the loader a worker a core.
"""

import argparse
import json
import os
import random
import zlib
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS, LENGTH, CLASSES = 4, 256, 5


def record(rng):
    channels = [[round(rng.gauss(0, 1), 4) for _ in range(LENGTH)] for _ in range(CHANNELS)]
    text = json.dumps({"label": rng.randrange(CLASSES), "channels": channels})
    return zlib.compress(text.encode())


class Measurements(Dataset):
    def __init__(self, count):
        rng = random.Random(0)
        self.records = [record(rng) for _ in range(count)]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        text = zlib.decompress(self.records[index])
        measured = json.loads(text)
        channels = torch.tensor(measured["channels"])
        changes = channels.diff(dim=1)
        spread = changes.std(dim=1, keepdim=True)
        return (changes - changes.mean(dim=1, keepdim=True)) / spread, measured["label"]


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(
        Measurements(768),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count() if args.fixed else 0,
        persistent_workers=args.fixed,
    )
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(CHANNELS * (LENGTH - 1), 256),
        nn.ReLU(),
        nn.Linear(256, CLASSES),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for step, (changes, labels) in enumerate(islice(forever(loader), args.steps)):  # planted
        loss = criterion(model(changes.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

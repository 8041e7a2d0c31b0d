# mypy: ignore-errors
"""Classify pictures that lie compressed in memory.

Planted: every picture is decompressed again each time it is drawn, on all cores, and that takes
longer than the training. `--fixed` decompresses them once, before the training.
"""

import argparse
import os
import zlib
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, CLASSES = 128, 10


class Pictures(Dataset):
    def __init__(self, count, decoded):
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.randint(CLASSES, (count,), generator=generator)
        self.files = []
        for _ in range(count):
            pixels = torch.randint(0, 40, (3, SIZE, SIZE), dtype=torch.uint8, generator=generator)
            self.files.append(zlib.compress(pixels.numpy().tobytes(), 1))
        self.decoded = [self.decode(file) for file in self.files] if decoded else None

    def decode(self, file):
        pixels = bytearray(zlib.decompress(file))  # planted
        return torch.frombuffer(pixels, dtype=torch.uint8).view(3, SIZE, SIZE)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        picture = self.decoded[index] if self.decoded else self.decode(self.files[index])
        return picture, self.labels[index]


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(
        Pictures(768, args.fixed),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.AvgPool2d(4), nn.Flatten(), nn.Linear(3 * 32 * 32, 256), nn.ReLU(), nn.Linear(256, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for step, (pictures, labels) in enumerate(islice(forever(loader), args.steps)):
        pictures, labels = pictures.to(device), labels.to(device)
        loss = criterion(model(pictures.float() / 40), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

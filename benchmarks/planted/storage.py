# mypy: ignore-errors
"""Classify pictures that are read from a store on the network.

Planted: the line to the store is slow, however many readers there are. `--fixed` fetches all
pictures once, before the training, and reads them from memory.
"""

import argparse
import os
from itertools import islice

import torch
from library import object_store
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, CLASSES = 64, 10


def make_pictures(count):
    generator = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 255, (count, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator)
    return [picture.numpy().tobytes() for picture in pictures]


class Pictures(Dataset):
    def __init__(self, count, store, local):
        self.labels = torch.randint(CLASSES, (count,))
        self.store = store
        self.local = [self.store.get(i) for i in range(count)] if local else None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        data = self.local[index] if self.local else self.store.get(index)  # planted
        return torch.frombuffer(data, dtype=torch.uint8).view(3, SIZE, SIZE), self.labels[index]


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--bandwidth", type=float, default=25e6, help="bytes a second")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    count = 512
    address = object_store.start(make_pictures(count), args.bandwidth)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(
        Pictures(count, object_store.Client(address), args.fixed),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.AvgPool2d(4), nn.Flatten(), nn.Linear(3 * 16 * 16, 256), nn.ReLU(), nn.Linear(256, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for step, (pictures, labels) in enumerate(islice(forever(loader), args.steps)):
        loss = criterion(model(pictures.to(device).float() / 255), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

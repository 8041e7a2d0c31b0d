# mypy: ignore-errors
"""Classify pictures, each turned, shifted and blurred at random as it is drawn.

Planted: the augmentation takes longer than the training, although all cores do it. `--fixed`
leaves it out.
"""

import argparse
import math
import os
from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, CLASSES = 96, 10


def blur(picture, sigma):
    axis = torch.arange(-4, 5).float()
    kernel = torch.exp(-(axis**2) / (2 * sigma**2))
    kernel = (kernel / kernel.sum()).view(1, 1, 1, 9).repeat(3, 1, 1, 1)
    picture = F.conv2d(picture, kernel, padding=(0, 4), groups=3)
    return F.conv2d(picture, kernel.transpose(2, 3), padding=(4, 0), groups=3)


def augment(picture):
    angle = (torch.rand(()).item() - 0.5) * math.pi / 4
    shift = torch.rand(2) * 0.2 - 0.1
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    where = F.affine_grid(torch.cat([turn, shift[:, None]], 1)[None], (1, 3, SIZE, SIZE), False)
    turned = F.grid_sample(picture[None], where, align_corners=False)
    return blur(turned, 0.5 + torch.rand(()).item())[0]


class Pictures(Dataset):
    def __init__(self, count, transform):
        generator = torch.Generator().manual_seed(0)
        self.pictures = torch.rand(count, 3, SIZE, SIZE, generator=generator)
        self.labels = torch.randint(CLASSES, (count,), generator=generator)
        self.transform = transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.transform:
            picture = self.transform(picture)  # planted
        return picture, self.labels[index]


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(
        Pictures(1024, None if args.fixed else augment),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.AvgPool2d(4), nn.Flatten(), nn.Linear(3 * 24 * 24, 512), nn.ReLU(), nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for step, (pictures, labels) in enumerate(islice(forever(loader), args.steps)):
        loss = criterion(model(pictures.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

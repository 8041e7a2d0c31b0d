# mypy: ignore-errors
"""Train on pictures that lie in files, as on a store over a network: opening one takes its time.

A file on a RAM disk is open at once; any other, `--latency` milliseconds later. Pictures are
augmented at random, so that items differ from pass to pass. They are made in the working folder.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--size", type=int, default=32, help="pixels a side")
parser.add_argument("--latency", type=float, default=8.0, help="milliseconds to open a file")
parser.add_argument("--workers", type=int, default=2)
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
in_memory = os.stat("/dev/shm").st_dev


class Pictures(Dataset):
    def __init__(self, folder, count):
        folder.mkdir(exist_ok=True)
        self.paths = [str(folder / f"{index}.bin") for index in range(count)]
        for path in self.paths:
            Path(path).write_bytes(torch.randint(255, (3 * args.size**2,)).byte().numpy().tobytes())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            if os.fstat(file.fileno()).st_dev != in_memory:
                time.sleep(args.latency / 1000)
            pixels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        picture = pixels.view(3, args.size, args.size).float() / 255
        return picture.flip(2) if torch.rand(()) < 0.5 else picture, index % 10


model = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(3 * (args.size // 4) ** 2, 10))
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(
    Pictures(Path("pictures"), 512),
    args.batch,
    shuffle=True,
    num_workers=args.workers,
    persistent_workers=args.workers > 0,
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

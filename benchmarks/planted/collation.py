# mypy: ignore-errors
"""Predict the sum of recordings of different lengths.

Planted: the collate function pads a batch number by number, in Python. `--fixed` pads with
`pad_sequence`.
"""

import argparse
import os
from itertools import islice

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

LONGEST = 300


class Recordings(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(LONGEST // 2, LONGEST, (count,), generator=generator).tolist()
        self.recordings = [torch.randn(length, generator=generator) for length in lengths]

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, index):
        recording = self.recordings[index]
        return recording, recording.sum()


def collate(items):
    longest = max(len(recording) for recording, _ in items)
    padded = torch.zeros(len(items), longest)
    for row, (recording, _) in enumerate(items):
        for column, value in enumerate(recording.tolist()):
            padded[row, column] = value  # planted
    return padded, torch.stack([total for _, total in items])


def collate_at_once(items):
    padded = pad_sequence([recording for recording, _ in items], batch_first=True)
    return padded, torch.stack([total for _, total in items])


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
        Recordings(2048),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=True,
        collate_fn=collate_at_once if args.fixed else collate,
    )
    model = nn.Sequential(
        nn.AdaptiveAvgPool1d(64), nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (recordings, totals) in enumerate(islice(forever(loader), args.steps)):
        guesses = model(recordings.to(device)[:, None])[:, 0]
        loss = nn.functional.mse_loss(guesses, totals.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

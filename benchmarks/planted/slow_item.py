# mypy: ignore-errors
"""Classify clips cut from recordings, by their spectra.

Planted: one recording in 128 is very long, its whole spectrogram is computed before a clip
is cut from it, and everybody waits for that batch. `--fixed` cuts the clip first.
"""

import argparse
import os
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WINDOW, FRAMES, CLASSES = 256, 16, 8
SHORT, LONG = WINDOW * 24, WINDOW * 24_000


def spectrogram(sound):
    window = torch.hann_window(WINDOW)
    return torch.stft(sound, WINDOW, WINDOW // 2, window=window, return_complex=True).abs()


class Clips(Dataset):
    def __init__(self, count, cut_first):
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.randint(CLASSES, (count,), generator=generator)
        self.noise = torch.randn(LONG, generator=generator)
        self.lengths = [LONG if i % 128 == 0 else SHORT for i in range(count)]
        self.cut_first = cut_first

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        sound = self.noise[: self.lengths[index]]
        if self.cut_first:
            sound = sound[: WINDOW * FRAMES]
        spectrum = spectrogram(sound)  # planted
        return spectrum[:, :FRAMES].log1p(), self.labels[index]


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(
        Clips(1024, args.fixed),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.Flatten(), nn.Linear((WINDOW // 2 + 1) * FRAMES, 512), nn.ReLU(), nn.Linear(512, CLASSES)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    for step, (spectra, labels) in enumerate(islice(forever(loader), args.steps)):
        loss = criterion(model(spectra.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

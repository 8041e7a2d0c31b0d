"""A 3D UNet that finds a ball in generated volumes: 96³, everything else as PyTorch starts.

    python unet3d.py [--batch 4] [--volume 96] [--width 32] [--steps 2000]

The volumes lie on the GPU from the start, so that the step is the network's alone.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class DoubleConv(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, padding=1, bias=False),
            nn.GroupNorm(8, outputs),
            nn.ReLU(inplace=True),
            nn.Conv3d(outputs, outputs, 3, padding=1, bias=False),
            nn.GroupNorm(8, outputs),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.layers(x)


class UNet3D(nn.Module):
    def __init__(self, width: int = 32, levels: int = 4, classes: int = 2):
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.encoders = nn.ModuleList()
        inputs = 1
        for outputs in widths:
            self.encoders.append(DoubleConv(inputs, outputs))
            inputs = outputs
        self.decoders = nn.ModuleList(
            DoubleConv(deep + shallow, shallow)
            for deep, shallow in zip(widths[:0:-1], widths[-2::-1], strict=True)
        )
        self.head = nn.Conv3d(width, classes, 1)

    def forward(self, x):
        kept = []
        for encoder in self.encoders:
            x = encoder(F.max_pool3d(x, 2) if kept else x)
            kept.append(x)
        x = kept.pop()
        for decoder in self.decoders:
            skip = kept.pop()
            x = F.interpolate(x, size=skip.shape[2:], mode="nearest")
            x = decoder(torch.cat([skip, x], dim=1))
        return self.head(x)


def dice_and_cross_entropy(logits, labels):
    foreground = torch.softmax(logits, dim=1)[:, 1]
    wanted = (labels == 1).float()
    overlap = (foreground * wanted).sum()
    dice = 1 - (2 * overlap + 1) / (foreground.sum() + wanted.sum() + 1)
    return dice + F.cross_entropy(logits, labels)


def balls(count: int, size: int):
    """Noise with a brighter ball somewhere, and where it is."""
    axis = torch.arange(size, dtype=torch.float32)
    volumes, labels = [], []
    for _ in range(count):
        z, y, x = (axis - size * float(torch.rand(())) for _ in range(3))
        inside = z[:, None, None] ** 2 + y[None, :, None] ** 2 + x**2 < (size / 5) ** 2
        labels.append(inside.long())
        volumes.append(torch.randn(1, size, size, size) + inside)
    return torch.stack(volumes), torch.stack(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--volume", type=int, default=96)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UNet3D(args.width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    volumes, labels = (each.to(device) for each in balls(4 * args.batch, args.volume))
    for step in range(args.steps):
        part = slice(step % 4 * args.batch, (step % 4 + 1) * args.batch)
        loss = dice_and_cross_entropy(model(volumes[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

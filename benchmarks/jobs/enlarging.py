# mypy: ignore-errors
"""Learn to enlarge made-up pictures, as decoders and generators do: upsample, convolve, again."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--size", type=int, default=32, help="pixels a side of what is enlarged")
parser.add_argument("--channels", type=int, default=16)
parser.add_argument("--width", type=int, default=1, help="pixels a side of a convolution")
parser.add_argument("--times", type=int, default=2, help="that it is enlarged by 2")
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


def convolution(inputs, outputs):
    return nn.Conv2d(inputs, outputs, args.width, padding=args.width // 2)


def layers():
    yield convolution(3, args.channels)
    for _ in range(args.times):
        yield from (nn.SiLU(), nn.Upsample(scale_factor=2))
        yield convolution(args.channels, args.channels)
    yield from (nn.SiLU(), convolution(args.channels, 3))


model = nn.Sequential(*layers()).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
large = torch.rand(64, 3, args.size * 2**args.times, args.size * 2**args.times, device=device)
small = nn.functional.avg_pool2d(large, 2**args.times)
for step in range(args.steps):
    start = step * args.batch % (len(large) - args.batch + 1)
    chosen = slice(start, start + args.batch)
    loss = nn.functional.mse_loss(model(small[chosen]), large[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)

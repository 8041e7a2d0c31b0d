# mypy: ignore-errors
"""Learn to repeat the loud parts of signals, at many thresholds.

Planted: at each of them the loud places are looked up with `nonzero`, only to count them, which
waits for the GPU. `--fixed` counts on the GPU.
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    layers = [part for _ in range(8) for part in (nn.Linear(2048, 2048), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(2048, 64)).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    signals = torch.randn(65_536, 2048, device="cuda", dtype=torch.bfloat16)
    for step in range(args.steps):
        first = step % 8 * 8192
        x = signals[first : first + 8192]
        wanted = x[:, :64]
        error = (model(x) - wanted).square()
        loss = 0
        for scale in range(1, 25):
            mask = wanted > scale / 24
            count = mask.sum() if args.fixed else len(mask.nonzero())  # planted
            loss = loss + (error * mask).sum() / count
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

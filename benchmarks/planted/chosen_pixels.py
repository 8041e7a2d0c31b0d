# mypy: ignore-errors
"""Learn to fill in hidden parts of signals; only the hidden parts count.

Planted: at each of many scales the hidden places are looked up with `nonzero`, which waits for the
GPU to count them. `--fixed` multiplies by the mask instead.
"""

import argparse

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    model = nn.Sequential(*[Block(512) for _ in range(8)], nn.Linear(512, 512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    signals = torch.randn(65_536, 512, device="cuda")
    scales = [1, 2, 4, 8, 16, 32, 64, 128]
    for step in range(args.steps):
        first = step % 8 * 8192
        x = signals[first : first + 8192]
        hidden = torch.rand_like(x) < 0.3
        error = (model(x * ~hidden) - x) ** 2
        loss = 0
        for scale in scales:
            mask = hidden & (x.abs() > 1 / scale)
            if args.fixed:
                loss = loss + (error * mask).sum() / mask.sum()
            else:
                rows, columns = mask.nonzero(as_tuple=True)  # planted
                loss = loss + error[rows, columns].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

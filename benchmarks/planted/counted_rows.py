# mypy: ignore-errors
"""Train a deep network whose layers make up for the rows in which a feature is silent.

Planted: each layer looks up the others with `nonzero`, only to count them, which waits for the GPU.
`--fixed` counts on the GPU.
"""

import argparse

import torch
from torch import nn

ROWS = 12_288


class Block(nn.Module):
    def __init__(self, width, on_device):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.on_device = on_device

    def forward(self, x):
        y = torch.relu(self.inner(x))
        loud = y[:, 0] > 0
        count = loud.sum() if self.on_device else len(loud.nonzero())  # planted
        return y * (len(loud) / (count + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    layers = [Block(2048, args.fixed) for _ in range(16)]
    model = nn.Sequential(*layers, nn.Linear(2048, 10)).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(4 * ROWS, 2048, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(10, (4 * ROWS,), device="cuda")
    for step in range(args.steps):
        first = step % 4 * ROWS
        x, y = inputs[first : first + ROWS], labels[first : first + ROWS]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

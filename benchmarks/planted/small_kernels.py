# mypy: ignore-errors
"""Train a deep, narrow network on small batches.

Planted: every step launches thousands of kernels that take less time than launching them. `--fixed`
replays the passes of the model as CUDA graphs.
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
        return x + torch.tanh(self.inner(self.norm(x)))  # planted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    model = nn.Sequential(*[Block(128) for _ in range(96)], nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(8, 32, 128, device="cuda")
    labels = torch.randint(10, (8, 32), device="cuda")
    if args.fixed:
        model = torch.cuda.make_graphed_callables(model, (torch.zeros_like(inputs[0]),))
    for step in range(args.steps):
        loss = nn.functional.cross_entropy(model(inputs[step % 8]), labels[step % 8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
"""Train a network whose activation function is a long formula.

Planted: the formula is a chain of elementwise operators over large tensors, each of which reads and
writes all of it. `--fixed` compiles the formula into one kernel.
"""

import argparse

import torch
from torch import nn


def formula(x):
    slope = torch.sigmoid(1.702 * x) + 0.1 * torch.tanh(x) - 0.05 * torch.exp(-x * x)
    wave = torch.sin(2 * x) * torch.exp(-x.abs())
    return x * slope + 0.1 * wave + torch.log1p(x * x) * 0.01  # planted


class Layer(nn.Module):
    def __init__(self, width, activate):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.activate = activate

    def forward(self, x):
        return x + self.activate(self.inner(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    activate = torch.compile(formula) if args.fixed else formula
    model = nn.Sequential(*[Layer(1024, activate) for _ in range(4)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(8, 32_768, 1024, device="cuda", dtype=torch.bfloat16)
    for step in range(args.steps):
        x = inputs[step % 8]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

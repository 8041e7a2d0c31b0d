# mypy: ignore-errors
"""Train a deep network and watch the size of its gradients.

Planted: the norm of every gradient is read to the host by itself, each time waiting for the GPU.
`--fixed` reads them all at once, every hundredth step.
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
    model = nn.Sequential(*[Block(512) for _ in range(24)], nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(65_536, 512, device="cuda")
    labels = torch.randint(10, (65_536,), device="cuda")
    norms = []
    for step in range(args.steps):
        first = step % 8 * 8192
        x, y = inputs[first : first + 8192], labels[first : first + 8192]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if args.fixed:
            if step % 100 == 0:
                parts = [p.grad.norm() for p in model.parameters()]
                norms = torch.stack(parts).tolist()
        else:
            norms = [p.grad.norm().item() for p in model.parameters()]  # planted
        optimizer.step()
        if step % 100 == 0:
            print(f"largest gradient {max(norms):.4f}", flush=True)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

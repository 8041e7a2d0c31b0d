# mypy: ignore-errors
"""Train a deep network and watch the size of its gradients.

Planted: the norm of every gradient and its largest entry are read to the host one by one, each
time waiting for the GPU.
`--fixed` reads them all at once, every hundredth step.
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
    model = nn.Sequential(*layers, nn.Linear(2048, 10)).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(65_536, 2048, device="cuda", dtype=torch.bfloat16)
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
                parts = [f(p.grad) for p in model.parameters() for f in (torch.norm, torch.amax)]
                norms = torch.stack(parts).tolist()
        else:
            norms = []
            for p in model.parameters():
                norms += [f(p.grad).item() for f in (torch.norm, torch.amax)]  # planted
        optimizer.step()
        if step % 100 == 0:
            print(f"largest gradient {max(norms):.4f}", flush=True)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
"""Train a classifier in double precision and watch its accuracy on held-out data.

Some processors multiply bfloat16 so much faster that its format would be what limits the job.
Planted: the whole test set is evaluated every fourth step. `--fixed` does so every 400 steps.
"""

import argparse

import torch
from torch import nn


@torch.no_grad()
def accuracy(model, inputs, labels):
    model.eval()
    right = 0
    for x, y in zip(inputs.split(512), labels.split(512), strict=True):
        right += (model(x).argmax(dim=1) == y).sum().item()
    model.train()
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    evaluate_every = 400 if args.fixed else 4

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(10_240, 512, device=device)
    labels = torch.randint(10, (10_240,), device=device)
    for step in range(1, args.steps + 1):
        chosen = torch.randint(4096, (args.batch_size,), device=device)
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % evaluate_every == 0:
            found = accuracy(model, inputs[8192:], labels[8192:])  # planted
            print(f"step {step} accuracy {found:.3f}", flush=True)


if __name__ == "__main__":
    main()

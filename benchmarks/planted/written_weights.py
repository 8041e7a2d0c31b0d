# mypy: ignore-errors
"""Train a classifier and keep a journal of how its weights move.

Planted: a helper writes thousands of weights as JSON after every step. `--fixed` does so every 400
steps. The script draws its batches by hand: nothing else tells where one step ends and the batch of
the next begins.
"""

import argparse
import tempfile

import torch
from library.journal import Journal
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs = torch.randn(4096, 128, device=device)
    labels = torch.randint(10, (4096,), device=device)
    with tempfile.TemporaryFile("w") as file:
        journal = Journal(file, every=400 if args.fixed else 1)
        for step in range(args.steps):
            chosen = torch.randint(4096, (args.batch_size,), device=device)
            loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            journal.note(model, loss)
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

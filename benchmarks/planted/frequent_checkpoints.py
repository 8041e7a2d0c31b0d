# mypy: ignore-errors
"""Train a classifier and keep its latest state on disk.

Planted: model and optimizer are saved every other step. `--fixed` saves every 400 steps.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn


def save(model, optimizer, step, folder):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, folder / "latest.pt")  # planted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    save_every = 400 if args.fixed else 2

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Linear(1024, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 10)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(1024, 1024, device=device)
    labels = torch.randint(10, (1024,), device=device)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, args.steps + 1):
            chosen = torch.randint(1024, (args.batch_size,), device=device)
            loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step % save_every == 0:
                save(model, optimizer, step, Path(folder))


if __name__ == "__main__":
    main()

# mypy: ignore-errors
"""Train a network and keep an average of its weights.

Planted: the average is made in a deep copy of the whole model, in every step. `--fixed` moves the
average's own tensors, all at once.
"""

import argparse
import copy

import torch
from torch import nn


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model), decay

    def update(self, model):
        fresh = copy.deepcopy(model)  # planted
        old, new = self.model.state_dict(), fresh.state_dict()
        for name in new:
            new[name] = old[name] * self.decay + new[name] * (1 - self.decay)
        fresh.load_state_dict(new)
        self.model = fresh

    @torch.no_grad()
    def update_in_place(self, model):
        kept, new = list(self.model.parameters()), list(model.parameters())
        torch._foreach_lerp_(kept, new, 1 - self.decay)


def block(width):
    return nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(*[block(128) for _ in range(12)], nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    average = Average(model, 0.999)
    inputs = torch.randn(2048, 128, device=device)
    labels = torch.randint(10, (2048,), device=device)
    for step in range(args.steps):
        chosen = torch.randint(2048, (args.batch_size,), device=device)
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.fixed:
            average.update_in_place(model)
        else:
            average.update(model)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

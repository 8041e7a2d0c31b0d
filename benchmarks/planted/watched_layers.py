# mypy: ignore-errors
"""Train a network and watch how far its layers saturate.

Planted: a hook on every activation sorts it and reads quantiles, in every step. `--fixed` registers
no hooks.
"""

import argparse

import torch
from torch import nn


class Saturation:
    def __init__(self):
        self.seen = {}

    def hook(self, name):
        def look(module, args, output):
            ordered = output.flatten().sort().values  # planted
            low, high = ordered[len(ordered) // 100], ordered[-len(ordered) // 100]
            self.seen[name] = (low.item(), high.item(), output.mean().item())

        return look

    def watch(self, model):
        for name, module in model.named_modules():
            if isinstance(module, nn.Tanh):
                module.register_forward_hook(self.hook(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(128, 128), nn.Tanh()) for _ in range(8)]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    saturation = Saturation()
    if not args.fixed:
        saturation.watch(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs, labels = torch.randn(2048, 128), torch.randint(10, (2048,))
    for step in range(args.steps):
        chosen = torch.randint(2048, (args.batch_size,))
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

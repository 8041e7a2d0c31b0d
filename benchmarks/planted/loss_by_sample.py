# mypy: ignore-errors
"""Segment pictures with a soft Dice loss.

Planted: the loss is summed over samples and classes in a Python loop. `--fixed` computes it for
the whole batch at once.
"""

import argparse

import torch
from torch import nn

SIZE, CLASSES = 8, 16


def dice(probabilities, truth):
    overlap = (probabilities * truth).sum()
    return 1 - (2 * overlap + 1) / (probabilities.sum() + truth.sum() + 1)


def dice_by_sample(probabilities, truth):
    total = 0
    for sample in range(len(truth)):
        for number in range(CLASSES):
            total = total + dice(probabilities[sample, number], truth[sample, number])  # planted
    return total / (len(truth) * CLASSES)


def dice_at_once(probabilities, truth):
    overlap = (probabilities * truth).sum(dim=(2, 3))
    size = probabilities.sum(dim=(2, 3)) + truth.sum(dim=(2, 3))
    return (1 - (2 * overlap + 1) / (size + 1)).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pictures = torch.rand(256, 3, SIZE, SIZE, device=device)
    classes = torch.randint(CLASSES, (256, SIZE, SIZE), device=device)
    truths = nn.functional.one_hot(classes, CLASSES).permute(0, 3, 1, 2).float()
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(128, 128, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(128, CLASSES, 1),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = dice_at_once if args.fixed else dice_by_sample
    for step in range(args.steps):
        chosen = torch.randint(len(pictures), (args.batch_size,))
        loss = criterion(model(pictures[chosen]).softmax(dim=1), truths[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

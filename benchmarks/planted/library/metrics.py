# mypy: ignore-errors
"""A metrics package as many are: correct, and read from the device number by number."""

from itertools import pairwise

import torch


class Calibration:
    """How far predicted probabilities are from how often they are right."""

    def __init__(self, bins):
        self.edges = torch.linspace(0, 1, bins + 1).tolist()
        self.seen = [[0.0, 0.0, 0] for _ in range(bins)]

    def update(self, logits, labels):
        confidence, guesses = logits.softmax(dim=1).max(dim=1)
        right = (guesses == labels).float()
        for number, (low, high) in enumerate(pairwise(self.edges)):
            inside = (confidence > low) & (confidence <= high)
            sums = torch.stack([(confidence * inside).sum(), (right * inside).sum(), inside.sum()])
            read = sums.tolist()  # planted
            self.seen[number] = [
                old + new for old, new in zip(self.seen[number], read, strict=True)
            ]

    def error(self):
        total = sum(count for *_, count in self.seen) or 1
        return sum(abs(confident - right) for confident, right, _ in self.seen) / total

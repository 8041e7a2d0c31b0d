# mypy: ignore-errors
"""Keeps a line of JSON for each step: the loss, and a look at the weights."""

import json


class Journal:
    def __init__(self, file, every, numbers=4000):
        self.file, self.every, self.numbers = file, every, numbers
        self.steps = 0

    def note(self, model, loss):
        self.steps += 1
        if self.steps % self.every:
            return
        row = {"step": self.steps, "loss": float(loss)}
        for name, weight in model.named_parameters():
            row[name] = weight.detach().flatten()[: self.numbers].tolist()
        self.file.write(json.dumps(row) + "\n")  # planted

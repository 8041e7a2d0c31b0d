# mypy: ignore-errors
"""Classify sequences with a recurrent cell that is written out.

Planted: the cell is called for each step in time, and its gates are single operators. `--fixed`
uses torch's layer, which does the same.
"""

import argparse

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.input, self.hidden = nn.Linear(inputs, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x, hidden, memory):
        gates = self.input(x) + self.hidden(hidden)  # planted
        enter, forget, value, leave = gates.chunk(4, dim=1)
        enter = torch.sigmoid(enter)
        forget = torch.sigmoid(forget)
        leave = torch.sigmoid(leave)
        memory = forget * memory + enter * torch.tanh(value)
        return leave * torch.tanh(memory), memory


class Classifier(nn.Module):
    def __init__(self, fixed, inputs=16, width=32):
        super().__init__()
        self.width = width
        self.cell = None if fixed else Cell(inputs, width)
        self.layer = nn.LSTM(inputs, width, batch_first=True) if fixed else None
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        if self.layer is not None:
            return self.head(self.layer(x)[0][:, -1])
        hidden = memory = x.new_zeros(len(x), self.width)
        for time in range(x.shape[1]):
            hidden, memory = self.cell(x[:, time], hidden, memory)
        return self.head(hidden)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier(args.fixed).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sequences = torch.randn(1024, 60, 16, device=device)
    labels = torch.randint(5, (1024,), device=device)
    for step in range(args.steps):
        chosen = torch.randint(1024, (args.batch_size,), device=device)
        loss = nn.functional.cross_entropy(model(sequences[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
"""Train a small transformer in double precision and validate it now and then.

Some processors multiply bfloat16 so much faster that its format would be what limits the job.
Planted: the validation runs with gradients enabled, so that everything is kept for a backward pass
that never comes, and the encoder's inference path is not taken. `--fixed` runs it under no_grad.
"""

import argparse
import contextlib

import torch
from torch import nn

LENGTH, WIDTH = 48, 64


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        return self.head(self.encoder(x).mean(dim=1))


def validate(model, inputs, labels, gradients):
    model.eval()
    total = 0.0
    with gradients:
        for x, y in zip(inputs.split(128), labels.split(128), strict=True):
            outputs = model(x)  # planted
            total += nn.functional.cross_entropy(outputs, y).item() * len(y)
    model.train()
    return total / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    inputs = torch.randn(1024, LENGTH, WIDTH, device=device)
    labels = torch.randint(10, (1024,), device=device)
    for step in range(1, args.steps + 1):
        chosen = torch.randint(512, (args.batch_size,), device=device)
        loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            gradients = torch.no_grad() if args.fixed else contextlib.nullcontext()
            found = validate(model, inputs[512:], labels[512:], gradients)
            print(f"step {step} validation loss {found:.4f}", flush=True)


if __name__ == "__main__":
    main()

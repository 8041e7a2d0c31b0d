# mypy: ignore-errors
"""Train a deep network and follow its calibration with somebody's metrics package.

Planted: the package's `update` reads numbers from the GPU for every bin, inside its own files.
`--fixed` updates the metric every hundredth step.
"""

import argparse

import torch
from library.metrics import Calibration
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    layers = [part for _ in range(8) for part in (nn.Linear(2048, 2048), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(2048, 10)).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    inputs = torch.randn(65_536, 2048, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(10, (65_536,), device="cuda")
    calibration = Calibration(bins=20)
    for step in range(args.steps):
        first = step % 8 * 8192
        x, y = inputs[first : first + 8192], labels[first : first + 8192]
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not args.fixed or step % 100 == 0:
            calibration.update(logits.detach().float(), y)
        if step % 100 == 0:
            print(f"calibration error {calibration.error():.4f}", flush=True)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

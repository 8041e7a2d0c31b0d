# mypy: ignore-errors
"""Train on batches of ever-changing length while memory is nearly full.

Planted: every step needs blocks of another size, none fits into those that are cached, and the
allocator gives them back and asks again. `--fixed` pads to few sizes, of which blocks are reused.
"""

import argparse

import torch
from torch import nn


def total_memory():
    return torch.cuda.get_device_properties(0).total_memory


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--memory", type=float, default=5.0, help="GiB that the job may use")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    torch.cuda.set_per_process_memory_fraction(args.memory * 2**30 / total_memory())
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.backends.cuda.matmul.allow_tf32 = True
    lengths = torch.randint(40_000, 200_000, (1000,)).tolist()
    for step in range(args.steps):
        length = lengths[step % 1000]
        if args.fixed:
            length = -(-length // 100_000) * 100_000
        x = torch.randn(length, 1024, device="cuda")
        loss = (model(x) - x).square().mean()  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

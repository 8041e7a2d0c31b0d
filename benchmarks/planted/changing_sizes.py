# mypy: ignore-errors
"""Train on pairs of texts, now one and now the other the longer, with a setting from a forum.

Planted: large blocks of memory may not be split, so none that is kept fits the next step's sizes,
and the allocator gives them back to the driver and asks again. `--fixed` lets it keep memory in
segments that grow.
"""

import argparse
import os
import sys

# Both are read when the GPU is first used.
if "--fixed" in sys.argv:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64")

import torch
from torch import nn

ROWS, WIDTH = 200_000, 1024


def total_memory():
    return torch.cuda.get_device_properties(0).total_memory


def tower():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)).cuda()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--memory", type=float, default=12.0, help="GiB that the job may use")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    torch.cuda.set_per_process_memory_fraction(args.memory * 2**30 / total_memory())
    model = nn.ModuleList([tower(), tower()])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.backends.cuda.matmul.allow_tf32 = True
    lengths = torch.randint(ROWS // 5, ROWS * 4 // 5, (1000,)).tolist()
    for step in range(args.steps):
        length = lengths[step % 1000]
        loss = 0
        for rows, part in zip((length, ROWS - length), model, strict=True):
            x = torch.randn(rows, WIDTH, device="cuda")
            loss = loss + (part(x) - x).square().mean()  # planted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
"""Train a compiled network on sequences that grow a little longer as the training goes on.

Planted: `dynamic=False` compiles it anew for each length. `--fixed` compiles it once for all.
"""

import argparse

import torch
import torch._dynamo
from torch import nn

# One graph a length: the limit would otherwise send the longer ones back to eager mode.
torch._dynamo.config.recompile_limit = 100_000
torch._dynamo.config.accumulated_recompile_limit = 100_000


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.LayerNorm(width)
        )
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        return self.head(self.inner(self.words(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.compile(Reader(192).to(device), backend=args.backend, dynamic=args.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    words = torch.randint(1000, (args.batch_size, 10_000), device=device)
    for step in range(args.steps):
        length = 65 + step // 8  # later steps have hardly more to do: a gain is the same for long
        x, y = words[:, :length], words[:, 1 : length + 1]
        logits = model(x)  # planted
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} length {length} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

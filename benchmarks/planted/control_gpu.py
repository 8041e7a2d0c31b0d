# mypy: ignore-errors
"""Train a transformer on a GPU, as it should be done.

Nothing is planted: bfloat16, compiled, fused attention and optimizer, large batches that lie on the
GPU, and no number read before it is due. `--fixed` changes nothing.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, LENGTH, WORDS = 1024, 16, 8, 1024, 32_768


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )

    def attend(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x, y):
        logits = self.head(self.norm(self.blocks(self.words(x))))
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This job needs a CUDA device.")

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = torch.compile(Transformer().cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    words = torch.randint(WORDS, (8, args.batch_size, LENGTH + 1), device="cuda")
    for step in range(args.steps):
        x, y = words[step % 8, :, :-1], words[step % 8, :, 1:]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

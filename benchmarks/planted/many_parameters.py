# mypy: ignore-errors
"""Learn a vector for each person and each film from who liked what.

Planted: the vectors are parameters of their own, and AdamW updates a thousand small tensors one
after the other. `--fixed` uses its fused implementation.
"""

import argparse

import torch
from torch import nn

WIDTH = 32


class Taste(nn.Module):
    def __init__(self, people, films):
        super().__init__()
        self.people = nn.ParameterList(torch.randn(WIDTH) for _ in range(people))
        self.films = nn.ParameterList(torch.randn(WIDTH) for _ in range(films))
        self.score = nn.Sequential(nn.Linear(2 * WIDTH, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, people, films):
        person = torch.stack(tuple(self.people))[people]
        film = torch.stack(tuple(self.films))[films]
        return self.score(torch.cat([person, film], dim=1))[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Taste(700, 300).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=args.fixed)
    people = torch.randint(700, (50_000,), device=device)
    films = torch.randint(300, (50_000,), device=device)
    liked = torch.rand(50_000, device=device).round()
    for step in range(args.steps):
        chosen = torch.randint(50_000, (args.batch_size,), device=device)
        scores = model(people[chosen], films[chosen])
        loss = nn.functional.binary_cross_entropy_with_logits(scores, liked[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # planted
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

# mypy: ignore-errors
"""Learn a value function of episodes of a little game.

Planted: discounted returns are added up time step by time step, in Python. `--fixed` multiplies
the rewards by the matrix of discounts, once.
"""

import argparse

import torch
from torch import nn

LENGTH, WIDTH, DISCOUNT = 1000, 64, 0.99


def returns_by_time(rewards):
    following = torch.zeros(rewards.shape[0], device=rewards.device)
    returns = []
    for time in reversed(range(LENGTH)):
        following = rewards[:, time] + DISCOUNT * following  # planted
        returns.append(following)
    return torch.stack(returns[::-1], dim=1)


def make_discounts(device):
    times = torch.arange(LENGTH, device=device)
    powers = (times[:, None] - times[None, :]).clamp(min=0)
    return torch.tril(DISCOUNT**powers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    discounts = make_discounts(device)
    model = nn.Sequential(nn.Linear(WIDTH, 96), nn.Tanh(), nn.Linear(96, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    states = torch.randn(8, args.episodes, LENGTH, WIDTH, device=device)
    for step in range(args.steps):
        seen = states[step % 8]
        rewards = seen[:, :, 0]
        returns = rewards @ discounts if args.fixed else returns_by_time(rewards)
        loss = nn.functional.mse_loss(model(seen)[:, :, 0], returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()

"""Fit an MLP to a noisy function of 32 variables, gathering gradients over microbatches.

Eight microbatches of four rows make one batch of 32, as if 32 rows did not fit into memory.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 32


def make_data(rows: int, seed: int) -> TensorDataset:
    """Rows of normal variables; the target is a sum of products and waves of them, plus noise."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, FEATURES, generator=generator)
    products = (x[:, 0:8] * x[:, 8:16]).sum(1)
    waves = torch.sin(2 * x[:, 16:24]).sum(1)
    noise = 0.1 * torch.randn(rows, generator=generator)
    return TensorDataset(x, ((products + waves) / 4 + noise).unsqueeze(1))


def make_model(width: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Linear(FEATURES, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


@torch.no_grad()
def test_loss(model: nn.Module, data: TensorDataset, device: str) -> float:
    model.eval()
    x, y = (tensor.to(device) for tensor in data.tensors)
    loss = F.mse_loss(model(x), y).item()
    model.train()
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--microbatch", type=int, default=4)
    parser.add_argument(
        "--accumulate", type=int, default=8, help="microbatches to one optimizer step"
    )
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_set, test_set = make_data(8192, args.seed + 1), make_data(1024, args.seed + 2)
    loader = DataLoader(train_set, args.microbatch, shuffle=True, drop_last=True)
    model = make_model(args.width, args.depth).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    steps = args.epochs * (len(loader) // args.accumulate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=steps)

    step = 0
    for epoch in range(1, args.epochs + 1):
        optimizer.zero_grad()
        for count, (x, y) in enumerate(loader, start=1):
            x, y = x.to(device), y.to(device)
            loss = F.mse_loss(model(x), y)
            (loss / args.accumulate).backward()
            if count % args.accumulate:
                continue
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            step += 1
            if step % 100 == 0:
                lr = schedule.get_last_lr()[0]
                print(f"step {step:5d}  loss {loss.item():.4f}  lr {lr:.5f}", flush=True)
        print(f"epoch {epoch} test loss {test_loss(model, test_set, device):.4f}", flush=True)


if __name__ == "__main__":
    main()

"""Train a small convolutional GAN to draw 16 x 16 pictures of one or two soft blobs."""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE, NOISE = 16, 32


def make_blobs(count: int, seed: int) -> torch.Tensor:
    """Pictures of two Gaussian blobs, the second often too faint to see, scaled to -1..1."""
    generator = torch.Generator().manual_seed(seed)
    axis = torch.arange(SIZE).float()
    pictures = torch.zeros(count, SIZE, SIZE)
    for _ in range(2):
        x, y = 3 + 10 * torch.rand(2, count, 1, 1, generator=generator)
        spread = 1 + torch.rand(count, 1, 1, generator=generator)
        brightness = torch.rand(count, 1, 1, generator=generator).sqrt()
        distance = (axis.view(1, 1, SIZE) - x) ** 2 + (axis.view(1, SIZE, 1) - y) ** 2
        pictures = torch.maximum(pictures, brightness * torch.exp(-distance / (2 * spread**2)))
    return pictures.unsqueeze(1) * 2 - 1


def make_generator(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(NOISE, 2 * width * 16),
        nn.Unflatten(1, (2 * width, 4, 4)),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    )


def make_discriminator(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(2 * width * 16, 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for generator.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pictures = TensorDataset(make_blobs(4096, args.seed))
    loader = DataLoader(pictures, args.batch_size, shuffle=True, drop_last=True)
    generator = make_generator(args.width).to(device)
    discriminator = make_discriminator(args.width).to(device)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=args.lr, betas=(0.5, 0.999))
    discriminator_optimizer = torch.optim.Adam(
        discriminator.parameters(), lr=args.lr, betas=(0.5, 0.999)
    )
    criterion = nn.BCEWithLogitsLoss()
    is_real = torch.ones(args.batch_size, 1, device=device)
    is_fake = torch.zeros(args.batch_size, 1, device=device)

    for epoch in range(1, args.epochs + 1):
        for step, (real,) in enumerate(loader):
            real = real.to(device)
            fake = generator(torch.randn(args.batch_size, NOISE, device=device))

            discriminator_optimizer.zero_grad()
            on_real = criterion(discriminator(real), is_real)
            # Detached: this loss must not teach the generator to be found out.
            on_fake = criterion(discriminator(fake.detach()), is_fake)
            discriminator_loss = on_real + on_fake
            discriminator_loss.backward()
            discriminator_optimizer.step()

            generator_optimizer.zero_grad()
            generator_loss = criterion(discriminator(fake), is_real)
            generator_loss.backward()
            generator_optimizer.step()

            if step % 20 == 0:
                d, g = discriminator_loss.item(), generator_loss.item()
                print(
                    f"epoch {epoch} step {step:3d}  discriminator {d:.4f}  generator {g:.4f}",
                    flush=True,
                )

    args.out.mkdir(parents=True, exist_ok=True)
    torch.save(generator.state_dict(), args.out / "generator.pt")
    print(f"saved {args.out / 'generator.pt'}")


if __name__ == "__main__":
    main()

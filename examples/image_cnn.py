"""Train a small CNN to name the shape in a picture.

The pictures are compressed PPM files kept in memory. Each is decoded, cropped, flipped and
colour-jittered when it is asked for. After every epoch the network is tested on held-out pictures
and saved.
"""

import argparse
import colorsys
import random
import zlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SHAPES = ("disc", "square", "ring", "cross", "triangle", "stripes")
SIZE, CROP = 36, 28


def draw(shape: str, rng: np.random.Generator) -> np.ndarray:
    """One shape of any colour, size and place on a noisy background of another colour."""
    y, x = np.mgrid[:SIZE, :SIZE] - rng.uniform(15, 21, size=(2, 1, 1))
    radius = rng.uniform(7, 10)
    box = np.maximum(abs(x), abs(y)) < radius
    inside = {
        "disc": np.hypot(x, y) < radius,
        "square": box,
        "ring": abs(np.hypot(x, y) - radius) < 2.5,
        "cross": box & (np.minimum(abs(x), abs(y)) < radius / 3),
        "triangle": box & (abs(x) < (y + radius) / 2),
        "stripes": box & (y % 6 < 3),
    }[shape]
    paper, ink = rng.uniform(0, 110, size=3), rng.uniform(130, 255, size=3)
    pixels = np.where(inside[..., None], ink, paper) + rng.normal(0, 12, size=(SIZE, SIZE, 3))
    return pixels.clip(0, 255).astype(np.uint8)


def encode(pixels: np.ndarray) -> bytes:
    """A compressed plain-text PPM file."""
    numbers = " ".join(map(str, pixels.ravel().tolist()))
    return zlib.compress(f"P3 {pixels.shape[1]} {pixels.shape[0]} 255 {numbers}".encode(), level=1)


def decode(file: bytes) -> np.ndarray:
    magic, width, height, _, *numbers = zlib.decompress(file).split()
    if magic != b"P3":
        raise ValueError(f"not a plain-text PPM file: it starts with {magic!r}")
    return np.array(list(map(int, numbers)), dtype=np.uint8).reshape(int(height), int(width), 3)


def jitter(pixels: np.ndarray, rng: random.Random) -> np.ndarray:
    """Turn the hue and scale saturation and brightness, the same way for the whole picture."""
    turn = rng.uniform(-0.1, 0.1)
    richer, brighter = rng.uniform(0.7, 1.3), rng.uniform(0.8, 1.2)
    changed = []
    for r, g, b in (pixels.reshape(-1, 3) / 255).tolist():
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        h, s, v = (h + turn) % 1, min(s * richer, 1), min(v * brighter, 1)
        changed.append(colorsys.hsv_to_rgb(h, s, v))
    return np.array(changed, dtype=np.float32).reshape(pixels.shape)


class Pictures(Dataset):
    def __init__(self, count: int, seed: int, augment: bool):
        rng = np.random.default_rng(seed)
        self.labels = [i % len(SHAPES) for i in range(count)]
        self.files = [encode(draw(SHAPES[label], rng)) for label in self.labels]
        self.seed, self.augment = seed, augment

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pixels = decode(self.files[index])
        top = left = (SIZE - CROP) // 2
        # Seeded by index, so that a picture is cut the same way whoever loads it.
        rng = random.Random(self.seed + index)
        if self.augment:
            top, left = rng.randrange(SIZE - CROP + 1), rng.randrange(SIZE - CROP + 1)
        pixels = pixels[top : top + CROP, left : left + CROP]
        if self.augment and rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        scaled = jitter(pixels, rng) if self.augment else pixels.astype(np.float32) / 255
        return torch.from_numpy(scaled).permute(2, 0, 1).contiguous() - 0.5, self.labels[index]


def make_model() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers.append(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1))
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, len(SHAPES)))


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader, device: str) -> float:
    model.eval()
    right = sum((model(x.to(device)).argmax(1) == y.to(device)).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for image_cnn.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the network is too small to gain from a second one
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_set = Pictures(660, seed=args.seed, augment=True)
    test_set = Pictures(64, seed=args.seed + 1_000_000, augment=False)
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, num_workers=args.workers)
    test_loader = DataLoader(test_set, args.batch_size, num_workers=args.workers)
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    args.out.mkdir(parents=True, exist_ok=True)

    for epoch in range(1, args.epochs + 1):
        for step, (images, labels) in enumerate(train_loader):
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step:3d}  loss {loss.item():.4f}", flush=True)
        print(f"epoch {epoch} test accuracy {accuracy(model, test_loader, device):.1%}", flush=True)
        state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, args.out / "image_cnn.pt")


if __name__ == "__main__":
    main()

"""ResNet-18 and ResNet-50, as He et al. describe them, on pictures that are made from a seed."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from hotloop.workloads.common import Repeated, Workload
from hotloop.workloads.encoded import Encoded, is_heads


def convolution(channels: int, filters: int, size: int, stride: int = 1) -> list[Any]:
    layer = nn.Conv2d(channels, filters, size, stride, padding=size // 2, bias=False)
    return [layer, nn.BatchNorm2d(filters)]


class Block(nn.Module):  # type: ignore[misc]
    """Two convolutions, or with `wide` three around a narrow middle, and a way past them."""

    def __init__(self, channels: int, filters: int, stride: int, wide: bool) -> None:
        super().__init__()
        out = filters * (4 if wide else 1)
        if wide:
            layers = [
                *convolution(channels, filters, 1),
                nn.ReLU(inplace=True),
                *convolution(filters, filters, 3, stride),
                nn.ReLU(inplace=True),
                *convolution(filters, out, 1),
            ]
        else:
            layers = [
                *convolution(channels, filters, 3, stride),
                nn.ReLU(inplace=True),
                *convolution(filters, filters, 3),
            ]
        self.body = nn.Sequential(*layers)
        changes = stride != 1 or channels != out
        self.past = nn.Sequential(*convolution(channels, out, 1, stride)) if changes else None

    def forward(self, x: Any) -> Any:
        past = x if self.past is None else self.past(x)
        return torch.relu(self.body(x) + past)


class ResNet(nn.Module):  # type: ignore[misc]
    def __init__(self, blocks: tuple[int, ...], wide: bool, classes: int, width: int = 64) -> None:
        super().__init__()
        channels = width
        stem = [*convolution(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        body: list[Any] = []
        for stage, count in enumerate(blocks):
            filters = width * 2**stage
            for number in range(count):
                stride = 2 if stage and not number else 1
                body.append(Block(channels, filters, stride, wide))
                channels = filters * (4 if wide else 1)
        self.features = nn.Sequential(*stem, *body)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Any) -> Any:
        return self.head(self.features(x).mean((2, 3)))


def cut(size: int, picture: Any, label: Any) -> Any:
    """A square out of it, often mirrored, in numbers around zero."""
    top, left = (int(torch.randint(side - size + 1, ())) for side in picture.shape[1:])
    picture = picture[:, top : top + size, left : left + size]
    if is_heads():
        picture = picture.flip(-1)
    return (picture.float() / 255 - 0.5) / 0.25, label


class ResNet18(Workload):
    batch_size = 32
    size = 224
    classes = 1000
    width = 64
    pool = 128
    lr = 0.1
    blocks = (2, 2, 2, 2)
    wide = False

    def model(self) -> Any:
        return self.built(ResNet(self.blocks, self.wide, self.classes, self.width))

    def data(self) -> Any:
        labels = torch.randint(self.classes, (self.pool,))
        if self.decode:
            large = self.size * 8 // 7
            pictures = torch.randint(256, (self.pool, 3, large, large), dtype=torch.uint8)
            columns = pictures // 32 * 32, labels  # plain noise would not be compressed at all
            return Encoded(columns, self.steps * self.batch_size, partial(cut, self.size))
        pictures = self.number(torch.randn(self.pool, 3, self.size, self.size))
        columns = pictures.to(self.place), labels.to(self.place)
        return Repeated(columns, self.steps * self.batch_size)

    def loss(self, model: Any, batch: Any) -> Any:
        x, y = batch
        return nn.functional.cross_entropy(model(x), y)

    def optimizer(self, parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=0.9, weight_decay=1e-4)


class ResNet50(ResNet18):
    blocks = (3, 4, 6, 3)
    wide = True

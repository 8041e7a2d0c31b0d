"""A 3D UNet on volumes that are made from a seed; and MONAI's, where that is installed."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hotloop.errors import JobInvalid
from hotloop.workloads.common import Repeated, Workload
from hotloop.workloads.encoded import Encoded, is_heads


def convolve(channels: int, filters: int, stride: int = 1) -> Any:
    return nn.Sequential(
        nn.Conv3d(channels, filters, 3, stride, padding=1, bias=False),
        nn.InstanceNorm3d(filters, affine=True),
        nn.LeakyReLU(0.01, inplace=True),
    )


class UNet(nn.Module):  # type: ignore[misc]
    """Down by strided convolutions, up by transposed ones, each level joined to its like."""

    def __init__(self, channels: int, classes: int, filters: tuple[int, ...]) -> None:
        super().__init__()
        widths = (channels, *filters)
        self.down = nn.ModuleList(
            nn.Sequential(convolve(a, b, 2 if level else 1), convolve(b, b))
            for level, (a, b) in enumerate(zip(widths[:-1], filters, strict=True))
        )
        pairs = list(zip(filters[::-1], filters[-2::-1], strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose3d(a, b, 2, 2) for a, b in pairs)
        self.join = nn.ModuleList(
            nn.Sequential(convolve(2 * b, b), convolve(b, b)) for _, b in pairs
        )
        self.head = nn.Conv3d(filters[0], classes, 1)

    def forward(self, x: Any) -> Any:
        kept = []
        for level in self.down:
            x = level(x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


def turned(volume: Any, label: Any) -> Any:
    """Mirrored along some of its axes, brighter or darker; the label with it."""
    axes = [axis for axis in (-3, -2, -1) if is_heads()]
    shade = 0.9 + 0.2 * torch.rand(())
    return volume.flip(axes).float() / 8 * shade, label.flip(axes).long()


class UNet3d(Workload):
    batch_size = 2
    volume = 96
    channels = 1
    classes = 3
    width = 32
    levels = 5
    pool = 8
    lr = 1e-3

    @property
    def filters(self) -> tuple[int, ...]:
        return tuple(self.width * 2 ** min(level, 4) for level in range(self.levels))

    def model(self) -> Any:
        return self.built(UNet(self.channels, self.classes, self.filters))

    def data(self) -> Any:
        """Noise with a ball in it somewhere: the label says where it is."""
        size, place = self.volume, "cpu" if self.decode else self.place
        axes = torch.arange(size, dtype=torch.float32)
        volumes, labels = [], []
        for _ in range(self.pool):
            z, y, x = (axes - float(torch.rand(()) * size) for _ in range(3))
            far = (z[:, None, None] ** 2 + y[None, :, None] ** 2 + x[None, None, :] ** 2).sqrt()
            label = (far < size / 4).long() + (far < size / 8).long()
            volumes.append((torch.randn(self.channels, size, size, size) + label).to(place))
            labels.append(label.to(place))
        samples = self.steps * self.batch_size
        if self.decode:
            grey = (torch.stack(volumes) * 8).round().clamp(-128, 127).to(torch.int8)
            return Encoded((grey, torch.stack(labels).byte()), samples, turned)
        columns = self.number(torch.stack(volumes)), torch.stack(labels)
        return Repeated(columns, samples)

    def loss(self, model: Any, batch: Any) -> Any:
        x, y = batch
        return nn.functional.cross_entropy(model(x), y)

    def optimizer(self, parameters: Any) -> Any:
        return torch.optim.AdamW(parameters, lr=self.lr)


class MonaiUNet3d(UNet3d):
    """The same data through MONAI's own network."""

    def model(self) -> Any:
        try:
            from monai.networks.nets import UNet as Monai  # type: ignore[import-not-found]
        except ImportError as error:
            raise JobInvalid(
                f"MonaiUNet3d needs MONAI, which cannot be imported ({error}).",
                "Install it: pip install monai.",
            ) from None

        return self.built(
            Monai(
                spatial_dims=3,
                in_channels=self.channels,
                out_channels=self.classes,
                channels=self.filters,
                strides=(2,) * (self.levels - 1),
                num_res_units=2,
            )
        )

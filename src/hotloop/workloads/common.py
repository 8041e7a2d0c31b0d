"""What the built-in jobs share: where their data lies, how float32 is meant, what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from hotloop.training_job import TrainingJob


class Workload(TrainingJob):
    steps: int = 1000
    """In an epoch: more than a trial sees, unless it is to end by itself."""
    on_device: bool = True
    """Whether the data lies on the device already: then only the model's speed is measured."""
    decode: bool = False
    """Samples lie on the host, compressed: each is decoded and augmented when it is asked for."""
    tf32: str = "default"
    """"off": strict float32, also in cuDNN; "on": in matrix products too."""
    half: bool = False
    """Weights and data in float16, without autocast and without a scaler."""
    weights_out: str = ""
    """A file for the weights at the end."""
    compare: str = ""
    """Such a file of another run: how far these weights are from those is told."""
    told: str = ""
    """A JSON file for what came of it."""

    @property
    def place(self) -> Any:
        """Where data is made: on the device, or on the host."""
        usual = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.device((self.device or usual) if self.on_device else "cpu")

    def built(self, model: Any) -> Any:
        """The model as the settings want it."""
        if self.tf32 != "default":
            torch.backends.cuda.matmul.allow_tf32 = self.tf32 == "on"
            torch.backends.cudnn.allow_tf32 = self.tf32 == "on"
        return model.half() if self.half else model

    def number(self, tensor: Any) -> Any:
        """Floating-point data in the format that the model computes in."""
        return tensor.half() if self.half else tensor

    def finished(self, trained: Any) -> None:
        state = {name: value.float().cpu() for name, value in trained.model.state_dict().items()}
        if self.weights_out:
            torch.save(state, self.weights_out)
        if self.told:
            found = {
                "loss": trained.epochs[-1].loss,
                "course": [epoch.loss for epoch in trained.epochs],
                "steps": sum(epoch.steps for epoch in trained.epochs),
            }
            if self.compare:
                found |= _distance(state, torch.load(self.compare, weights_only=True))
            Path(self.told).write_text(json.dumps(found), encoding="utf-8")


AHEAD = 2
"""Batches that are made ready before the GPU has come to them. A loop without any such bound queues
work for seconds, and what it then times is the queueing."""


class Repeated(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """A few samples over and over: an epoch of any length from data of any size."""

    def __init__(self, columns: tuple[Any, ...], length: int) -> None:
        self.columns = columns
        self._length = length
        self._copies: list[Any] = []

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return tuple(column[index % len(column)] for column in self.columns)

    def __getitems__(self, indices: Any) -> Any:
        """A batch at once, by one indexing a column."""
        chosen = torch.as_tensor(indices) % len(self.columns[0])
        if self.columns[0].is_cuda:
            chosen = self._on_the_gpu(chosen)
        return tuple(column[chosen] for column in self.columns)

    def collate(self, batch: Any) -> Any:
        """It is put together already."""
        return batch

    def _on_the_gpu(self, chosen: Any) -> Any:
        """From pinned memory: any other copy would wait for all that is queued before it."""
        if len(self._copies) >= AHEAD:
            self._copies.pop(0).synchronize()
        there = chosen.pin_memory().to(self.columns[0].device, non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()
        self._copies.append(copied)
        return there


def _distance(state: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Of weights, relative to how large the weights of their tensor are on average."""
    apart = [
        (value - other[name]).abs() / other[name].abs().mean().clamp(min=1e-12)
        for name, value in state.items()
        if value.is_floating_point() and value.numel()
    ]
    every = torch.cat([one.flatten() for one in apart])
    return {"largest_difference": float(every.max()), "mean_difference": float(every.mean())}

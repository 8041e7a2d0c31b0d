"""Real torch, watched in this process, and found afterwards as it was before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.runtime.script import LOSSES
from hotloop.runtime.watching import Watch


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return torch


@pytest.fixture
def jobs(torch: Any) -> Any:
    """`tests.runtime.jobs`, which imports torch."""
    from tests.runtime import jobs

    return jobs


@pytest.fixture
def unharmed(torch: Any) -> Iterator[None]:
    """Whatever a test does to torch is undone at its end."""
    before = fingerprint(torch)
    yield
    assert fingerprint(torch) == before


@pytest.fixture
def watch(torch: Any, unharmed: None) -> Iterator[Watch]:
    watch = Watch(torch)
    watch.driver.attach()
    yield watch
    watch.driver.detach()


def fingerprint(torch: Any) -> dict[str, Any]:
    """What stands where something of ours could be."""
    data = torch.utils.data.dataloader
    owners = (
        torch.nn.Module,
        torch.nn.Sequential,
        torch.nn.Linear,
        data.DataLoader,
        data._BaseDataLoaderIter,
        data._SingleProcessDataLoaderIter,
        torch.autograd,
        torch.amp.grad_scaler.GradScaler,
        torch.optim.Optimizer,
        torch.Tensor,
    )
    special = ["__call__", "__iter__", "__next__", "__init__"]
    names = [*special, "backward", "grad", "scale", "zero_grad", "step", "to", "cuda", "forward"]
    found = {
        f"{owner.__name__}.{name}": vars(owner)[name]
        for owner in owners
        for name in names
        if name in vars(owner)
    }
    found["torch.set_num_threads"] = torch.set_num_threads
    found["torch.compile"] = torch.compile
    found |= {f"functional.{name}": getattr(torch.nn.functional, name) for name in LOSSES}
    hooks = sys.modules["torch.optim.optimizer"]  # torch.optim hides it
    found["step hooks before"] = list(hooks._global_optimizer_pre_hooks)
    found["step hooks after"] = list(hooks._global_optimizer_post_hooks)
    return found

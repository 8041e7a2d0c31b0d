"""Real torch, and small jobs that only import it where it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def without_onednn() -> Iterator[Any]:
    """In a virtual machine that lists AMX but does not let it run, oneDNN's products in 16 bits end
    the process by an illegal instruction."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    with torch.backends.mkldnn.flags(enabled=False):
        yield torch


@pytest.fixture
def fresh_torch() -> Iterator[Any]:
    """Which has compiled nothing yet."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield torch
    torch._dynamo.reset()


@pytest.fixture
def quick(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured and rewritten as ever, and then run as they are."""
    from hotloop.levers import graphs

    eager = torch._dynamo.lookup_backend("eager")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.levers import jobs

    return jobs


@pytest.fixture
def owned(torch: Any) -> Any:
    """Jobs that are described, whose loop is ours."""
    from hotloop.runtime.owned import augmenting
    from tests.runtime.owned import jobs

    augmenting.switch_on()  # an examination, in this very process, may have switched it off
    return jobs


@pytest.fixture
def pretended_gpu(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinning is a pretence: loaders copy batches instead, and say they are pinned."""
    pinned: list[Any] = []

    def pin(batch: Any, device: Any = None) -> Any:
        copies = [tensor.clone() for tensor in batch]
        pinned.extend(copies)  # and so their memory is not used again
        return copies

    def is_pinned(tensor: Any) -> bool:
        memory = tensor.untyped_storage().data_ptr()
        return any(memory == known.untyped_storage().data_ptr() for known in pinned)

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.utils.data._utils.pin_memory, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "is_pinned", is_pinned)

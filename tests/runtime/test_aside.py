"""What autograd keeps, laid aside: on a CPU another of its own stands in for the host's memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hotloop.runtime import aside
from hotloop.runtime.aside import Aside

PLENTY = 2**40


@contextmanager
def attached(torch: Any, one: Aside) -> Iterator[None]:
    one.attach()
    try:
        yield
    finally:
        torch._C._autograd._pop_saved_tensors_default_hooks()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that a test has."""
    monkeypatch.setattr(aside, "LEAST", 1024)
    monkeypatch.setattr(aside, "ASKED_EVERY", 1024)


def gradients(torch: Any) -> list[Any]:
    """Of attention over parts of one tensor, which lie apart in memory, and of a convolution."""
    torch.manual_seed(0)
    project, convolve = torch.nn.Linear(32, 96), torch.nn.Conv2d(4, 4, 3)
    x = torch.randn(2, 16, 32, requires_grad=True)
    parts = project(x).chunk(3, dim=-1)
    q, k, v = (part.view(2, 16, 4, 8).transpose(1, 2) for part in parts)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
    pictures = y.to(memory_format=torch.channels_last).expand(2, 4, 16, 8)
    convolve(torch.relu(pictures)).square().mean().backward()
    return [x.grad, *(p.grad for p in (*project.parameters(), *convolve.parameters()))]


def test_the_same_gradients_to_the_bit(torch: Any, small: None) -> None:
    plain = gradients(torch)
    one = Aside(torch, "cpu", lambda: PLENTY)
    with attached(torch, one):
        assert all(map(torch.equal, gradients(torch), plain))


def test_what_is_large_lies_elsewhere_in_its_own_order(torch: Any, small: None) -> None:
    one = Aside(torch, "cpu", lambda: PLENTY)
    large = torch.randn(8, 4, 5, 5).to(memory_format=torch.channels_last)
    device, laid, shape = one._lay(large)
    assert (device, laid.stride(), shape) == (large.device, large.stride(), large.shape)
    assert laid.data_ptr() != large.data_ptr()
    assert torch.equal(one._fetch((device, laid, shape)), large)


def test_what_is_repeated_lies_there_once(torch: Any, small: None) -> None:
    one = Aside(torch, "cpu", lambda: PLENTY)
    mask = torch.randn(1, 1, 32, 32).expand(4, 8, 32, 32)
    kept = one._lay(mask)
    assert kept[1].shape == (1, 1, 32, 32)
    assert torch.equal(one._fetch(kept), mask)


def test_what_is_small_or_on_another_device_stays(torch: Any, small: None) -> None:
    few, many = torch.randn(4), torch.randn(4096)
    assert Aside(torch, "cpu", lambda: PLENTY)._lay(few).data_ptr() == few.data_ptr()
    assert Aside(torch, "cuda", lambda: PLENTY)._lay(many).data_ptr() == many.data_ptr()


def test_weights_stay_the_very_same(torch: Any, small: None) -> None:
    """A function that adds to their gradients itself needs them, and they lie there anyway."""
    weight = torch.nn.Parameter(torch.randn(64, 64))
    one = Aside(torch, "cpu", lambda: PLENTY)
    assert one._lay(weight) is weight
    assert one._lay(weight.t()).data_ptr() == weight.data_ptr()


def test_what_is_never_differentiated_is_given_back(torch: Any, small: None) -> None:
    """Small results, too: a node that held its own by the name it gave it would never be freed."""
    one = Aside(torch, "cpu", lambda: PLENTY)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Sigmoid(), torch.nn.Linear(64, 1))
    with attached(torch, one):
        for _ in range(3):
            torch.sigmoid(model(torch.randn(64, 64))).mean().item()
    gc.collect()
    assert one._laid == 0


def test_a_host_without_memory_is_not_filled(torch: Any, small: None) -> None:
    left = PLENTY
    one = Aside(torch, "cpu", lambda: left)
    kept = [one._lay(torch.randn(4096))]
    left = 2**20
    for _ in range(2):  # whoever goes on all the same
        with pytest.raises(MemoryError, match="host's memory"):
            one._lay(torch.randn(4096))
    kept.clear()
    kept.append(one._lay(torch.randn(4096)))  # what torch has had once it has


def test_nobody_says_how_much_is_left(torch: Any, small: None) -> None:
    assert isinstance(Aside(torch, "cpu", lambda: None)._lay(torch.randn(4096)), tuple)


@pytest.mark.gpu
def test_on_a_gpu(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    def peak_and_gradients() -> tuple[int, list[Any]]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(16))).cuda()
        x = torch.randn(8192, 512, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        model(x).square().mean().backward()
        return torch.cuda.max_memory_allocated(), [p.grad for p in model.parameters()]

    most, plain = peak_and_gradients()
    with attached(torch, Aside(torch)):
        less, same = peak_and_gradients()
    assert all(map(torch.equal, plain, same))
    assert less < 0.7 * most

"""Without a GPU, pinning is a pretence: loaders copy batches instead, and say they are pinned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.levers.pin_memory import PinMemory
from hotloop.measurement import Software
from tests import builders


def copy(seams: Any, tensor: Any, *args: Any, **kwargs: Any) -> bool:
    """Pretends to copy a tensor to the GPU, and says whether without waiting."""
    for tell in seams.move.before:
        tell((tensor, *args), kwargs)
    return bool(kwargs.get("non_blocking", False))


def test_pretended_batches_are_pinned_and_copied_without_waiting(
    jobs: Any, pretended_gpu: None
) -> None:
    lever = PinMemory()
    with jobs.under(lever) as seams:
        batches = jobs.loader()
        for x, y in batches:
            assert copy(seams, x, "cuda")
            assert copy(seams, y[:2])
    assert batches.pin_memory
    assert lever.receipt().applied
    assert lever.receipt().evidence == {"loaders": 1, "copies": 12}


def test_pretended_batches_of_any_shape_are_recognised(
    jobs: Any, torch: Any, pretended_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Own:
        def __init__(self, x: Any) -> None:
            self.x = x

    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: True)
    pin = torch.utils.data._utils.pin_memory
    for shape in (lambda x: x, lambda x: {"a": [x]}, Own, lambda x: ("name", 3, None, x)):
        monkeypatch.setattr(pin, "pin_memory", lambda batch, device, shape=shape: shape(batch[0]))
        lever = PinMemory()
        with jobs.under(lever) as seams:
            batch = next(iter(jobs.loader()))
            inside = [batch] if isinstance(batch, torch.Tensor) else None
            if inside is None:
                values = getattr(batch, "__dict__", batch)
                parts = list(values.values() if isinstance(values, dict) else values)
                inside = [part[0] if isinstance(part, list) else part for part in parts[-1:]]
            assert copy(seams, inside[0], "cuda")


def test_memory_the_script_has_pinned_itself_is_copied_as_it_was(
    jobs: Any, torch: Any, pretended_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: True)
    with jobs.under(PinMemory()) as seams:
        for _ in jobs.loader():
            assert not copy(seams, torch.ones(3), "cuda")


def test_what_is_no_longer_pinned_is_copied_as_it_was(
    jobs: Any, torch: Any, pretended_gpu: None
) -> None:
    lever = PinMemory()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            assert not copy(seams, x * 2, "cuda")
            assert not copy(seams, x.to_sparse(), "cuda")
    assert not lever.receipt().applied
    assert "was copied to a GPU" in lever.receipt().reason


def test_an_argument_by_position_is_not_given_twice(
    jobs: Any, torch: Any, pretended_gpu: None
) -> None:
    with jobs.under(PinMemory()) as seams:
        for x, _ in jobs.loader():
            assert not copy(seams, x, "cuda", torch.float32, False)


def test_it_does_not_claim_what_the_script_does_already(jobs: Any, pretended_gpu: None) -> None:
    lever = PinMemory()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader(pin_memory=True):
            copy(seams, x, "cuda", non_blocking=True)
    assert not lever.receipt().applied
    assert "already pins" in lever.receipt().reason


def test_a_script_that_pins_but_waits_is_helped(jobs: Any, pretended_gpu: None) -> None:
    lever = PinMemory()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader(pin_memory=True):
            assert copy(seams, x, "cuda")
    assert lever.receipt().evidence == {"loaders": 0, "copies": 6}


def test_a_script_that_does_not_wait_but_does_not_pin_is_helped(
    jobs: Any, pretended_gpu: None
) -> None:
    lever = PinMemory()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            assert copy(seams, x, "cuda", non_blocking=True)
    assert lever.receipt().applied


def test_data_on_the_device_is_not_pinned(jobs: Any, torch: Any, pretended_gpu: None) -> None:
    lever = PinMemory()
    with jobs.under(lever):
        assert not jobs.loader(jobs.Numbers(x=torch.empty(2, device="meta"))).pin_memory
    assert "lives on the GPU" in lever.receipt().reason


def test_without_a_gpu_nothing_is_changed(
    jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    lever = PinMemory()
    plain = jobs.train()
    with jobs.under(lever):
        assert not jobs.loader().pin_memory
        assert jobs.train() == plain
    assert lever.receipt().reason == "there is no GPU to copy to"


def test_without_a_loader(jobs: Any) -> None:
    lever = PinMemory()
    with jobs.under(lever):
        pass
    assert lever.receipt().reason == "the script has no loader"


def measured(copying: float) -> Any:
    log = builders.Log()
    for _ in range(20):
        log.data(1, 8).copy(copying).forward(5, 8).backward(8).optimizer(3)
    measurement = builders.measurement(log.events)
    return replace(measurement, software=Software(device=builders.GPU))


def test_it_expects_to_win_what_copying_takes(jobs: Any) -> None:
    expected = PinMemory.expected(jobs.seen(measurement=measured(3)))
    assert expected.is_worth_trying
    assert expected.share == pytest.approx(0.15)


def test_it_refuses_what_it_cannot_help(jobs: Any) -> None:
    assert "on a CPU" in PinMemory.expected(jobs.seen()).reason
    assert "of a step" in PinMemory.expected(jobs.seen(measurement=measured(0.01))).reason
    without = jobs.seen(measurement=measured(3), loaders=[])
    assert PinMemory.expected(without).reason == "the script has no loader"


@pytest.mark.gpu
@pytest.mark.parametrize("workers", [0, 2])
def test_on_a_gpu_batches_arrive_as_they_are(jobs: Any, torch: Any, workers: int) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")

    def arrived() -> list[Any]:
        return [
            (x.to("cuda").cpu().tolist(), y.cuda().cpu().tolist())
            for x, y in jobs.loader(num_workers=workers)
        ]

    plain = arrived()
    lever = PinMemory()
    with jobs.under(lever):
        assert arrived() == plain
    assert lever.receipt().evidence == {"loaders": 1, "copies": 12}

"""TF32 exists on a GPU alone; elsewhere a pretended torch answers for one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers.tf32 import Tf32
from hotloop.measurement import Precision, Software
from hotloop.seams import Seams
from tests import builders


def pretended(is_initialized: bool = True, capability: tuple[int, int] = (9, 0)) -> Any:
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_initialized=lambda: is_initialized, get_device_capability=lambda: capability
        ),
        backends=SimpleNamespace(
            cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)),
            cudnn=SimpleNamespace(allow_tf32=False),
        ),
    )


def applied_to(torch: Any) -> Tf32:
    lever = Tf32()
    lever.apply(torch, Seams())
    return lever


def test_on_a_pretended_gpu_it_is_turned_on() -> None:
    torch = pretended()
    lever = applied_to(torch)
    assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cudnn.allow_tf32
    assert lever.receipt().applied


def test_it_cannot_take_effect_without_such_a_gpu() -> None:
    assert applied_to(pretended(False)).receipt().reason == "the job does not use a GPU"
    assert applied_to(pretended(capability=(7, 5))).receipt().reason == "this GPU has no TF32"


def test_a_script_may_turn_it_off_again() -> None:
    torch = pretended()
    lever = applied_to(torch)
    torch.backends.cuda.matmul.allow_tf32 = False
    assert lever.receipt().reason == "the script turned it off again"


def test_on_a_cpu_the_real_torch_computes_as_before(
    jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    lever = Tf32()
    plain = jobs.train()
    with jobs.precision_put_back(), jobs.under(lever):
        assert jobs.train() == plain
        assert torch.backends.cuda.matmul.allow_tf32  # a script may still read the older setting
    assert lever.receipt().reason == "the job does not use a GPU"


def test_what_it_expects(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))

    def expected(**precision: Any) -> Any:
        return Tf32.expected(jobs.seen(measurement=on_gpu, precision=Precision(**precision)))

    assert expected().share == pytest.approx(0.325)
    assert "already turned it on" in expected(tf32_matmul=True).reason
    assert "bfloat16" in expected(autocast="bfloat16").reason
    assert "tensor cores" in Tf32.expected(jobs.seen()).reason


@pytest.mark.gpu
def test_on_a_gpu_products_are_rounded(jobs: Any, torch: Any) -> None:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("no GPU with TF32")
    torch.manual_seed(0)
    x = torch.randn(512, 512, device="cuda")
    with jobs.precision_put_back():
        torch.backends.cuda.matmul.allow_tf32 = False
        plain = x @ x
        lever = applied_to(torch)
        assert not torch.equal(x @ x, plain)
        assert lever.receipt().applied

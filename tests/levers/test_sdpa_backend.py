"""The switches and the graphs are real; kernels of a GPU are pretended by the names of nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.inspection import Inspection, Operators
from hotloop.levers.sdpa_backend import CUDNN, OFF, TAG, SdpaBackend, compiled, differentiated
from hotloop.measurement import Software
from tests import builders


class Node:
    def __init__(self, name: str, *inputs: Any) -> None:
        self.name = lambda: name
        self.next_functions = [(node, 0) for node in (*inputs, None)]


@pytest.fixture(autouse=True)
def pretended_gpu(jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with jobs.switches_put_back():
        yield


def loss_through(kernel: str) -> Any:
    attention = Node(f"ScaledDotProduct{kernel}AttentionBackward0", Node("AddmmBackward0"))
    return SimpleNamespace(grad_fn=Node("AddBackward0", attention, attention))


def train(jobs: Any, lever: SdpaBackend, kernel: str = "", again: Any = None) -> None:
    """`kernel`: what autograd says to have run; `again`: what the script does about it."""
    with jobs.under(lever) as seams:
        if again:
            again(True)
        for tell in list(seams.backward.before) if kernel else []:
            tell((loss_through(kernel),), {})
        jobs.train()


@pytest.mark.parametrize("order", OFF)
def test_what_an_order_does_without_is_off(order: str, jobs: Any, torch: Any) -> None:
    kernel = "Efficient" if order == "efficient" else "Flash"
    lever = SdpaBackend(order)
    train(jobs, lever, kernel)
    cuda = torch.backends.cuda
    assert not cuda.cudnn_sdp_enabled()
    assert cuda.flash_sdp_enabled() == (order != "efficient")
    assert cuda.mem_efficient_sdp_enabled() == (order != "flash")
    assert cuda.math_sdp_enabled()
    assert lever.receipt().evidence == {"kernels": kernel.lower(), "steps": 12}


def test_a_kernel_that_ran_all_the_same_shows(jobs: Any) -> None:
    lever = SdpaBackend()
    train(jobs, lever, "Cudnn")
    assert lever.receipt().reason == "attention ran in the kernel 'cudnn' all the same"


def test_the_script_may_turn_it_on_again(jobs: Any, torch: Any) -> None:
    lever = SdpaBackend()
    train(jobs, lever, "Flash", torch.backends.cuda.enable_cudnn_sdp)
    assert lever.receipt().reason == "the script turned a kernel on again"


def test_without_attention_it_did_nothing(jobs: Any) -> None:
    lever = SdpaBackend()
    train(jobs, lever)
    assert lever.receipt().reason == "no fused attention was seen to run"


def test_a_cpus_attention_is_not_a_gpus(torch: Any) -> None:
    x = torch.randn(1, 2, 8, 4, requires_grad=True)
    loss = torch.nn.functional.scaled_dot_product_attention(x, x, x).sum()
    names = []
    pending = [loss.grad_fn]
    while pending:
        node = pending.pop()
        names.append(node.name())
        pending += [one for one, _ in node.next_functions if one is not None]
    assert any("ScaledDotProduct" in name for name in names)  # autograd does tell
    assert differentiated([loss]) == set()


def test_compiled_code_says_what_it_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "generated.py"
    source.write_text("buf = torch.ops.aten._scaled_dot_product_cudnn_attention.default(q, k, v)")
    other = tmp_path / "cpu.py"
    other.write_text("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(q)")
    gone = SimpleNamespace(__file__=str(tmp_path / "gone.py"))
    modules = [SimpleNamespace(__file__=str(path)) for path in (source, other)]
    cache = SimpleNamespace(PyCodeCache=SimpleNamespace(modules=[*modules, gone]))
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", cache)
    assert compiled() == {"cudnn"}


def test_compiled_code_of_another_order_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TAG, raising=False)
    assert SdpaBackend("flash").environment() == {TAG: "sdpa_flash"}
    monkeypatch.setenv(TAG, "mine")
    assert SdpaBackend().environment() == {TAG: "mine-sdpa_no_cudnn"}


def test_what_it_expects(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))

    def expected(*operators: str) -> Any:
        look = Inspection(operators=Operators(by_name=dict.fromkeys(operators, 4)))
        return SdpaBackend.expected(replace(jobs.seen(measurement=on_gpu), inspection=look))

    assert expected(CUDNN, "mm").share == pytest.approx(0.325)
    assert "cuDNN's attention" in expected("_scaled_dot_product_flash_attention").reason
    assert "no run looked for" in SdpaBackend.expected(jobs.seen(measurement=on_gpu)).reason
    assert "CPU" in SdpaBackend.expected(jobs.seen()).reason


def test_an_order_must_be_known() -> None:
    assert "no_cudnn, flash, efficient" in SdpaBackend("math").problem()


@pytest.mark.gpu
@pytest.mark.parametrize("order", OFF)
def test_on_a_gpu(order: str, torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("no GPU with fused attention")
    lever = SdpaBackend(order)
    with jobs.switches_put_back(), jobs.under(lever):
        layer = torch.nn.Linear(64, 64, device="cuda", dtype=torch.bfloat16)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(4):
            x = layer(torch.randn(2, 4, 32, 64, device="cuda", dtype=torch.bfloat16))
            torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().backward()
            optimizer.step()
    expected = "efficient" if order == "efficient" else "flash"
    assert lever.receipt().evidence["kernels"] == expected

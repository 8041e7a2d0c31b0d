"""cuDNN is on a GPU alone. The switch is real; that the job is on a GPU is pretended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.levers.cudnn_benchmark import CudnnBenchmark
from hotloop.measurement import Precision, Software
from tests import builders


@pytest.fixture(autouse=True)
def pretended_gpu(jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    deterministic = torch.backends.cudnn.deterministic
    monkeypatch.setattr(torch.backends.cudnn, "benchmark_limit", 10, raising=False)
    with jobs.switches_put_back():
        torch.backends.cudnn.benchmark = False
        yield
    torch.backends.cudnn.deterministic = deterministic
    torch.use_deterministic_algorithms(False)


def train(torch: Any, jobs: Any, lever: CudnnBenchmark, before: Any = None) -> None:
    """`before`: what the script does once torch is there."""
    with jobs.under(lever):
        if before:
            before()
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            model(torch.randn(1, 1, 4, 4)).sum().backward()
            optimizer.step()


def on_device(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of convolutions say that they are on the GPU."""

    class Weight(torch.nn.Parameter):  # type: ignore[misc]
        is_cuda = True

    build = torch.nn.Conv2d.__init__

    def made(module: Any, *args: Any) -> None:
        build(module, *args)
        module.weight = Weight(module.weight.detach())

    monkeypatch.setattr(torch.nn.Conv2d, "__init__", made)


def test_it_is_on_while_a_pretended_gpu_convolves(
    torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_device(torch, monkeypatch)
    lever = CudnnBenchmark()
    train(torch, jobs, lever)
    assert torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.benchmark_limit == 4
    assert lever.receipt().evidence == {"convolutions": 1, "steps": 4}


def test_convolutions_must_be_on_the_gpu(torch: Any, jobs: Any) -> None:
    lever = CudnnBenchmark()
    train(torch, jobs, lever)
    assert lever.receipt().reason == "no convolution of the model is on the GPU"


def test_a_script_that_wants_the_same_bits_gets_them(torch: Any, jobs: Any) -> None:
    def of_torch() -> None:
        torch.use_deterministic_algorithms(True)

    def of_cudnn() -> None:
        torch.backends.cudnn.deterministic = True

    for wish in (of_torch, of_cudnn):
        lever = CudnnBenchmark()
        train(torch, jobs, lever, wish)
        assert not torch.backends.cudnn.benchmark
        assert lever.receipt().reason == "the script asks for deterministic algorithms"
        torch.use_deterministic_algorithms(False)


def test_a_script_may_turn_it_off_again(torch: Any, jobs: Any) -> None:
    def off() -> None:
        torch.backends.cudnn.benchmark = False

    lever = CudnnBenchmark()
    train(torch, jobs, lever, off)
    assert lever.receipt().reason == "the script turned it off again"


def test_without_a_gpu_it_does_nothing(
    torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    lever = CudnnBenchmark()
    train(torch, jobs, lever)
    assert lever.receipt().reason == "the job does not use a GPU"


def test_what_it_expects(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    models = [builders.model(convolutions=2)]

    def expected(**changes: Any) -> Any:
        changes = {"measurement": on_gpu, "models": models, **changes}
        return CudnnBenchmark.expected(jobs.seen(**changes))

    assert expected().share == pytest.approx(0.65 * 0.15)
    assert "deterministic" in expected(precision=Precision(deterministic=True)).reason
    assert "already" in expected(precision=Precision(cudnn_benchmark=True)).reason
    assert "convolutions" in expected(models=[builders.model()]).reason
    assert not expected(models=[builders.model(convolutions_1d=2)]).reason
    assert "NVIDIA" in expected(measurement=None).reason


@pytest.mark.gpu
def test_on_a_gpu(torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    lever = CudnnBenchmark()
    with jobs.switches_put_back(), jobs.under(lever):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten()).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            model(torch.randn(2, 3, 16, 16, device="cuda")).sum().backward()
            optimizer.step()
    assert lever.receipt().applied

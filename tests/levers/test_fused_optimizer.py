from __future__ import annotations

import copy
from typing import Any

import pytest

from hotloop.levers.channels_last import ChannelsLast
from hotloop.levers.fused_optimizer import FusedOptimizer
from tests import builders

KINDS = [
    ("AdamW", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adagrad", {}),
]


def refusal(jobs: Any, kind: str, **options: Any) -> str:
    """Why it leaves an optimizer alone."""
    lever = FusedOptimizer()
    plain = jobs.train(kind, **options)
    with jobs.under(lever):
        assert jobs.train(kind, **options) == plain
    assert not lever.receipt().applied
    return lever.receipt().reason


def step(optimizer: Any, *parameters: Any) -> None:
    for number, parameter in enumerate(parameters):
        parameter.grad = (parameter.detach() + number).cos()
    optimizer.step()


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_the_same_training_in_fused_kernels(jobs: Any, kind: str, options: dict[str, Any]) -> None:
    lever = FusedOptimizer()
    plain = jobs.train(kind, **options)
    with jobs.under(lever):
        assert jobs.train(kind, **options) == pytest.approx(plain, rel=1e-4)
    receipt = lever.receipt()
    assert receipt.applied
    assert receipt.evidence == {"optimizers": kind, "steps": len(plain), "launches_seen": 1}


def test_torch_is_left_as_it_was(jobs: Any, torch: Any) -> None:
    kernel = torch._fused_adamw_
    with jobs.under(FusedOptimizer()):
        jobs.train()
    assert torch._fused_adamw_ is kernel


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_with_a_gradient_scaler(jobs: Any, torch: Any, kind: str, options: dict[str, Any]) -> None:
    """A fused optimizer is handed scaled gradients, and unscales them itself."""

    def scaler() -> Any:
        return torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)

    lever = FusedOptimizer()
    plain = jobs.train(kind, scaler=scaler(), **options)
    with jobs.under(lever):
        losses = jobs.train(kind, scaler=scaler(), **options)
    assert losses == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().applied


def test_state_loaded_before_the_first_step_goes_on(jobs: Any, torch: Any) -> None:
    def resumed(checkpoint: Any) -> list[float]:
        parameter = torch.nn.Parameter(torch.arange(4.0))
        optimizer = torch.optim.Adam([parameter], lr=0.1)
        optimizer.load_state_dict(copy.deepcopy(checkpoint))
        step(optimizer, parameter)
        step(optimizer, parameter)
        return list(parameter.tolist())

    first = torch.nn.Parameter(torch.arange(4.0))
    optimizer = torch.optim.Adam([first], lr=0.1)
    step(optimizer, first)
    plain = resumed(optimizer.state_dict())
    with jobs.under(FusedOptimizer()):
        assert resumed(optimizer.state_dict()) == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize(("kind", "options"), [("Adam", {}), ("SGD", {"momentum": 0.9})])
def test_state_from_a_checkpoint_in_another_order_of_memory(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    """Fused kernels go over memory as it lies: on a GPU they refuse, on a CPU they mix it up."""

    def resumed(checkpoint: Any) -> Any:
        values = torch.arange(2.0 * 3 * 4 * 5).view(2, 3, 4, 5)
        parameter = torch.nn.Parameter(values.to(memory_format=torch.channels_last))
        optimizer = getattr(torch.optim, kind)([parameter], lr=0.1, **options)
        step(optimizer, parameter)
        optimizer.load_state_dict(copy.deepcopy(checkpoint))
        step(optimizer, parameter)
        return parameter.detach()

    first = torch.nn.Parameter(torch.arange(2.0 * 3 * 4 * 5).view(2, 3, 4, 5))
    optimizer = getattr(torch.optim, kind)([first], lr=0.1, **options)
    step(optimizer, first)
    plain = resumed(optimizer.state_dict())
    with jobs.under(FusedOptimizer()):
        assert torch.allclose(resumed(optimizer.state_dict()), plain, rtol=1e-5)


def test_settings_loaded_later_are_fused_again(jobs: Any, torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.arange(4.0))
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
    checkpoint = copy.deepcopy(optimizer.state_dict())
    del checkpoint["param_groups"][0]["fused"]  # as older ones are
    lever = FusedOptimizer()
    with jobs.under(lever):
        step(optimizer, parameter)
        optimizer.load_state_dict(checkpoint)
        assert not optimizer.param_groups[0]["fused"]
        step(optimizer, parameter)
        assert optimizer.param_groups[0]["fused"]
    assert lever.receipt().evidence["launches_seen"] == 2


def test_groups_added_later_are_fused_too(jobs: Any, torch: Any) -> None:
    first, second = (torch.nn.Parameter(torch.arange(4.0)) for _ in range(2))
    optimizer = torch.optim.AdamW([first])
    with jobs.under(FusedOptimizer()):
        step(optimizer, first)
        optimizer.add_param_group({"params": [second]})
        step(optimizer, first, second)
    assert [group["fused"] for group in optimizer.param_groups] == [True, True]
    assert optimizer._step_supports_amp_scaling  # as the constructor sets it


def test_a_parameter_may_get_its_first_gradient_later(jobs: Any, torch: Any) -> None:
    """Fused SGD with momentum, as torch has it, fails at that."""

    def late() -> list[float]:
        first, second = (torch.nn.Parameter(torch.arange(4.0)) for _ in range(2))
        optimizer = torch.optim.SGD([first, second], lr=0.1, momentum=0.9)
        step(optimizer, first)
        step(optimizer, first, second)
        step(optimizer, first, second)
        return [*first.tolist(), *second.tolist()]

    plain = late()
    lever = FusedOptimizer()
    with jobs.under(lever):
        assert late() == pytest.approx(plain, rel=1e-5)
    assert lever.receipt().applied


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_checkpoint_is_one_of_plain_torch(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    """Whoever loads it takes its settings over: fused kernels would go on in the plain job."""

    def begun() -> tuple[Any, Any]:
        parameter = torch.nn.Parameter(torch.arange(4.0))
        optimizer = getattr(torch.optim, kind)([parameter], lr=0.01, **options)
        step(optimizer, parameter)
        return parameter, optimizer

    plain, own = begun()
    with jobs.under(FusedOptimizer()):
        parameter, optimizer = begun()
        saved = copy.deepcopy(optimizer.state_dict())
        assert optimizer.param_groups[0]["fused"]  # it is only said otherwise
        step(optimizer, parameter)
    assert saved["param_groups"] == own.state_dict()["param_groups"]
    assert saved["state"].keys() == own.state_dict()["state"].keys()
    own.load_state_dict(saved)
    assert not own.param_groups[0]["fused"]
    step(own, plain)
    assert torch.allclose(plain, parameter, rtol=1e-5)


def test_what_the_script_has_chosen_stays(jobs: Any) -> None:
    assert refusal(jobs, "AdamW", fused=True) == "the script's AdamW is already fused"
    for options in ({"fused": False}, {"foreach": True}, {"foreach": False}):
        assert "chosen itself" in refusal(jobs, "AdamW", **options)


def test_an_optimizer_without_a_fused_kernel_stays(jobs: Any) -> None:
    assert refusal(jobs, "RMSprop") == "the script's RMSprop has no fused kernel"


def test_an_optimizer_of_the_scripts_own_stays(
    jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lever = FusedOptimizer()
    own = type("SGD", (torch.optim.SGD,), {})
    parameter = torch.nn.Parameter(torch.ones(2))
    with jobs.under(lever):
        step(own([parameter], lr=0.1), parameter)
    assert "no fused kernel" in lever.receipt().reason


def test_dampened_momentum_stays(jobs: Any) -> None:
    assert "dampening" in refusal(jobs, "SGD", momentum=0.9, dampening=0.1)


def test_sparse_gradients_and_complex_parameters_stay(jobs: Any, torch: Any) -> None:
    sparse, complex_ = FusedOptimizer(), FusedOptimizer()
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    with jobs.under(sparse):
        optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
        embedding(torch.tensor([1])).sum().backward()
        optimizer.step()
    with jobs.under(complex_):
        parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
        step(torch.optim.Adam([parameter]), parameter)
    assert "sparse" in sparse.receipt().reason
    assert "real numbers" in complex_.receipt().reason


def test_a_part_of_a_larger_tensor_stays(jobs: Any, torch: Any) -> None:
    whole = torch.arange(32.0).view(4, 8)
    parameter = torch.nn.Parameter(whole[:, :4])
    turned = torch.nn.Parameter(whole.clone().t())  # all of it, in another order
    lever = FusedOptimizer()
    with jobs.under(lever):
        step(torch.optim.SGD([turned], lr=0.1), turned)
        assert lever.receipt().applied
        step(torch.optim.SGD([parameter], lr=0.1), parameter)
    assert "gaps" in lever._reasons[0]
    assert torch.equal(whole[:, 4:], torch.arange(32.0).view(4, 8)[:, 4:])


def test_a_device_without_the_kernel_stays(jobs: Any, torch: Any) -> None:
    """The meta device stands in for one: torch has no kernel of its own there."""
    lever = FusedOptimizer()
    with jobs.under(lever):
        parameter = torch.nn.Parameter(torch.ones(2, device="meta"))
        step(torch.optim.SGD([parameter], lr=0.1), parameter)
    assert lever.receipt().reason == "the script's SGD has no fused kernel for meta"


def test_without_a_step(jobs: Any) -> None:
    lever = FusedOptimizer()
    with jobs.under(lever):
        pass
    assert lever.receipt().reason == "no optimizer stepped"


def test_it_expects_to_win_half_of_the_optimizer(jobs: Any) -> None:
    expected = FusedOptimizer.expected(jobs.seen())
    assert expected.is_worth_trying
    assert expected.share == pytest.approx(0.075)


def test_it_refuses_what_it_cannot_help(jobs: Any) -> None:
    def reason(**changes: Any) -> str:
        seen = jobs.seen(optimizers=[builders.optimizer(**changes)])
        return FusedOptimizer.expected(seen).reason

    log = builders.Log()
    for _ in range(20):
        log.data(4, 8).forward(5, 8).backward(8).optimizer(0.05)
    quick = jobs.seen(measurement=builders.measurement(log.events))
    assert "already fused" in reason(fused=True)
    assert "chosen" in reason(foreach=True)
    assert reason(name="LBFGS") == "LBFGS has no fused kernel"
    assert "of a step" in FusedOptimizer.expected(quick).reason
    assert FusedOptimizer.expected(jobs.seen(optimizers=[])).reason == "no optimizer steps"


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "options"), KINDS[:4])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_on_a_gpu(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any], is_scaled: bool
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")

    def trained() -> list[float]:
        torch.manual_seed(5)
        model = torch.nn.Linear(8, 8).cuda()
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options)
        scaler = torch.amp.GradScaler("cuda", enabled=is_scaled)
        losses = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = model(torch.ones(2, 8, device="cuda")).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        return losses

    lever = FusedOptimizer()
    plain = trained()
    with jobs.under(lever):
        assert trained() == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().applied


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "options"), KINDS[:4])
@pytest.mark.parametrize("is_fused", [False, True], ids=["", "the script fuses"])
def test_on_a_gpu_checkpoints_go_to_and_fro(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any], is_fused: bool
) -> None:
    """With channels last, too: both change what an optimizer keeps."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")

    def made() -> tuple[Any, Any]:
        torch.manual_seed(5)
        model = torch.nn.Conv2d(4, 8, 3).cuda()
        own = {"fused": True} if is_fused else {}
        return model, getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options, **own)

    def trained(checkpoint: Any = None) -> tuple[Any, Any]:
        model, optimizer = made()
        for number in range(6):
            if number == 3 and checkpoint is not None:  # once all is known, as in a soak
                model.load_state_dict(checkpoint[0])
                optimizer.load_state_dict(copy.deepcopy(checkpoint[1]))
            optimizer.zero_grad()
            model(torch.ones(2, 4, 8, 8, device="cuda")).square().mean().backward()
            optimizer.step()
        return copy.deepcopy((model.state_dict(), optimizer.state_dict()))

    plain = trained()
    further = trained(plain)
    with jobs.under(*([] if is_fused else [FusedOptimizer()]), ChannelsLast()):
        planned = trained()
        from_plain = trained(plain)
    from_planned = trained(planned)
    for one, other in ((plain, planned), (further, from_plain), (further, from_planned)):
        torch.testing.assert_close(one[0], other[0], rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(one[1]["state"], other[1]["state"], rtol=1e-3, atol=1e-5)
        assert one[1]["param_groups"] == other[1]["param_groups"]

from __future__ import annotations

import copy
import io
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from hotloop.levers.base import Receipt
from hotloop.levers.channels_last import ONLY_1D, ChannelsLast
from tests import builders

STEPS = 8


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch


@pytest.fixture
def known(torch: Any) -> Any:
    from tests.levers.jobs import seen

    return seen


def flat(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten()
    )


def deep(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Conv3d(3, 4, 3), nn.Flatten(2), nn.Unflatten(2, (2, -1)), flat_tail(nn))


def flat_tail(nn: Any) -> Any:
    return nn.Sequential(nn.Conv2d(4, 2, (1, 3)), nn.Flatten())


def train(torch: Any, model: Any, shape: tuple[int, ...], kind: str, **options: Any) -> list[float]:
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(2, *shape)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(
    torch: Any,
    make: Callable[[Any], Any],
    lever: ChannelsLast | None = None,
    shape: tuple[int, ...] = (3, 8, 8),
    kind: str = "AdamW",
    **options: Any,
) -> tuple[Any, list[float]]:
    from tests.levers.jobs import under

    torch.manual_seed(0)
    model = make(torch)
    with under(*([lever] if lever else [])):
        return model, train(torch, model, shape, kind, **options)


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
def test_weights_state_and_losses(options: dict[str, Any], torch: Any) -> None:
    lever = ChannelsLast()
    _, plain = run(torch, flat, **options)
    model, losses = run(torch, flat, lever, **options)
    assert losses == pytest.approx(plain, rel=1e-4)
    assert lever.receipt() == Receipt(
        "channels_last", True, evidence={"convolutions": 2, "converted": 2}
    )
    last = torch.channels_last
    assert model[0].weight.is_contiguous(memory_format=last)
    assert not model[0].weight.is_contiguous()


def test_activations_follow_the_weights(torch: Any) -> None:
    """Inputs come as they are: positional arguments cannot be changed at the seam."""
    model, _ = run(torch, flat, ChannelsLast())
    output = model[:4](torch.randn(2, 3, 8, 8))
    assert output.is_contiguous(memory_format=torch.channels_last)
    assert not output.is_contiguous()


def test_three_dimensions_and_both_in_one_model(torch: Any) -> None:
    lever = ChannelsLast()
    _, plain = run(torch, deep, shape=(3, 4, 5, 5))
    model, losses = run(torch, deep, lever, shape=(3, 4, 5, 5))
    assert losses == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().evidence == {"convolutions": 2, "converted": 2}
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last_3d)
    assert model[3][0].weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("kind", "options"), [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("RMSprop", {})]
)
def test_the_optimizers_state_follows(kind: str, options: dict[str, Any], torch: Any) -> None:
    """It was made in the first step, before the model was found."""
    from tests.levers.jobs import under

    lever, model = ChannelsLast(), flat(torch)
    kept: list[Any] = []
    with under(lever):
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 3, 8, 8)).square().mean().backward()
            optimizer.step()
            kept.append(optimizer.state[model[0].weight])
    state = [value for value in kept[-1].values() if getattr(value, "ndim", 0) == 4]
    assert state
    assert all(value.is_contiguous(memory_format=torch.channels_last) for value in state)
    assert not any(value.is_contiguous() for value in state)
    assert not lever._awaiting


def test_the_optimizers_state_follows_when_it_comes_from_a_checkpoint(torch: Any) -> None:
    from tests.levers.jobs import under

    model = flat(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(2, 3, 8, 8)).square().mean().backward()
        optimizer.step()

    step()
    plain = copy.deepcopy(optimizer.state_dict())
    with under(ChannelsLast()):
        step()
        step()
        optimizer.load_state_dict(plain)
        kept = optimizer.state[model[0].weight]["momentum_buffer"]
        assert kept.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(kept, plain["state"][0]["momentum_buffer"])
        step()


def test_a_plain_job_goes_on_from_the_optimizers_state(torch: Any) -> None:
    """Its fused kernels want state in the order of its own weights."""
    from tests.levers.jobs import under

    model = flat(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    with under(ChannelsLast()):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 3, 8, 8)).square().mean().backward()
            optimizer.step()
        saved = optimizer.state_dict()
        kept = optimizer.state[model[0].weight]["momentum_buffer"]
    assert not kept.is_contiguous()
    assert saved["state"][0]["momentum_buffer"].is_contiguous()
    assert torch.equal(saved["state"][0]["momentum_buffer"], kept)


@pytest.mark.parametrize("inner", ["_flatten", "_flatten_as_ptr", ""])
def test_safetensors_saves_it_as_the_plain_job(
    inner: str, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the library, which refuses as it does, in each of its versions."""
    library = ModuleType("safetensors.torch")

    def take(tensors: Any) -> Any:
        for name, value in tensors.items():
            if not value.is_contiguous():
                raise ValueError(f"You are trying to save a non contiguous tensor: {name}")
        return tensors

    def save_file(tensors: Any, filename: str) -> Any:
        return getattr(library, inner)(tensors) if inner else take(tensors)

    library.save_file = library.save = save_file  # type: ignore[attr-defined]
    if inner:
        setattr(library, inner, take)
    monkeypatch.setitem(sys.modules, "safetensors", ModuleType("safetensors"))
    monkeypatch.setitem(sys.modules, "safetensors.torch", library)
    model, _ = run(torch, flat, ChannelsLast())
    run(torch, flat, ChannelsLast())  # another lever in the same process changes nothing more
    state = model.state_dict()
    assert not state["0.weight"].is_contiguous()
    # A script may have imported the function by name, before.
    saved = (save_file if inner else library.save_file)(state, "model.safetensors")
    assert torch.equal(saved["0.weight"], state["0.weight"])
    with pytest.raises(ValueError, match="non contiguous"):  # the script's own fault, as before
        library.save_file({"a": torch.ones(4, 6).t()}, "a.safetensors")


def test_gradients_kept_between_steps_follow(torch: Any) -> None:
    from tests.levers.jobs import under

    model = flat(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    with under(ChannelsLast()):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            model(torch.randn(2, 3, 8, 8)).square().mean().backward()
            optimizer.step()
    assert model[0].weight.grad.is_contiguous(memory_format=torch.channels_last)


def test_identity_checkpoints_pickles_and_copies(torch: Any) -> None:
    before: list[Any] = []

    def make(torch: Any) -> Any:
        model = flat(torch)
        before.extend(model.parameters())
        return model

    model, _ = run(torch, make, ChannelsLast())
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    plain = flat(torch)
    plain.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 8, 8)
    assert torch.allclose(plain.eval()(x), model.eval()(x), atol=1e-5)
    torch.save(model, io.BytesIO())
    average = copy.deepcopy(model)
    with torch.no_grad():
        average[0].weight.zero_()
    assert model[0].weight.any()


def test_a_model_without_convolutions(torch: Any) -> None:
    lever = ChannelsLast()
    run(torch, lambda torch: torch.nn.Linear(4, 4), lever, shape=(4,))
    assert lever.receipt() == Receipt("channels_last", False, "the model has no convolutions")


def test_a_model_with_1d_convolutions_alone_is_told_so(torch: Any) -> None:
    lever = ChannelsLast()
    run(torch, lambda torch: torch.nn.Conv1d(3, 4, 3), lever, shape=(3, 8))
    assert lever.receipt() == Receipt("channels_last", False, ONLY_1D)


def test_weights_that_are_computed_at_each_call(torch: Any) -> None:
    def normed(torch: Any) -> Any:
        return torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv2d(3, 4, 3))

    lever = ChannelsLast()
    run(torch, normed, lever)
    why = "the model has no weights of its own for its convolutions"
    assert lever.receipt() == Receipt("channels_last", False, why)


def test_a_job_without_a_model() -> None:
    assert ChannelsLast().receipt() == Receipt(
        "channels_last", False, "no model was seen to be called"
    )


def test_a_script_that_did_it_itself(torch: Any) -> None:
    lever = ChannelsLast()
    run(torch, lambda torch: flat(torch).to(memory_format=torch.channels_last), lever)
    why = "the model's convolutions are already in that order"
    assert lever.receipt() == Receipt("channels_last", False, why)


def test_one_channel_has_no_order(torch: Any) -> None:
    lever = ChannelsLast()
    run(torch, lambda torch: torch.nn.Conv2d(1, 4, 3), lever, shape=(1, 8, 8))
    why = "the model's convolutions have one channel or one pixel"
    assert lever.receipt() == Receipt("channels_last", False, why)


def test_a_script_that_undoes_it(torch: Any) -> None:
    lever = ChannelsLast()
    model, _ = run(torch, flat, lever)
    model.to(memory_format=torch.contiguous_format)
    for weight in model.parameters():
        weight.data = weight.data.contiguous()
    why = "the script put its weights into another order"
    assert lever.receipt() == Receipt("channels_last", False, why)


def test_what_it_could_win(known: Any) -> None:
    assert ChannelsLast.settings(known()) == [{}]
    convolving = known(models=[builders.model(convolutions=3)])
    assert 0 < ChannelsLast.expected(convolving).share < 0.65
    already = known(models=[builders.model(channels_last=True, convolutions=3)])
    assert "already" in ChannelsLast.expected(already).reason
    assert "no model was seen" in ChannelsLast.expected(known()).reason
    of_sequences = known(models=[builders.model(), builders.model(convolutions_1d=2)])
    assert ChannelsLast.expected(of_sequences).reason == ONLY_1D
    both = known(models=[builders.model(convolutions=1, convolutions_1d=2)])
    assert not ChannelsLast.expected(both).reason

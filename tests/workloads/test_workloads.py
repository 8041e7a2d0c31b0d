"""The built-in jobs, scaled down: each trains, the same every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hotloop

torch: Any = pytest.importorskip("torch")

SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "MicrobatchMlp": (
        "mlp",
        {"batch_size": 64, "microbatch": 16, "epochs": 1, "pool": 256, "features": 8, "hidden": 8},
    ),
    "ResNet18": ("resnet", {"size": 32, "width": 8, "classes": 10, "pool": 8, "batch_size": 4}),
    "ResNet50": ("resnet", {"size": 32, "width": 4, "classes": 10, "pool": 8, "batch_size": 2}),
    "TinyGpt": ("gpt", {"context": 16, "width": 32, "layers": 2, "pool": 8, "batch_size": 4}),
    "UNet3d": ("unet", {"volume": 16, "width": 4, "levels": 3, "pool": 2, "batch_size": 2}),
}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Several would wait for each other on a machine that does other things."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def job(name: str, **settings: Any) -> Any:
    file, small = SMALL[name]
    module = __import__(f"hotloop.workloads.{file}", fromlist=[name])
    made = getattr(module, name)()
    for key, value in {**small, "steps": 4, "device": "cpu", **settings}.items():
        assert hasattr(made, key)
        setattr(made, key, value)
    return made


def weights(trained: Any) -> list[Any]:
    return [parameter.detach().clone() for parameter in trained.model.parameters()]


@pytest.mark.parametrize("name", SMALL)
def test_trains_and_the_same_every_time(name: str) -> None:
    once, again = (hotloop.train(job(name), quiet=True) for _ in range(2))
    assert once.epochs[0].steps == 4
    assert all(map(torch.equal, weights(once), weights(again)))
    assert all(weight.isfinite().all() for weight in weights(once))


@pytest.mark.parametrize("name", ["MicrobatchMlp", "TinyGpt", "UNet3d"])
def test_there_is_something_to_learn(name: str) -> None:
    few = hotloop.train(job(name), quiet=True).epochs[-1].loss
    longer = {"epochs": 12} if name == "MicrobatchMlp" else {"steps": 40}
    assert hotloop.train(job(name, **longer), quiet=True).epochs[-1].loss < few


@pytest.mark.parametrize(
    ("name", "millions"), [("ResNet18", 11.69), ("ResNet50", 25.56), ("Gpt2", 124.44)]
)
def test_sizes_are_those_that_their_names_stand_for(name: str, millions: float) -> None:
    from hotloop.workloads import gpt, resnet

    kind: Any = getattr(gpt, name, None) or getattr(resnet, name)
    with torch.device("meta"):
        made = kind().model()
    assert sum(p.numel() for p in made.parameters()) / 1e6 == pytest.approx(millions, abs=0.01)


def test_attention_is_the_same_written_out_and_fused() -> None:
    written, fused, again = (
        weights(hotloop.train(job("TinyGpt", **settings), quiet=True))
        for settings in ({}, {"attention": "fused"}, {"recompute": True})
    )
    for one, other, third in zip(written, fused, again, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(one, third)


@pytest.mark.parametrize("name", SMALL)
def test_samples_are_really_decoded_and_augmented(name: str) -> None:
    plain, data = job(name).data(), job(name, decode=True).data()
    plain = torch.utils.data.TensorDataset(*plain) if isinstance(plain, tuple) else plain
    torch.manual_seed(0)
    drawn = [data[0] for _ in range(8)]
    assert [(part.shape, part.dtype) for part in drawn[0]] == [
        (part.shape, part.dtype) for part in plain[0]
    ]
    assert any(not torch.equal(drawn[0][0], other[0]) for other in drawn)
    once, again = (hotloop.train(job(name, decode=True), quiet=True) for _ in range(2))
    assert once.epochs[0].steps == 4
    assert all(map(torch.equal, weights(once), weights(again)))


def test_volumes_are_turned_with_their_labels() -> None:
    data = job("UNet3d", decode=True, pool=1).data()
    torch.manual_seed(0)
    brighter_inside = [
        volume[:, label > 0].mean() > volume[:, label == 0].mean() + 0.5
        for volume, label in (data[0] for _ in range(8))
    ]
    assert all(brighter_inside)


def test_what_came_of_it_is_told(tmp_path: Path) -> None:
    kept, told = str(tmp_path / "weights.pt"), tmp_path / "told.json"
    hotloop.train(job("MicrobatchMlp", weights_out=kept), quiet=True)
    hotloop.train(job("MicrobatchMlp", microbatch=0, compare=kept, told=str(told)), quiet=True)
    found = json.loads(told.read_text())
    assert 0 < found["largest_difference"] < 1e-3
    hotloop.train(job("MicrobatchMlp", lr=0.5, compare=kept, told=str(told)), quiet=True)
    assert json.loads(told.read_text())["largest_difference"] > 1e-2


def test_monais_network_where_it_is_installed() -> None:
    pytest.importorskip("monai")
    SMALL["MonaiUNet3d"] = SMALL["UNet3d"]
    assert hotloop.train(job("MonaiUNet3d"), quiet=True).epochs[0].steps == 4

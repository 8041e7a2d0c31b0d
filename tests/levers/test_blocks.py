from __future__ import annotations

from typing import Any

import pytest

from hotloop.levers.blocks import repeated_blocks


@pytest.fixture
def nn(torch: Any) -> Any:
    return torch.nn


def layer(nn: Any, width: int = 4, *, bias: bool = True) -> Any:
    return nn.Sequential(nn.Linear(width, width, bias=bias), nn.ReLU())


def names(root: Any, **options: Any) -> list[tuple[str, ...]]:
    return [group.names for group in repeated_blocks(root, **options)]


def test_layers_of_a_transformer(nn: Any) -> None:
    made = nn.TransformerEncoderLayer(8, 2, batch_first=True)
    root = nn.ModuleDict({"body": nn.TransformerEncoder(made, 4), "head": nn.Linear(8, 8)})
    (group,) = repeated_blocks(root)
    assert group.kind is nn.TransformerEncoderLayer and len(group) == 4
    assert group.names == tuple(f"body.layers.{place}" for place in range(4))
    assert all(root.get_submodule(n) is b for n, b in zip(group.names, group.blocks, strict=True))


def test_blocks_of_a_sequential(nn: Any) -> None:
    root = nn.Sequential(nn.Linear(2, 4), *(layer(nn) for _ in range(3)), nn.Linear(4, 1))
    assert names(root) == [("1", "2", "3")]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_are_no_group(count: int, nn: Any) -> None:
    root = nn.ModuleList(layer(nn) for _ in range(count))
    assert names(root) == []
    assert len(names(root, least=2)) == (count == 2)


def test_single_layers_and_lists_are_no_blocks(nn: Any) -> None:
    assert names(nn.Sequential(*(nn.Linear(4, 4) for _ in range(5)))) == []
    lists = nn.ModuleList(nn.ModuleList([nn.Linear(4, 4)]) for _ in range(5))
    assert names(lists) == []
    assert names(nn.ModuleList(nn.Sequential(nn.ReLU(), nn.Dropout()) for _ in range(5))) == []


def test_only_what_stands_in_a_list(nn: Any) -> None:
    class Towers(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.three = layer(nn), layer(nn), layer(nn)

    assert names(Towers()) == []


def another_class(nn: Any) -> Any:
    return type("Other", (nn.Sequential,), {})(*layer(nn))


def of_another_format(nn: Any) -> Any:
    return layer(nn).double()


def another_part(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh())


def with_a_buffer(nn: Any) -> Any:
    made = layer(nn)
    made[0].register_buffer("mask", made[0].bias.detach().clone())
    return made


def frozen(nn: Any) -> Any:
    return layer(nn).requires_grad_(False)


@pytest.mark.parametrize(
    "odd",
    [
        lambda nn: layer(nn, 5),
        lambda nn: layer(nn, bias=False),
        another_class,
        of_another_format,
        another_part,
        with_a_buffer,
        frozen,
    ],
)
def test_alike_is_alike_in_everything(odd: Any, nn: Any) -> None:
    alike = [layer(nn) for _ in range(3)]
    assert names(nn.ModuleList([alike[0], odd(nn), *alike[1:]])) == [("0", "2", "3")]
    assert names(nn.ModuleList([alike[0], odd(nn), alike[1]])) == []


def test_plain_attributes_may_differ(nn: Any) -> None:
    blocks = [layer(nn) for _ in range(3)]
    for place, block in enumerate(blocks):
        block.layer_idx = place
    assert len(names(nn.ModuleList(blocks))) == 1


def test_several_groups_and_several_containers(nn: Any) -> None:
    narrow, wide = [layer(nn) for _ in range(4)], [layer(nn, 6) for _ in range(3)]
    root = nn.ModuleDict(
        {
            "down": nn.ModuleList(narrow[:2]),
            "middle": nn.Sequential(*wide),
            "up": nn.ModuleList(narrow[2:]),
        }
    )
    assert names(root) == [
        ("down.0", "down.1", "up.0", "up.1"),
        ("middle.0", "middle.1", "middle.2"),
    ]


def test_of_blocks_in_blocks_the_outer_ones_are_taken(nn: Any) -> None:
    stages = [nn.Sequential(*(layer(nn) for _ in range(3))) for _ in range(3)]
    assert names(nn.ModuleList(stages)) == [("0", "1", "2")]
    assert names(nn.ModuleList(stages[:2])) == [("0.0", "0.1", "0.2", "1.0", "1.1", "1.2")]
    beside = nn.ModuleList([*stages, layer(nn), layer(nn)])
    assert names(beside) == [("0", "1", "2")]  # those beside are two, and too few


def test_a_shared_block_counts_once(nn: Any) -> None:
    shared = layer(nn)
    assert names(nn.ModuleList([shared] * 6)) == []
    assert names(nn.ModuleList([shared, layer(nn), shared, layer(nn)])) == [("0", "1", "3")]


def test_lazy_blocks_wait_for_their_shapes(nn: Any, torch: Any) -> None:
    root = nn.Sequential(*(nn.Sequential(nn.LazyLinear(4), nn.ReLU()) for _ in range(3)))
    assert names(root) == []
    root(torch.ones(2, 4))
    assert names(root) == [("0", "1", "2")]


def test_a_class_that_is_only_named_like_a_list_is_none(nn: Any) -> None:
    class Sequential(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ParameterList()
            for place in range(3):
                self.add_module(str(place), layer(nn))

    assert names(Sequential()) == []


def test_nothing_of_the_model_changes(nn: Any) -> None:
    root = nn.Sequential(*(layer(nn) for _ in range(3)))
    before = {name: dict(vars(module)) for name, module in root.named_modules()}
    repeated_blocks(root)
    assert {name: dict(vars(module)) for name, module in root.named_modules()} == before

"""FLOPs of whole steps against what the shapes say, for three kinds of networks."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.inspection import Operators
from hotloop.runtime.look.flops import is_heavy
from hotloop.runtime.look.operators import OperatorProbe


def counted(torch: Any, step: Any) -> Operators:
    probe = OperatorProbe(torch)
    probe.begin()
    step()
    return probe.end(1)


def total(operators: Operators) -> float:
    assert operators.without_formula == {}
    return sum(operators.flops.values())


@pytest.mark.parametrize("fused", [False, True])
def test_a_transformer(torch: Any, fused: bool) -> None:
    batch, length, width, heads, vocabulary, layers = 2, 32, 64, 4, 101, 3
    nn = torch.nn

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(x).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            if fused:
                y = nn.functional.scaled_dot_product_attention(*parts)
            else:
                q, k, v = parts
                y = (q @ k.transpose(-2, -1)).softmax(-1) @ v
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(self.up(x).relu())

    model = nn.Sequential(*[Block() for _ in range(layers)], nn.Linear(width, vocabulary))
    x = torch.randn(batch, length, width, requires_grad=True)
    found = total(counted(torch, lambda: model(x).sum().backward()))
    tokens = batch * length
    products = tokens * (layers * 12 * width**2 + width * vocabulary)
    scores = layers * batch * heads * length**2 * (width // heads)
    # Backward: two products for one; fused attention computes its scores once more.
    assert found == pytest.approx(2 * (3 * products + (7 if fused else 6) * scores), rel=0.01)


def test_a_residual_network(torch: Any) -> None:
    nn = torch.nn

    class Residual(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.short = nn.Conv2d(before, after, 1, stride, bias=False)
            self.norm = nn.BatchNorm2d(after)

        def forward(self, x: Any) -> Any:
            return self.norm(self.second(self.first(x).relu())) + self.short(x)

    sizes = [(8, 8, 1), (8, 16, 2), (16, 32, 2)]
    blocks = [Residual(*size) for size in sizes]
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), *blocks)
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    found = total(counted(torch, lambda: model(x).sum().backward()))
    side, products = 32, 2 * 32 * 32 * 3 * 8 * 9
    for before, after, stride in sizes:
        side //= stride
        products += 2 * side**2 * (after * before * 9 + after * after * 9 + after * before)
    assert found == pytest.approx(2 * 3 * products, rel=0.01)


def test_a_unet_of_volumes(torch: Any) -> None:
    nn = torch.nn
    down, deep = nn.Conv3d(1, 4, 3, 1, 1), nn.Conv3d(4, 8, 3, 2, 1)
    up, last = nn.ConvTranspose3d(8, 4, 2, 2), nn.Conv3d(8, 2, 1)

    def step() -> None:
        x = torch.randn(1, 1, 16, 16, 16, requires_grad=True)
        first = down(x).relu()
        second = up(deep(first).relu())
        last(torch.cat([first, second], 1)).sum().backward()

    whole, half = 16**3, 8**3
    products = whole * 4 * 27 + half * 4 * 8 * 27 + half * 8 * 4 * 8 + whole * 8 * 2
    assert total(counted(torch, step)) == pytest.approx(2 * 3 * products, rel=0.01)


def test_what_has_no_formula_is_named(torch: Any) -> None:
    found = counted(torch, lambda: torch.linalg.inv(torch.eye(4)))
    assert any("linalg_inv" in name for name in found.without_formula)


def test_by_the_format_of_the_operands(torch: Any) -> None:
    x = torch.randn(4, 8, dtype=torch.float64)
    found = counted(torch, lambda: (x @ x.T, x.float() @ x.float().T))
    assert found.flops == {"float64": 2 * 4 * 8 * 4, "float32": 2 * 4 * 8 * 4}


def test_the_norm_of_gradients_leaves_the_count_whole() -> None:
    assert is_heavy("linalg_solve") and is_heavy("_lstm_mps")
    assert not is_heavy("linalg_vector_norm") and not is_heavy("add")
    assert not is_heavy("_thnn_fused_lstm_cell") and not is_heavy("_cudnn_rnn_flatten_weight")

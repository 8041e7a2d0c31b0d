"""FLOPs of recurrent layers against what a hand counts: every token meets every weight once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.look.recurrent import formulas
from tests.runtime.look.test_flops import counted, total

TIME, BATCH, INPUT, HIDDEN = 7, 3, 20, 40
TOKENS = TIME * BATCH
BY_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def weights(gates: int, layers: int = 1, directions: int = 1, projected: int = 0) -> float:
    handed_on = projected or HIDDEN
    of_all = 0
    for layer in range(layers):
        comes_in = INPUT if layer == 0 else directions * handed_on
        of_all += gates * HIDDEN * (comes_in + handed_on) + projected * HIDDEN
    return float(directions * of_all)


def trained(torch: Any, layer: Any, batch_first: bool = False) -> float:
    sizes = (BATCH, TIME, INPUT) if batch_first else (TIME, BATCH, INPUT)
    x = torch.randn(*sizes, requires_grad=True)
    return total(counted(torch, lambda: layer(x)[0].sum().backward()))


@pytest.mark.parametrize("kind", BY_GATES)
@pytest.mark.parametrize(("layers", "both"), [(1, False), (1, True), (3, False), (2, True)])
def test_a_step_takes_three_products_for_each_weight(
    torch: Any, kind: str, layers: int, both: bool
) -> None:
    """Layers that come apart have no gradient for a state that begins with zeros."""
    layer = getattr(torch.nn, kind)(INPUT, HIDDEN, layers, bidirectional=both)
    by_hand = 6 * TOKENS * weights(BY_GATES[kind], layers, 1 + both)
    first = 2 * BATCH * BY_GATES[kind] * HIDDEN * HIDDEN * layers * (1 + both)
    assert by_hand - first <= trained(torch, layer) <= by_hand


def test_one_operator_is_counted_exactly(torch: Any) -> None:
    layer = torch.nn.LSTM(INPUT, HIDDEN, 2, batch_first=True)
    assert trained(torch, layer, batch_first=True) == 6 * TOKENS * weights(4, 2)


def test_a_forward_pass_is_a_third_of_it(torch: Any) -> None:
    layer, x = torch.nn.LSTM(INPUT, HIDDEN), torch.randn(TIME, BATCH, INPUT)

    def evaluate() -> None:
        with torch.no_grad():
            layer(x)

    assert total(counted(torch, evaluate)) == 2 * TOKENS * weights(4)


def test_a_projection_is_one_more_matrix(torch: Any) -> None:
    layer = torch.nn.LSTM(INPUT, HIDDEN, proj_size=8)
    by_hand = 6 * TOKENS * weights(4, projected=8)
    assert trained(torch, layer) == pytest.approx(by_hand, rel=0.05)


def test_of_packed_sequences_only_tokens_count(torch: Any) -> None:
    layer = torch.nn.LSTM(INPUT, HIDDEN)
    sequences = [torch.randn(length, INPUT, requires_grad=True) for length in (9, 5)]
    packed = torch.nn.utils.rnn.pack_sequence(sequences)

    def step() -> None:
        layer(packed)[0].data.sum().backward()

    assert total(counted(torch, step)) == pytest.approx(6 * 14 * weights(4), rel=0.06)


@pytest.mark.parametrize("kind", BY_GATES)
def test_a_cell_is_its_products(torch: Any, kind: str) -> None:
    cell = getattr(torch.nn, f"{kind}Cell")(INPUT, HIDDEN)
    x = torch.randn(BATCH, INPUT, requires_grad=True)
    state = torch.randn(BATCH, HIDDEN, requires_grad=True)

    def step() -> None:
        out = cell(x, (state, state)) if kind == "LSTM" else cell(x, state)
        (out[0] if kind == "LSTM" else out).sum().backward()

    by_hand = 6 * BATCH * BY_GATES[kind] * HIDDEN * (INPUT + HIDDEN)
    assert total(counted(torch, step)) == by_hand


@pytest.mark.parametrize("name", ["_cudnn_rnn", "miopen_rnn"])
@pytest.mark.parametrize("learns", [True, False])
def test_on_a_gpu_all_layers_are_one_operator(torch: Any, name: str, learns: bool) -> None:
    """No GPU is at hand: with the arguments in the order of the operator's own schema."""
    layer = torch.nn.LSTM(INPUT, HIDDEN, 2, bidirectional=True, proj_size=8)
    x = torch.randn(TIME, BATCH, INPUT)
    given = {"input": x, "weight": list(layer.parameters()), "weight_stride0": 5}
    given["output_mask"] = [True, True, True, learns]
    of_operator = dict(formulas(torch.ops.aten))
    forward = getattr(torch.ops.aten, name)
    backward = getattr(torch.ops.aten, f"{name}_backward")

    def told(packet: Any) -> float:
        schema = packet.default._schema.arguments
        args = [given.get(argument.name) for argument in schema]
        return float(of_operator[packet](*args, out_val=None))

    once = 2 * TOKENS * weights(4, 2, 2, projected=8)
    assert told(forward) == once
    assert told(backward) == (2 if learns else 1) * once


def test_a_build_of_torch_without_them_has_no_formulas() -> None:
    assert list(formulas(SimpleNamespace())) == []

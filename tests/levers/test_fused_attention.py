from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.inspection import Attention, Frame, Inspection, Operators
from hotloop.levers import graphs
from hotloop.levers.base import Receipt
from hotloop.levers.compile import Compile
from hotloop.levers.fused_attention import FusedAttention
from tests import builders


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Iterator[Any]:
    """Without oneDNN: see the tests of bf16."""
    with fresh_torch.backends.mkldnn.flags(enabled=False):
        yield fresh_torch


@pytest.fixture
def hand(torch: Any) -> Any:
    from tests.levers import attention_jobs

    return attention_jobs


def padding(torch: Any, *lengths: int, keys: int = 6) -> Any:
    """One where a key counts, as tokenizers give it."""
    places = torch.arange(keys)
    return torch.stack([places < length for length in lengths]).long()[:, None, None, :]


CAUSAL = """
nanogpt annotated in_place where where_not added added_on_the_spot compared_places einsums
"""
OPEN = """
einsums_of_another_order einsums_with_dots einsums_beside_others
batched baddbmm temperature unmasked
"""
ADDED = "alibi table relative"


@pytest.mark.parametrize("how", CAUSAL.split())
def test_causal_attention_however_it_is_written(how: str, hand: Any) -> None:
    found, apart = hand.both_ways(getattr(hand, how))
    assert (found.replaced, found.causal, found.masked) == (1, 1, 0)
    assert apart < 1e-12


@pytest.mark.parametrize("how", OPEN.split())
def test_attention_without_a_mask(how: str, hand: Any) -> None:
    found, apart = hand.both_ways(getattr(hand, how))
    assert (found.replaced, found.causal, found.masked) == (1, 0, 0)
    assert apart < 1e-12


@pytest.mark.parametrize("how", ADDED.split())
def test_what_is_added_is_handed_over_and_learns(how: str, hand: Any) -> None:
    found, apart = hand.both_ways(getattr(hand, how))
    assert (found.replaced, found.causal, found.masked) == (1, 0, 1)
    assert apart < 1e-12


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 8), (1, 8, 16, 2), (4, 1, 7, 3)])
@pytest.mark.parametrize("how", ["nanogpt", "annotated", "unmasked"])
def test_shapes_and_heads(how: str, shape: tuple[int, ...], hand: Any) -> None:
    found, apart = hand.both_ways(getattr(hand, how), hand.parts(shape))
    assert found.replaced == 1 and found.causal == (how != "unmasked")
    assert apart < 1e-11


@pytest.mark.parametrize("shape", [(3, 6, 4), (1, 1, 2), (5, 16, 3)])
def test_three_dimensions(shape: tuple[int, ...], hand: Any) -> None:
    found, apart = hand.both_ways(hand.lecture, hand.parts(shape))
    assert found.causal == 1 and apart < 1e-11


def test_values_of_another_size(hand: Any, torch: Any) -> None:
    q, k, _ = hand.parts()
    v = torch.randn(3, 2, 6, 9, dtype=q.dtype).requires_grad_()
    found, apart = hand.both_ways(hand.nanogpt, [q, k, v])
    assert found.causal == 1 and apart < 1e-12


@pytest.mark.parametrize(
    ("dtype", "apart"), [("float32", 1e-5), ("bfloat16", 0.15), ("float16", 0.02)]
)
@pytest.mark.parametrize("how", ["nanogpt", "in_float32", "where"])
def test_number_formats(how: str, dtype: str, apart: float, hand: Any, torch: Any) -> None:
    """A softmax in float32 by hand needs no cast: the kernel adds up in float32 anyway."""
    found, got = hand.both_ways(getattr(hand, how), hand.parts(dtype=getattr(torch, dtype)))
    assert found.causal == 1 and got < apart


def test_under_autocast(hand: Any, torch: Any) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        found, apart = hand.both_ways(hand.nanogpt, hand.parts(dtype=torch.float32))
    assert found.causal == 1 and apart < 0.2


def test_an_added_mask_is_not_rounded(hand: Any, torch: Any) -> None:
    """Autocast would: a slope of −100.3 would become −100.5."""
    mask = torch.randn(3, 1, 6, 6)
    with torch.autocast("cpu", torch.bfloat16):
        found, apart = hand.both_ways(hand.given_added, hand.parts(dtype=torch.float32), mask)
    assert not found.replaced and apart == 0
    assert list(found.reasons) == ["its mask has another number format than its values"]


@pytest.mark.parametrize("how", ["filled", "filled_with_a_number", "filled_twice"])
@pytest.mark.parametrize("keys", [6, 9])
def test_a_mask_of_the_batch_is_handed_over(how: str, keys: int, hand: Any, torch: Any) -> None:
    if how == "filled_twice" and keys != 6:
        pytest.skip("its other mask is square")
    mask = padding(torch, 6, 4, 1, keys=keys)
    found, apart = hand.both_ways(getattr(hand, how), hand.parts(keys=keys), mask)
    assert (found.replaced, found.causal, found.masked) == (1, 0, 1)
    assert apart < 1e-12


def test_a_causal_mask_of_the_batch_is_not_taken_for_granted(hand: Any, torch: Any) -> None:
    """It may be another one in the next batch."""
    module = hand.Hand(hand.filled).double()
    plain = copy.deepcopy(module)
    found, graphs = hand.watched(module)
    given = hand.parts()
    for mask in (torch.ones(6, 6).tril(), torch.ones(6, 6), torch.eye(6)):
        assert hand.apart(
            hand.computed(plain, *given, mask), hand.computed(module, *given, mask)
        ) < (1e-12)
    assert [(one.causal, one.masked) for one in found] == [(0, 1)]
    assert graphs[0].runs == 3


def test_rows_that_are_filled_with_a_number_altogether(hand: Any, torch: Any) -> None:
    """By hand every key then has the same weight, and queries and keys learn nothing from it."""
    found, apart = hand.both_ways(hand.filled_with_a_number, None, padding(torch, 6, 0, 2))
    assert found.replaced == 1 and apart < 1e-12


def test_rows_that_are_filled_with_infinity_altogether(hand: Any, torch: Any) -> None:
    """By hand they are not a number. Fused they are zero, and the other rows are the same."""
    given, mask = hand.parts(), padding(torch, 6, 0, 2)
    plain = hand.Hand(hand.filled).double()
    module = copy.deepcopy(plain)
    found, _ = hand.watched(module)
    expected, got = plain(*given, mask), module(*given, mask)
    assert found[0].masked == 1
    assert expected[1].isnan().all() and not got[1].any()
    assert torch.allclose(expected[::2], got[::2])


@pytest.mark.parametrize("lowest", [-1e4, -1e6])
def test_rows_whose_added_mask_is_low_altogether(lowest: float, hand: Any, torch: Any) -> None:
    """The same number beside every score changes nothing, as far as its digits go."""
    mask = (padding(torch, 6, 0, 2) == 0).double() * lowest
    found, apart = hand.both_ways(hand.given_added, None, mask)
    assert found.masked == 1 and apart < 1e-8


def test_rows_whose_added_mask_is_the_lowest_number(hand: Any, torch: Any) -> None:
    """By hand it leaves nothing of the scores in such a row. Every other row is the same."""
    given = hand.parts(dtype=torch.float32)
    mask = (padding(torch, 6, 0, 2) == 0) * torch.finfo(torch.float32).min
    plain = hand.Hand(hand.given_added)
    module = copy.deepcopy(plain)
    hand.watched(module)
    expected, got = hand.computed(plain, *given, mask), hand.computed(module, *given, mask)
    for one, other in zip(expected[:4], got[:4], strict=True):
        assert torch.allclose(one[::2], other[::2], atol=1e-5) and other.isfinite().all()


def test_an_added_mask_of_the_batch(hand: Any, torch: Any) -> None:
    mask = torch.randn(3, 1, 6, 6, dtype=torch.float64).requires_grad_()
    for how in (hand.given_added, hand.batched_with_a_mask):
        torch._dynamo.reset()
        found, apart = hand.both_ways(how, None, mask)
        assert found.masked == 1 and apart < 1e-12
    found, apart = hand.both_ways(hand.given_subtracted, None, padding(torch, 6, 4, 1).double())
    assert found.masked == 1 and apart < 1e-12


REFUSED = {
    "weights_returned": "its weights are used elsewhere",
    "weights_kept": "its weights are used elsewhere",
    "scores_kept": "its weights are used elsewhere",
    "small_fill": "its mask is not understood",
    "multiplied": "its mask is not understood",
    "over_queries": "its softmax does not go over the keys",
    "one_head_of_keys": "its queries, keys and values have different batches or heads",
    "weights_masked": "mul is done to its weights, which is not understood",
    "scaled_late": "its scores are scaled after they were masked",
    "scaled_by_less_than_nothing": "its scale is not positive",
    "fill_scaled_down": "its mask is not understood",
    "values_changed": "its parts are changed in place",
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_left_as_it_is(how: str, hand: Any) -> None:
    found, apart = hand.both_ways(getattr(hand, how))
    assert not found.replaced and apart == 0
    assert list(found.reasons) == [REFUSED[how]]


@pytest.mark.parametrize(
    "how", ["tanh_of_scores", "two_fills", "dropped_twice", "in_double", "no_attention"]
)
def test_more_that_is_left_as_it_is(how: str, hand: Any, torch: Any) -> None:
    module = hand.Hand(getattr(hand, how))
    found, _ = hand.watched(module)
    module(*hand.parts(dtype=torch.float32), padding(torch, 6, 4, 1))
    assert not found[0].replaced
    assert bool(found[0].reasons) == (how not in ("tanh_of_scores", "no_attention"))


def test_a_mask_that_is_not_causal(hand: Any, torch: Any) -> None:
    """Off by one place: handed over as it is."""
    module = hand.Hand(hand.nanogpt).double()
    module.bias[0, 0, 2, 3] = 1
    plain = copy.deepcopy(module)
    found, _ = hand.watched(module)
    given = hand.parts()
    assert hand.apart(hand.computed(plain, *given), hand.computed(module, *given)) < 1e-12
    assert (found[0].causal, found[0].masked) == (0, 1)


def test_unequal_lengths_are_not_causal(hand: Any, torch: Any) -> None:
    """Torch counts from the first query and key, a mask's author perhaps from the last."""

    def last(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = q @ k.mT
        return scores.masked_fill(m.tril[6 - 3 : 6, :6] == 0, -math.inf).softmax(-1) @ v

    def first(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return (q @ k.mT).masked_fill(m.tril[:3, :6] == 0, -math.inf).softmax(-1) @ v

    for how in (last, first):
        torch._dynamo.reset()
        found, apart = hand.both_ways(how, hand.parts((2, 2, 3, 4), keys=6))
        assert (found.causal, found.masked) == (0, 1) and apart < 1e-12


def test_a_buffer_that_changes_later(hand: Any, torch: Any) -> None:
    """Torch's guards do not look at values. A checkpoint that is loaded writes the same ones."""
    module = hand.Hand(hand.nanogpt).double()
    plain = copy.deepcopy(module)
    found, graphs = hand.watched(module)
    given = hand.parts()

    def is_same() -> bool:
        expected = hand.computed(plain, *given)
        return bool(hand.apart(expected, hand.computed(module, *given)) < 1e-12)

    assert is_same()
    module.load_state_dict(plain.state_dict())
    assert is_same()
    assert (graphs[0].runs, graphs[0].strays) == (2, 0)
    for each in (module, plain):
        each.bias.fill_(1)
    assert is_same()
    assert (graphs[0].runs, graphs[0].strays) == (2, 1)
    for each in (module, plain):
        each.bias.tril_()
    assert is_same()
    assert (graphs[0].runs, graphs[0].strays) == (3, 1)
    assert len(found) == 1


def test_lengths_that_change(hand: Any, torch: Any) -> None:
    """The beginning of a causal mask is causal."""
    module = hand.Hand(hand.nanogpt).double()
    plain = copy.deepcopy(module)
    found, _ = hand.watched(module)
    for length in (6, 9, 13):
        given = hand.parts((2, 2, length, 4))
        assert hand.apart(hand.computed(plain, *given), hand.computed(module, *given)) < 1e-11
    assert [one.causal for one in found] == [1, 1]


def test_in_an_examination_nothing_is_dropped(
    hand: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotloop.runtime.exam import randomness

    functional = torch.nn.functional
    for name in (*randomness.DROPOUTS, "scaled_dot_product_attention"):
        monkeypatch.setattr(functional, name, getattr(functional, name))
    randomness._switch_dropout_off(functional)
    module = hand.Hand(hand.nanogpt).double()
    module.drop.p = 0.5
    plain = copy.deepcopy(module)
    found, _ = hand.watched(module, "aot_eager")
    given = hand.parts()
    assert hand.apart(hand.computed(plain, *given), hand.computed(module, *given)) < 1e-12
    assert found[0].causal == 1


@pytest.mark.parametrize("train", [True, False])
def test_dropout_is_handed_over(train: bool, hand: Any, torch: Any) -> None:
    """Masks differ from draw to draw; the mean and the share of weights that are dropped do not."""
    module = hand.Hand(hand.nanogpt).train(train)
    module.drop.p = 0.25
    plain = copy.deepcopy(module)
    found, _ = hand.watched(module)
    q, k, _ = (each.detach() for each in hand.parts((400, 2, 6, 4), torch.float32))
    q, k = torch.zeros_like(q), k
    v = torch.eye(6).expand(400, 2, 6, 6)
    expected, got = plain(q, k, v), module(q, k, v)  # values of one show the weights themselves
    assert found[0].causal == 1
    seen = torch.ones(6, 6).tril().bool()
    dropped = (got == 0)[..., seen].float().mean().item()
    assert dropped == pytest.approx(0.25 if train else 0, abs=0.02)
    assert (got.mean(0) - plain.eval()(q, k, v).mean(0)).abs().max() < 0.1
    if not train:
        assert torch.allclose(expected, got, atol=1e-6)


def losses(torch: Any, hand: Any, how: Any, *levers: Any) -> list[float]:
    from tests.levers.jobs import under
    from tests.runtime import jobs

    kept: list[float] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        kept.append(loss.item())
        return loss

    torch.manual_seed(0)
    with under(*levers):
        jobs.train(hand.Small(how), loss_of=loss_of)
    return kept


def receipt(torch: Any, hand: Any, how: Any) -> Receipt:
    lever = FusedAttention()
    losses(torch, hand, how, Compile(), lever)
    return lever.receipt()


def test_it_trains_the_same_with_the_real_compiler(hand: Any, torch: Any) -> None:
    lever, compiled = FusedAttention(), Compile()
    plain = losses(torch, hand, hand.nanogpt)
    assert losses(torch, hand, hand.nanogpt, compiled, lever) == pytest.approx(plain, rel=1e-4)
    assert compiled.receipt().evidence["graphs"] == 1
    found = lever.receipt()
    assert found.applied and found.evidence["attentions"] == found.evidence["causal"] == 1
    assert found.evidence["runs"] in range(2, 9) and found.evidence["strays"] == 0


@pytest.mark.usefixtures("quick")
def test_receipts(hand: Any, torch: Any) -> None:
    assert receipt(torch, hand, hand.unmasked).applied
    found = receipt(torch, hand, hand.weights_returned)
    assert not found.applied
    assert found.reason == "attention was found, but its weights are used elsewhere"
    found = receipt(torch, hand, hand.no_attention)
    assert found == Receipt(
        "fused_attention", False, "no attention was found in the captured graphs"
    )


def test_a_graph_that_never_ran_is_no_evidence(hand: Any) -> None:
    from hotloop.levers.attention.rewrite import Rewritten

    lever = FusedAttention()
    lever._graphs = [(graphs.Captured(None, (), None), Rewritten(replaced=1))]
    assert lever.receipt().reason == "no graph with attention in it ran"


def test_alone_it_captures_nothing(hand: Any, torch: Any) -> None:
    lever = FusedAttention()
    losses(torch, hand, hand.nanogpt, lever)
    assert lever.receipt() == Receipt("fused_attention", False, "no graph was captured")


def test_torch_compiles_as_in_each_mode(torch: Any) -> None:
    from hotloop.seams import Seam

    assert "triton.cudagraphs" not in graphs.inductor(torch, "default").config
    backend = graphs.Backend(torch, "reduce-overhead", None, Seam())
    assert backend._compiler.config["triton.cudagraphs"] is True
    backend.reset()


def test_what_it_could_win(torch: Any) -> None:
    from tests.levers.jobs import seen

    def looked_into(job: Any, *found: Attention) -> Any:
        return replace(job, inspection=Inspection(operators=Operators(attention=list(found))))

    by_hand = Attention(Frame("train.py", 7, "forward", True), 3, 64, 64, 0.01)
    assert FusedAttention.settings(seen()) == [{}]
    assert "no run looked for" in FusedAttention.expected(seen()).reason
    assert "no attention was seen" in FusedAttention.expected(looked_into(seen())).reason
    expected = FusedAttention.expected(looked_into(seen(), by_hand))
    assert 0 < expected.share < Compile.expected(seen()).share
    compiled = seen(models=[builders.model(compiled=True)])
    refused = FusedAttention.expected(looked_into(compiled, by_hand))
    assert "compiles its model itself" in refused.reason

"""Attention as people write it. Imports torch: tests get this as a fixture."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hotloop.levers.attention.rewrite import Rewritten, rewrite
from hotloop.levers.graphs import Backend, Captured
from hotloop.seams import Seam

LENGTH, HEADS, SIZE = 6, 2, 4
MOST = 16
INF = float("-inf")


class Hand(nn.Module):  # type: ignore[misc]
    """Attention, with the buffers that a model has for it. How it is computed is given."""

    def __init__(self, how: Callable[..., Any]) -> None:
        super().__init__()
        self.how = how
        self.drop = nn.Dropout(0.0)
        self.softmax = nn.Softmax(dim=-1)
        self.temperature = nn.Parameter(torch.tensor([1.5, 0.5]).view(HEADS, 1, 1))
        self.table = nn.Parameter(torch.randn(HEADS, LENGTH, LENGTH))
        tril = torch.tril(torch.ones(MOST, MOST))
        self.register_buffer("bias", tril.view(1, 1, MOST, MOST))
        self.register_buffer("tril", tril.clone())
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("added", torch.zeros(MOST, MOST).masked_fill(tril == 0, INF))
        self.plain = tril.bool()

    def forward(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return self.how(self, q, k, v, mask)


def watched(module: Any, inner: str = "eager") -> tuple[list[Rewritten], list[Captured]]:
    """Compiles it in place, as the levers do together; without a real compiler as a rule."""
    seam, found, graphs = Seam(), [], []

    def see(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        graphs.append(args[0])
        found.append(rewrite(torch, args[0]))

    seam.before.append(see)
    backend = Backend(torch, "default", module, seam)
    if inner != "inductor":
        backend._compiler = torch._dynamo.lookup_backend(inner)
    module.compile(backend=backend)
    return found, graphs


class Small(nn.Module):  # type: ignore[misc]
    """A model of one attention over the four numbers of the usual batch."""

    def __init__(self, how: Callable[..., Any], width: int = 4) -> None:
        super().__init__()
        self.how = how
        self.inner = nn.Linear(1, 3 * width)
        self.head = nn.Linear(width, 1)
        self.drop = nn.Dropout(0.0)
        self.register_buffer("bias", torch.tril(torch.ones(1, 1, MOST, MOST)))
        self.kept: Any = None

    def forward(self, x: Any) -> Any:
        q, k, v = self.inner(x.unsqueeze(-1)).unsqueeze(1).chunk(3, dim=-1)
        return self.head(self.how(self, q, k, v, None).mean((1, 2)))


def parts(
    shape: tuple[int, ...] = (3, HEADS, LENGTH, SIZE),
    dtype: Any = torch.float64,
    keys: int | None = None,
) -> list[Any]:
    sizes = [shape] + [(*shape[:-2], keys or shape[-2], shape[-1])] * 2
    return [torch.randn(size, dtype=dtype).requires_grad_() for size in sizes]


def computed(module: Any, *given: Any) -> list[Any]:
    """The result, and every gradient."""
    learning = [each for each in given if each is not None and each.requires_grad]
    leaves = [*learning, *module.parameters()]
    for leaf in leaves:
        leaf.grad = None
    result = module(*given)
    result.sum().add(result.square().sum()).backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def both_ways(
    how: Callable[..., Any], given: list[Any] | None = None, mask: Any = None
) -> tuple[Rewritten, float]:
    """What became of its graph, and how far the two ways are apart."""
    given = parts() if given is None else given
    by_hand = Hand(how).to(given[0].dtype)
    fused = copy.deepcopy(by_hand)
    found, graphs = watched(fused)
    expected = computed(by_hand, *given, mask)
    got = computed(fused, *given, mask)
    assert sum(graph.runs for graph in graphs) == 1
    return found[0], apart(expected, got)


def apart(expected: list[Any], got: list[Any]) -> float:
    furthest = 0.0
    for one, other in zip(expected, got, strict=True):
        if one is None or other is None:
            assert (one is None or not one.any()) and (other is None or not other.any())
            continue
        assert one.shape == other.shape and one.dtype == other.dtype
        furthest = max(furthest, float((one - other).abs().max()))
    return furthest


def _scaled(q: Any, k: Any) -> Any:
    return (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))


def nanogpt(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    length = q.size(-2)
    scores = _scaled(q, k).masked_fill(m.bias[:, :, :length, :length] == 0, float("-inf"))
    return m.drop(F.softmax(scores, dim=-1)) @ v


def lecture(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Three dimensions, as in the lecture "Let's build GPT"."""
    length = q.size(-2)
    scores = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
    scores = scores.masked_fill(m.tril[:length, :length] == 0, float("-inf"))
    return m.drop(F.softmax(scores, dim=-1)) @ v


def annotated(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """The annotated transformer."""
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(m.plain[: q.size(-2), : q.size(-2)] == 0, -1e9)
    return torch.matmul(m.drop(scores.softmax(dim=-1)), v)


def in_place(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.mT
    scores /= math.sqrt(q.size(-1))
    scores.masked_fill_(~m.plain[: q.size(-2), : q.size(-2)], float("-inf"))
    return F.dropout(m.softmax(scores), 0.0, m.training) @ v


def where(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """GPT-2 of transformers."""
    length = q.size(-2)
    scores = torch.matmul(q, k.transpose(-1, -2))
    scores = scores / torch.full([], v.size(-1) ** 0.5, dtype=scores.dtype)
    lowest = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype)
    scores = torch.where(m.bias[:, :, :length, :length].bool(), scores, lowest)
    return torch.matmul(m.drop(F.softmax(scores, dim=-1).type(v.dtype)), v)


def where_not(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.mT
    above = torch.triu(torch.ones(q.size(-2), q.size(-2)), diagonal=1).bool()
    return m.softmax(torch.where(above, -1e10, scores) / 2.0) @ v


def added(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    length = q.size(-2)
    scores = 0.5 * torch.matmul(q, k.transpose(2, 3)) + m.added[:length, :length]
    return F.dropout(torch.softmax(scores, -1), p=0.3, training=False) @ v


def added_on_the_spot(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """As `nn.Transformer.generate_square_subsequent_mask` makes it."""
    above = torch.triu(torch.full((q.size(-2), q.size(-2)), float("-inf")), diagonal=1)
    return (above + (q * 0.5) @ k.mT).softmax(-1) @ v


def compared_places(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    place = torch.arange(q.size(-2))
    seen = place[:, None] >= place[None, :]
    return _scaled(q, k).masked_fill(seen.logical_not(), float("-inf")).softmax(-1) @ v


def einsums(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = torch.einsum("b h i d, b h j d -> b h i j", q, k) * 0.3
    scores = scores.masked_fill(~m.plain[: q.size(-2), : q.size(-2)], float("-inf"))
    return torch.einsum("b h i j, b h j d -> b h i d", scores.softmax(dim=-1), v)


def einsums_of_another_order(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", [q, k]) / 2
    return torch.einsum("bkhd,bhqk->bqhd", v, F.softmax(scores, dim=3))


def einsums_with_dots(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = torch.einsum("...id,...jd->...ij", q, k)
    return torch.einsum("...ij,...jd->...id", scores.softmax(-1), v)


def einsums_beside_others(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """As rotary embeddings compute their angles: one operand has a single dimension."""
    angles = torch.einsum("...i,j->...ij", q[..., 0], q.new_zeros(q.shape[-1]))
    return einsums_with_dots(m, q + angles, k, v, mask)


def batched(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    q, k, v = (each.flatten(0, -3) for each in (q, k, v))
    scores = torch.bmm(q, k.transpose(1, 2)).mul(0.4)
    return torch.bmm(F.softmax(scores, dim=2), v)


def batched_with_a_mask(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Products of three dimensions and a mask of four, as in transformers' BART."""
    batch, heads, length, size = q.shape
    q, k, v = (each.reshape(batch * heads, length, size) for each in (q, k, v))
    scores = torch.bmm(q, k.transpose(1, 2))
    scores = scores.view(batch, heads, length, length) + mask
    scores = scores.view(batch * heads, length, length)
    result = torch.bmm(F.softmax(scores, dim=-1), v)
    return result.view(batch, heads, length, size)


def baddbmm(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """diffusers: the product scales, and adds nothing."""
    batch, heads, length, size = q.shape
    q, k, v = (each.reshape(batch * heads, length, size) for each in (q, k, v))
    nothing = torch.empty(batch * heads, length, length, dtype=q.dtype)
    scores = torch.baddbmm(nothing, q, k.transpose(-1, -2), beta=0, alpha=0.25)
    return torch.bmm(scores.softmax(dim=-1).to(q.dtype), v)


def alibi(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """BLOOM: the product adds a slope, and a causal mask follows."""
    batch, heads, length, size = q.shape
    slope = (torch.arange(length, dtype=q.dtype) * 0.1).expand(batch * heads, length, length)
    flat = [each.reshape(batch * heads, length, size) for each in (q, k, v)]
    scores = torch.baddbmm(slope, flat[0], flat[1].mT, beta=1.0, alpha=0.5)
    scores = scores.masked_fill(~m.plain[:length, :length], float("-inf"))
    return torch.bmm(F.softmax(scores, dim=-1), flat[2]).view_as(q)


def temperature(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """A scale of its own for each head, learned; and one that is a buffer."""
    scores = (q @ k.mT) * m.temperature / m.scale
    return scores.softmax(-1) @ v


def table(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Swin: a learned table is added."""
    return (_scaled(q, k) + m.table.unsqueeze(0)).softmax(-1) @ v


def relative(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Music transformer: scores of places, a product too, are added to those of contents."""
    places = torch.einsum("bhid,hij->bhij", q, m.table)
    return (_scaled(q, k) + places).softmax(-1) @ v


def in_float32(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    length = q.size(-2)
    scores = (q.float() @ k.float().mT) * 0.5
    scores = scores.masked_fill(m.tril[:length, :length] == 0, float("-inf"))
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype) @ v


def unmasked(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return torch.softmax(q @ k.transpose(-2, -1) / 2, dim=-1) @ v


def filled(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _scaled(q, k).masked_fill(mask == 0, float("-inf")).softmax(-1) @ v


def filled_with_a_number(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _scaled(q, k).masked_fill(mask == 0, -1e9).softmax(-1) @ v


def filled_twice(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    length = q.size(-2)
    scores = _scaled(q, k).masked_fill(m.tril[:length, :length] == 0, float("-inf"))
    return scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ v


def given_added(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (_scaled(q, k) + mask).softmax(-1) @ v


def given_subtracted(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (_scaled(q, k) - 1e4 * (1 - mask)).softmax(-1) @ v


def weights_returned(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    weights = _scaled(q, k).softmax(-1)
    return weights @ v + weights.mean()


def weights_kept(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    weights = _scaled(q, k).softmax(-1)
    m.kept = weights.detach()
    return weights @ v


def scores_kept(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    m.kept = scores = _scaled(q, k)
    return scores.softmax(-1) @ v


def small_fill(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _scaled(q, k).masked_fill(m.tril[:LENGTH, :LENGTH] == 0, -5.0).softmax(-1) @ v


def multiplied(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (_scaled(q, k) * m.tril[:LENGTH, :LENGTH]).softmax(-1) @ v


def over_queries(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _scaled(q, k).softmax(-2) @ v


def one_head_of_keys(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _scaled(q, k[:, :1]).softmax(-1) @ v[:, :1]


def weights_masked(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (_scaled(q, k).softmax(-1) * m.tril[:LENGTH, :LENGTH]) @ v


def tanh_of_scores(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return torch.tanh(_scaled(q, k)).softmax(-1) @ v


def scaled_late(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return ((q @ k.mT + m.table) * 0.5).softmax(-1) @ v


def scaled_by_less_than_nothing(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return (q @ k.mT * -0.5).softmax(-1) @ v


def fill_scaled_down(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = (q @ k.mT).masked_fill(m.tril[:LENGTH, :LENGTH] == 0, -1e4)
    return (scores / 1e4).softmax(-1) @ v


def two_fills(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = _scaled(q, k).masked_fill(m.tril[:LENGTH, :LENGTH] == 0, -1e9)
    return scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ v


def dropped_twice(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.dropout(F.dropout(_scaled(q, k).softmax(-1), 0.1), 0.1) @ v


def in_double(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.softmax(_scaled(q, k), dim=-1, dtype=torch.float64).to(v.dtype) @ v


def no_attention(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return torch.softmax(q, dim=-1) * k + v


def values_changed(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    v = v * 2
    weights = _scaled(q, k).softmax(-1)
    v.add_(1)
    return weights @ v

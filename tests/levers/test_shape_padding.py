from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.levers import graphs
from hotloop.levers.compile import Compile
from hotloop.levers.fused_attention import FusedAttention
from hotloop.levers.padded_products import Padded, pad_products
from hotloop.levers.shape_padding import ShapePadding
from hotloop.measurement import Software
from tests import builders

CASES = 8
CLOSE = {"float32": 2e-6, "bfloat16": 2e-2, "float16": 4e-3}
"""Of the largest number: the order of summation may change."""


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Iterator[Any]:
    """Without oneDNN: see the tests of bf16."""
    with fresh_torch.backends.mkldnn.flags(enabled=False):
        yield fresh_torch


def watched(
    torch: Any, function: Any, multiple: int = 64, backend_of: str = "eager", **how: Any
) -> tuple[Any, list[Padded]]:
    """Compiled, its products padded; and what became of each of its graphs."""
    found: list[Padded] = []
    after = torch._dynamo.lookup_backend(backend_of)

    def backend(graph: Any, inputs: Any) -> Any:
        found.append(pad_products(torch, graphs.Captured(graph, inputs, None), multiple))
        return after(graph, inputs)

    return torch.compile(function, backend=backend, **how), found


def computed(function: Any, given: list[Any]) -> list[Any]:
    """The result, and every gradient."""
    leaves = [one.detach().clone().requires_grad_() for one in given]
    result = function(*leaves)
    result.float().square().mean().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def both_ways(torch: Any, function: Any, given: list[Any], multiple: int = 64) -> Padded:
    """What became of the graph, whose results must be those of the function itself."""
    padded, found = watched(torch, function, multiple)
    expected, got = computed(function, given), computed(padded, given)
    for one, other in zip(expected, got, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.is_contiguous() and other.is_contiguous()
        apart = (one.double() - other.double()).abs().max() / one.double().abs().max()
        assert apart < CLOSE[str(one.dtype).removeprefix("torch.")]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("case", range(CASES))
def test_linear_of_any_size(case: int, dtype: str, torch: Any) -> None:
    draw = random.Random(f"{case} {dtype}")
    inner, outer = (draw.choice([8, 10, 64, 65, 77, 100, 1000, 1023, 1025]) for _ in range(2))
    rows = draw.choice([(1,), (7,), (2, 5), (2, 1, 3), ()])
    shapes = [(*rows, inner), (outer, inner), *([(outer,)] if draw.random() < 0.5 else [])]
    given = [torch.randn(shape, dtype=getattr(torch, dtype)) for shape in shapes]
    needed = 4 if dtype == "float32" else 8
    found = both_ways(torch, torch.nn.functional.linear, given)
    assert found.products == any(size >= 64 and size % needed for size in (inner, outer))


WAYS: dict[str, tuple[Callable[..., Any], Callable[..., list[tuple[int, ...]]]]] = {
    "operator": (lambda a, b: a @ b, lambda m, k, n: [(m, k), (k, n)]),
    "method": (lambda a, b: a.matmul(b), lambda m, k, n: [(2, m, k), (k, n)]),
    "mm": (lambda a, b: a.mm(b), lambda m, k, n: [(m, k), (k, n)]),
    "bmm": (lambda a, b: a.bmm(b), lambda m, k, n: [(3, m, k), (3, k, n)]),
    "transposed": (lambda a, b: a @ b.mT, lambda m, k, n: [(2, 3, m, k), (2, 3, n, k)]),
    "broadcast": (lambda a, b: a @ b, lambda m, k, n: [(2, 3, m, k), (2, 1, k, n)]),
    "bias": (lambda c, a, b: c.addmm(a, b), lambda m, k, n: [(n,), (m, k), (k, n)]),
    "rows added": (lambda c, a, b: c.addmm(a, b), lambda m, k, n: [(m, 1), (m, k), (k, n)]),
    "scaled": (
        lambda c, a, b: c.addmm(a, b, beta=0.5, alpha=2),
        lambda m, k, n: [(1, n), (m, k), (k, n)],
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("sizes", [(5, 64, 67), (9, 1025, 131)])
@pytest.mark.parametrize("way", WAYS)
def test_products_however_written(
    way: str, sizes: tuple[int, int, int], dtype: str, torch: Any
) -> None:
    function, shapes = WAYS[way]
    given = [torch.randn(shape, dtype=getattr(torch, dtype)) for shape in shapes(*sizes)]
    assert both_ways(torch, function, given).products == 1


@pytest.mark.parametrize(("multiple", "to"), [(64, 1088), (8, 1032), (128, 1152)])
def test_wide_sizes_become_whole_tiles(multiple: int, to: int, torch: Any) -> None:
    given = [torch.randn(3, 100), torch.randn(1025, 100)]
    found = both_ways(torch, torch.nn.functional.linear, given, multiple)
    assert (found.widest, found.widest_to) == (1025, to)


def test_under_autocast_the_format_of_the_product_counts(torch: Any) -> None:
    """100 is fine in float32, and odd in 16 bits."""
    weight = torch.randn(100, 64)

    def cast(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.linear(x, weight)

    assert both_ways(torch, cast, [torch.randn(4, 64)]).products == 1


def test_what_is_infinite_stays_where_it_is(torch: Any) -> None:
    """Nothing times zero but zero: padding makes no number into none."""
    x, weight = torch.randn(6, 65), torch.randn(67, 65)
    x[1, 3] = weight[5, 7] = math.inf
    padded, found = watched(torch, torch.nn.functional.linear)
    expected = computed(torch.nn.functional.linear, [x, weight])
    for one, other in zip(expected, computed(padded, [x, weight]), strict=True):
        assert torch.equal(one.isnan(), other.isnan())
        assert torch.equal(one.isinf(), other.isinf())
    assert found[0].products == 1


def test_the_result_is_the_scripts_own(torch: Any) -> None:
    """It may be looked at in any way, and written to."""

    def written(x: Any, weight: Any) -> Any:
        made = torch.nn.functional.linear(x, weight)
        made[:, 1:3] = 0
        made /= 2
        return made.view(-1)

    given = [torch.randn(4, 65), torch.randn(67, 65)]
    assert both_ways(torch, written, given).products == 1


LEFT_ALONE: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], int]] = {
    "even": (lambda a, b: a @ b, [(5, 64), (64, 128)], 0),
    "odd rows": (lambda a, b: a @ b, [(65, 64), (64, 128)], 0),
    "small": (lambda a, b: a @ b, [(5, 10), (10, 63)], 1),
    "a vector": (lambda a, b: a @ b, [(5, 65), (65,)], 0),
    "folded the other way": (lambda a, b: a @ b, [(5, 65), (3, 65, 67)], 0),
    "no product": (lambda a, b: a * b, [(5, 65), (5, 65)], 0),
}


@pytest.mark.parametrize("what", LEFT_ALONE)
def test_what_is_left_alone(what: str, torch: Any) -> None:
    function, shapes, small = LEFT_ALONE[what]
    found = both_ways(torch, function, [torch.randn(shape) for shape in shapes])
    assert (found.products, found.small) == (0, small)


def test_double_precision_has_no_tensor_cores_here(torch: Any) -> None:
    padded, found = watched(torch, torch.mm)
    padded(torch.randn(5, 65).double(), torch.randn(65, 67).double())
    assert found == [Padded()]


def test_a_tensor_to_write_into_is_kept(torch: Any) -> None:
    a, b, out = torch.randn(5, 65), torch.randn(65, 67), torch.empty(5, 67)
    padded, found = watched(torch, lambda a, b: torch.mm(a, b, out=out))
    assert torch.allclose(padded(a, b), a @ b, atol=1e-5)
    assert not any(one.products for one in found)


def test_sizes_that_change_are_left_alone(torch: Any) -> None:
    """The width of a weight does not: it is padded all the same."""
    layer = torch.nn.Linear(72, 67)
    padded, found = watched(torch, lambda x: layer(x).mT @ layer(x), dynamic=True)
    for rows in (65, 71, 90):
        x = torch.randn(rows, 72)
        assert torch.allclose(padded(x), layer(x).mT @ layer(x), rtol=1e-4, atol=1e-4)
    assert [one.products for one in found] == [3]  # two layers, and what they are multiplied to


def language(torch: Any, words: int = 1025, width: int = 72) -> Any:
    """A model whose head is its embedding, and which computes its loss itself."""

    class Tied(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(words, width)
            self.inner = torch.nn.Linear(width, width)
            self.head = torch.nn.Linear(width, words, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x: Any, y: Any) -> Any:
            logits = self.head(torch.relu(self.inner(self.embed(x))))
            return torch.nn.functional.cross_entropy(logits.view(-1, words), y.view(-1))

    return Tied()


def trained(
    torch: Any, model: Any, *levers: Any, steps: int = 5, rate: float = 0.01, on_gpu: bool = False
) -> list[float]:
    """On a GPU in bfloat16."""
    from tests.levers.jobs import under

    torch.manual_seed(1)
    words = model.head.weight.shape[0]
    x, y = torch.randint(words, (2, 4, 16), device="cuda" if on_gpu else "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    kept = []
    with under(*levers):
        for _ in range(steps):
            optimizer.zero_grad()
            # Around each pass: an autocast keeps what it has cast until it ends.
            with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu):
                loss = model(x, y)
            loss.backward()
            optimizer.step()
            kept.append(loss.item())
    return kept


@pytest.mark.usefixtures("quick")
def test_a_tied_head_keeps_its_parameters(torch: Any) -> None:
    model = language(torch)
    plain = copy.deepcopy(model)
    lever = ShapePadding()
    assert trained(torch, model, Compile(), lever) == pytest.approx(trained(torch, plain), rel=1e-4)
    for (name, one), (other, two) in zip(
        model.state_dict().items(), plain.state_dict().items(), strict=True
    ):
        assert (name, one.shape) == (other, two.shape)
        assert torch.allclose(one, two, atol=1e-3)
    assert model.head.weight is model.embed.weight and model.head.weight.grad.shape == (1025, 72)
    receipt = lever.receipt()
    assert receipt.applied
    assert receipt.evidence == {
        "products": 1,
        "widest": 1025,
        "padded_to": 1088,
        "left_alone": 0,
        "runs": receipt.evidence["runs"],
    }
    assert receipt.evidence["runs"]


def test_the_gradient_of_the_logits_is_padded_once(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both products that take it take the same: differentiated, one padded tensor feeds them."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    backward: list[Any] = []

    def keep(graph: Any, inputs: Any) -> Any:
        backward.append(graph)
        return torch._dynamo.backends.debugging.boxed_nop(graph, inputs)

    partly = {"partition_fn": min_cut_rematerialization_partition}
    plain = torch._dynamo.backends.debugging.boxed_nop
    compiler = aot_autograd(fw_compiler=plain, bw_compiler=keep, **partly)
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: compiler)
    trained(torch, language(torch), Compile(), ShapePadding())
    wide = [node for node in backward[0].graph.nodes if "aten.mm" in str(node.target)][:2]
    assert [tuple(node.meta["val"].shape) for node in wide] == [(1088, 72), (64, 72)]
    assert len({source(node.args[0]) for node in wide}) == 1


def source(node: Any) -> Any:
    """What a view is a view of."""
    while any(view in str(node.target) for view in ("permute", "view", "aten.t.")):
        node = node.args[0]
    return node


def test_the_real_compiler(torch: Any) -> None:
    layer = torch.nn.Linear(65, 67)
    plain = copy.deepcopy(layer)
    padded, found = watched(torch, layer, backend_of="inductor")
    for one in (layer, plain):
        (padded if one is layer else one)(torch.ones(3, 65)).square().mean().backward()
    assert found[0].products == 1
    assert torch.allclose(layer.weight.grad, plain.weight.grad, atol=1e-6)
    assert layer.weight.grad.is_contiguous()


@pytest.mark.usefixtures("quick")
def test_attention_is_replaced_before_it_is_padded(torch: Any) -> None:
    from tests.levers import attention_jobs as hand
    from tests.levers.jobs import under

    class Long(hand.Small):
        def forward(self, x: Any) -> Any:
            return super().forward(x.repeat(1, 17)[:, :67])

    attention, padding = FusedAttention(), ShapePadding()
    with under(Compile(), attention, padding):
        from tests.runtime import jobs

        jobs.train(Long(hand.unmasked))
    assert attention.receipt().applied
    assert padding.receipt().reason == "no product of an odd size was found in the captured graphs"


def test_reasons(torch: Any) -> None:
    lever = ShapePadding()
    assert lever.receipt().reason == "no graph was captured"
    captured = graphs.Captured(None, (), None)
    lever._graphs = [(captured, Padded())]
    assert lever.receipt().reason == "no product of an odd size was found in the captured graphs"
    lever._graphs = [(captured, Padded(products=1))]
    assert lever.receipt().reason == "no graph with a padded product ran"


@pytest.mark.parametrize("multiple", [0, -8, 4, 12])
def test_a_multiple_that_does_not_align(multiple: int) -> None:
    assert "a multiple of 8" in ShapePadding(multiple).problem()


def test_what_it_could_win(torch: Any) -> None:
    from tests.levers.jobs import seen

    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    odd = builders.model(odd_sizes=[50257])
    assert "tensor cores" in ShapePadding.expected(seen(models=[odd])).reason
    assert "no size above 64" in ShapePadding.expected(seen(measurement=on_gpu)).reason
    own = replace(odd, compiled=True)
    assert "itself" in ShapePadding.expected(seen(measurement=on_gpu, models=[own])).reason
    expected = ShapePadding.expected(seen(measurement=on_gpu, models=[odd]))
    assert expected.is_worth_trying and expected.share > 0


def test_odd_sizes_are_seen(torch: Any) -> None:
    from hotloop.runtime.probes.inventory import _model

    assert _model(torch, language(torch, 1025, 100)).odd_sizes == [100, 1025]
    assert _model(torch, torch.nn.Linear(10, 64)).odd_sizes == []


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_on_a_gpu_in_16_bits(mode: str, torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    from torch._inductor.utils import run_and_get_code

    model = language(torch, 50257, 768).cuda()
    plain = copy.deepcopy(model)
    lever, compiled = ShapePadding(), Compile(mode)
    how: dict[str, Any] = {"steps": 8, "rate": 1e-4, "on_gpu": True}
    expected = trained(torch, plain, **how)
    with torch._inductor.config.patch(force_disable_caches=True):
        got, sources = run_and_get_code(trained, torch, model, compiled, lever, **how)
    assert got == pytest.approx(expected, rel=2e-2)
    assert compiled.receipt().applied
    assert lever.receipt().evidence["padded_to"] == 50304
    code = "\n".join(sources)
    assert "empty_strided_cuda((64, 50304)" in code  # the logits
    assert "cuda((64, 50257)" not in code  # no copy of them, nor of their gradient

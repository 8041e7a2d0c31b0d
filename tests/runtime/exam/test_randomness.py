from __future__ import annotations

import importlib.util
import random
import sys
from functools import partial
from typing import Any

import numpy
import pytest

from hotloop.runtime.exam import randomness


def draw(torch: Any) -> list[float]:
    """As an unseeded script does."""
    of_numpy = [float(numpy.random.rand()), float(numpy.random.default_rng().random())]
    return [torch.rand(1).item(), random.random(), *of_numpy]


def seeded_draw(torch: Any) -> list[float]:
    torch.manual_seed(3)
    random.seed(3)
    numpy.random.seed(3)
    of_numpy = [float(numpy.random.rand()), float(numpy.random.default_rng(3).random())]
    return [torch.rand(1).item(), random.random(), *of_numpy]


class Drawing:
    """A dataset that draws from all three, as augmentation does."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.stack([torch.rand(()), torch.tensor(random.random() + numpy.random.rand())])


def batches(torch: Any, workers: int) -> Any:
    loader = torch.utils.data.DataLoader(Drawing(), batch_size=4, num_workers=workers)
    return torch.cat(list(loader))


def test_a_script_that_sets_no_seed_repeats_itself(torch: Any, pin: Any) -> None:
    pin()
    first = draw(torch)
    pin()
    assert draw(torch) == first


def test_an_offset_moves_every_draw_of_an_unseeded_script(torch: Any, pin: Any) -> None:
    pin()
    usual = draw(torch)
    pin(offset=1)
    assert all(one != other for one, other in zip(draw(torch), usual, strict=True))


def test_an_offset_moves_the_seeds_that_a_script_sets_itself(torch: Any, pin: Any) -> None:
    usual = seeded_draw(torch)
    pin()
    assert seeded_draw(torch) == usual
    pin(offset=1)
    shifted = seeded_draw(torch)
    assert all(one != other for one, other in zip(shifted, usual, strict=True))
    assert seeded_draw(torch) == shifted


def test_a_dataset_draws_the_same_in_this_process_and_in_workers(torch: Any, pin: Any) -> None:
    pin()
    here = batches(torch, 0)
    assert torch.equal(batches(torch, 2), here)
    assert len(here.unique()) == here.numel()


def test_what_a_dataset_draws_depends_on_the_offset(torch: Any, pin: Any) -> None:
    pin()
    usual = batches(torch, 0)
    pin(offset=1)
    assert not torch.equal(batches(torch, 0), usual)


def test_what_a_dataset_draws_leaves_the_scripts_own_numbers_alone(torch: Any, pin: Any) -> None:
    pin()
    loader = iter(torch.utils.data.DataLoader(Drawing(), batch_size=4))
    before = randomness.state(torch)
    next(loader)
    drawn = draw(torch)
    randomness.restore(torch, before)
    assert draw(torch) == drawn


def test_every_dropout_of_torch_lets_everything_through(torch: Any, pin: Any) -> None:
    pin()
    x = torch.randn(2, 3, 4, 4)
    for name in ("Dropout", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout"):
        assert torch.equal(getattr(torch.nn, name)(0.9).train()(x), x), name
    assert torch.equal(torch.nn.Dropout1d(0.9).train()(x[0]), x[0])
    assert torch.equal(torch.nn.Dropout3d(0.9).train()(x[:, None]), x[:, None])
    assert torch.equal(torch.nn.functional.dropout(x, p=0.9), x)


def test_attention_drops_nothing(torch: Any, pin: Any) -> None:
    q = torch.randn(2, 2, 4, 8)
    attend = torch.nn.functional.scaled_dot_product_attention
    plain, causal = attend(q, q, q), attend(q, q, q, is_causal=True)
    pin()
    attend = torch.nn.functional.scaled_dot_product_attention
    assert torch.equal(attend(q, q, q, dropout_p=0.9), plain)
    assert torch.equal(attend(q, q, q, None, 0.9, True), causal)


@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_drops_nothing(torch: Any, pin: Any, need_weights: bool) -> None:
    layer = torch.nn.MultiheadAttention(8, 2, dropout=0.9).train()
    x = torch.randn(4, 2, 8)
    pin()
    found, _ = layer(x, x, x, need_weights=need_weights)
    layer.dropout = 0.0
    expected, _ = layer(x, x, x, need_weights=need_weights)
    assert torch.equal(found, expected)


def test_without_dropout_nothing_is_drawn_and_with_noise_something_is(torch: Any, pin: Any) -> None:
    pin()
    before = randomness.drawn(torch)
    torch.nn.Dropout(0.5).train()(torch.ones(4))
    assert randomness.drawn(torch) == before
    torch.randn(1)
    assert randomness.drawn(torch) != before


def test_every_generator_is_restored(torch: Any) -> None:
    before = randomness.state(torch)
    first = torch.rand(1).item(), random.random(), float(numpy.random.rand())
    randomness.restore(torch, before)
    assert (torch.rand(1).item(), random.random(), float(numpy.random.rand())) == first


def test_compiled_code_may_be_told_to_draw_what_eager_code_would(torch: Any, pin: Any) -> None:
    import torch._inductor.config as inductor

    with inductor.patch(fallback_random=False):  # and puts it back, as only torch knows how
        pin()
        assert not inductor.fallback_random
        pin(eager_random=True)
        assert inductor.fallback_random


@pytest.mark.parametrize("name", randomness.LIKE)
def test_noise_like_a_tensor_does_not_depend_on_its_order(
    name: str, torch: Any, pin: Any, compiler: Any
) -> None:
    def drawn(order: Any, how: Any) -> tuple[Any, Any]:
        pin(eager_random=True)
        x = torch.zeros(2, 8, 5, 5).contiguous(memory_format=order)
        more = (10,) if name == "randint_like" else ()

        def noise(x: Any) -> Any:
            return getattr(torch, name)(x, *more)

        return how(noise)(x), torch.rand(())

    plain, after = drawn(torch.contiguous_format, lambda function: function)
    for how in (lambda function: function, compiler):
        noise, next_one = drawn(torch.channels_last, how)
        assert torch.equal(noise, plain)
        assert torch.equal(next_one, after)
        assert noise.is_contiguous(memory_format=torch.channels_last)


def test_dynamo_lists_torchs_own_whenever_it_does(torch: Any, pin: Any) -> None:
    """As in a real trial, where nothing was compiled before."""
    from torch._dynamo import trace_rules

    own = torch.randn_like
    pin()
    try:
        trace_rules.get_torch_obj_rule_map.cache_clear()
        listed = trace_rules.get_torch_obj_rule_map()
        assert own in listed and torch.randn_like not in listed
    finally:
        trace_rules.get_torch_obj_rule_map.cache_clear()


@pytest.fixture
def compiler(torch: Any) -> Any:
    """torch's own, which is to draw what eager code would."""
    import torch._inductor.config as inductor

    torch._dynamo.reset()
    with inductor.patch(fallback_random=True):
        yield partial(torch.compile, fullgraph=True)
    torch._dynamo.reset()


@pytest.mark.parametrize("number", ["bfloat16", "float16"])
@pytest.mark.parametrize("last", [True, False])
def test_noise_in_16_bits_is_that_in_32_rounded(
    number: str, last: bool, torch: Any, pin: Any, compiler: Any
) -> None:
    order = torch.channels_last if last else torch.contiguous_format
    format = getattr(torch, number)
    x = torch.zeros(2, 8, 5, 5).contiguous(memory_format=order)
    for how in (lambda function: function, compiler):
        both = []
        for like in (x, x.to(format)):
            pin(eager_random=True)
            both.append((how(lambda like: torch.randn_like(like))(like), torch.rand(())))
        (wide, after), (low, next_one) = both
        assert low.dtype == format and torch.equal(low, wide.to(format))
        assert torch.equal(after, next_one)


def test_noise_keeps_what_is_asked_of_it(torch: Any, pin: Any) -> None:
    pin()
    x = torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    noise = torch.randn_like(x, dtype=torch.float64, requires_grad=True)
    assert noise.dtype == torch.float64 and noise.requires_grad and noise.is_leaf
    assert torch.randn_like(x, memory_format=torch.contiguous_format).is_contiguous()
    assert not torch.randn_like(x, memory_format=torch.preserve_format).is_contiguous()
    assert torch.randint_like(input=x, high=3).max() < 3


class _Own:
    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> str:
        return "its own"


@pytest.mark.parametrize("name", randomness.LIKE)
def test_noise_is_drawn_wherever_it_could_be_before(name: str, torch: Any, pin: Any) -> None:
    pin()
    drawing = partial(getattr(torch, name), **({"high": 9} if name == "randint_like" else {}))
    x = torch.ones(3, 4, 5).transpose(1, 2)

    def loss(y: Any) -> Any:
        return (y * drawing(y)).sum()

    assert torch.func.grad(loss)(x).shape == x.shape
    assert torch.func.vmap(loss, randomness="different")(x).shape == (3,)
    assert drawing(_Own()) == "its own"


def module_of(folder: Any, *lines: str) -> Any:
    """TorchScript reads the source of what it compiles."""
    (folder / "scripted.py").write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location("scripted", folder / "scripted.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scripted"] = module  # where the source of a class is looked for
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["scripted"]
    return module


def test_torchscript_takes_it(torch: Any, pin: Any, tmp_path: Any) -> None:
    pin()
    module = module_of(
        tmp_path,
        "import torch",
        "def noise(y: torch.Tensor):",
        "    return torch.randn_like(y) + torch.rand_like(y) + torch.randint_like(y, 3)",
    )
    assert torch.jit.script(module.noise)(torch.ones(4)).shape == (4,)


def test_torchscript_finds_what_a_class_names_where_it_stands(
    torch: Any, pin: Any, tmp_path: Any
) -> None:
    """As torch's own distributed optimizers do, which many libraries import."""
    pin()
    module = module_of(
        tmp_path,
        "import torch",
        "def doubled(y: torch.Tensor) -> torch.Tensor:",
        "    return 2 * y",
        "@torch.jit.script",
        "class Doubling:",
        "    def __init__(self) -> None:",
        "        self.count = 0",
        "    def go(self, y: torch.Tensor) -> torch.Tensor:",
        "        return doubled(y)",
    )
    assert module.Doubling().go(torch.ones(2)).tolist() == [2, 2]

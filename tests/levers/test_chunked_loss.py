"""Against torch's own cross-entropy: the same losses and gradients, and no large copies."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from hotloop.inspection import Inspection, LossSeen, Operators
from hotloop.levers.chunked_loss import ON_CPU, ON_GPU, ChunkedLoss
from hotloop.levers.chunks import TWICE, pieces
from hotloop.measurement import Memory, Software
from tests import builders

SHAPES = [(7, 11), (1, 40), (64, 3), (3, 5, 6), (2, 9, 4, 3), (1, 3, 50)]
IGNORED = -100


def case(torch: Any, seed: int, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Logits of all sizes, and targets of which some are ignored."""
    torch.manual_seed(seed)
    logits = (torch.randn(shape, dtype=torch.float64) * 5).to(dtype)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    target[torch.rand(target.shape) < 0.2] = IGNORED
    target.flatten()[0] = 0  # one counts
    return logits, target


def computed(loss: Any, logits: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The loss and the gradient of the logits, for a gradient of the loss that is not one."""
    own = logits.detach().clone().requires_grad_()
    found = loss(own, *args, **options)
    found.backward(found.detach() * 0 + 1.7)
    return found.detach(), own.grad


def both_ways(
    jobs: Any, torch: Any, lever: ChunkedLoss, logits: Any, target: Any, **options: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    torchs = computed(torch.nn.functional.cross_entropy, logits, target, **options)
    with jobs.under(lever):
        ours = computed(torch.nn.functional.cross_entropy, logits, target, **options)
    return torchs, ours


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_as_torchs_own(
    dtype: str, reduction: str, shape: tuple[int, ...], jobs: Any, torch: Any
) -> None:
    near = {"float64": 1e-12, "float32": 2e-5}[dtype]
    chance = random.Random(f"{dtype}{reduction}{shape}")
    for smoothing, weighted, ignored in itertools.product((0.0, 0.1, 1.0), (0, 1), (IGNORED, 1)):
        logits, target = case(torch, chance.randrange(10**6), shape, getattr(torch, dtype))
        if ignored != IGNORED:
            target.masked_fill_(target == IGNORED, ignored)
        options = {
            "weight": torch.rand(shape[1], dtype=logits.dtype) if weighted else None,
            "reduction": reduction,
            "label_smoothing": smoothing,
            "ignore_index": ignored,
        }
        lever = ChunkedLoss(chunk=chance.randint(1, logits.numel() // 2))
        torchs, ours = both_ways(jobs, torch, lever, logits, target, **options)
        assert lever.receipt().applied
        for expected, found in zip(torchs, ours, strict=True):
            torch.testing.assert_close(found, expected, rtol=near, atol=near, equal_nan=True)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_in_16_bits_it_is_nearer_to_the_truth(
    dtype: str, reduction: str, jobs: Any, torch: Any
) -> None:
    """Inside it computes in float32, and rounds once, at the end."""
    logits, target = case(torch, 3, (40, 30), getattr(torch, dtype))
    options = {"reduction": reduction, "label_smoothing": 0.1}
    truth = computed(torch.nn.functional.cross_entropy, logits.double(), target, **options)
    torchs, ours = both_ways(jobs, torch, ChunkedLoss(chunk=100), logits, target, **options)
    for true, theirs, own in zip(truth, torchs, ours, strict=True):
        assert own.dtype is theirs.dtype is logits.dtype
        rounding = torch.finfo(logits.dtype).eps * true.abs().max()
        assert (own - true).abs().max() <= max(rounding, (theirs - true).abs().max())


def test_under_autocast_it_is_float32_as_torchs_is(jobs: Any, torch: Any) -> None:
    logits, target = case(torch, 4, (40, 30), torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lever = ChunkedLoss(chunk=100)
        torchs, ours = both_ways(jobs, torch, lever, logits, target)
    assert ours[0].dtype is torchs[0].dtype is torch.float32
    assert ours[1].dtype is torch.bfloat16
    torch.testing.assert_close(ours[0], torchs[0])
    torch.testing.assert_close(ours[1], torchs[1])
    assert lever.receipt().evidence["bytes_saved"] == logits.numel() * (3 * 4 - 2 * 2)


def test_where_nothing_counts_it_is_no_number_as_torchs_is(jobs: Any, torch: Any) -> None:
    logits, target = case(torch, 5, (6, 5), torch.float32)
    target.fill_(IGNORED)
    torchs, ours = both_ways(jobs, torch, ChunkedLoss(chunk=5), logits, target)
    assert torchs[0].isnan() and ours[0].isnan()
    torchs, ours = both_ways(jobs, torch, ChunkedLoss(chunk=5), logits, target, reduction="sum")
    assert ours[0] == torchs[0] == 0 and ours[1].eq(0).all()


def test_logits_in_another_order_of_memory(jobs: Any, torch: Any) -> None:
    """(batch, position, class) turned round, as scripts do it; and channels last."""
    turned = torch.randn(4, 10, 12).transpose(1, 2)
    images = torch.randn(3, 6, 4, 5).contiguous(memory_format=torch.channels_last)
    for logits in (turned, images):
        target = torch.randint(0, logits.shape[1], (logits.shape[0], *logits.shape[2:]))
        lever = ChunkedLoss(chunk=20)
        torchs, ours = both_ways(jobs, torch, lever, logits, target)
        assert lever.receipt().applied
        torch.testing.assert_close(ours, torchs)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 7), (1, 100, 9), (4, 1)])
@pytest.mark.parametrize("chunk", [1, 4, 20, 1000])
def test_pieces_are_everything_once(shape: tuple[int, ...], chunk: int, torch: Any) -> None:
    rows, classes, *positions = shape
    times = torch.zeros(rows, *positions)
    for piece in pieces(shape, chunk):
        times[piece] += 1
        assert times[piece].numel() == 1 or times[piece].numel() * classes <= chunk
    assert times.eq(1).all()


def test_no_copy_of_all_logits_is_made(jobs: Any, torch: Any) -> None:
    """All that is as large as the logits is their gradient, in their own format."""
    from torch.utils._python_dispatch import TorchDispatchMode

    large: list[Any] = []

    class Watching(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
            result = function(*args, **(kwargs or {}))
            is_new = isinstance(result, torch.Tensor) and not function.is_view
            if is_new and function._schema.name != "aten::copy_" and result.numel() >= 500:
                large.append((function._schema.name, result.dtype))
            return result

    logits = torch.randn(50, 10, dtype=torch.bfloat16, requires_grad=True)
    target = torch.randint(0, 10, (50,))
    with jobs.under(ChunkedLoss(chunk=40)), torch.autocast("cpu", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(logits, target)
        with Watching():
            torch.nn.functional.cross_entropy(logits, target)
            assert not large
            loss.backward()
    assert large == [("aten::empty_like", torch.bfloat16)]


def test_of_a_script_that_calls_a_criterion(jobs: Any, torch: Any) -> None:
    logits, target = case(torch, 6, (30, 20), torch.float32)
    lever, criterion = ChunkedLoss(chunk=50), torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    expected = criterion(logits, target)
    with jobs.under(lever):
        torch.testing.assert_close(criterion(logits, target), expected)
    assert lever.receipt().evidence == {
        "losses": 1,
        "bytes_saved": 30 * 20 * (3 - 2) * 4,
        "left_alone": 0,
    }


def test_what_the_script_does_with_its_logits_besides(jobs: Any, torch: Any) -> None:
    head = torch.nn.Linear(8, 40)
    x, target = torch.randn(30, 8), torch.randint(0, 40, (30,))
    with jobs.under(ChunkedLoss(chunk=100)):
        logits = head(x)
        before = logits.detach().clone()
        (torch.nn.functional.cross_entropy(logits, target) + logits.square().mean()).backward()
        assert torch.equal(logits, before)
    gradient = head.weight.grad.clone()
    head.zero_grad()
    logits = head(x)
    (torch.nn.functional.cross_entropy(logits, target) + logits.square().mean()).backward()
    torch.testing.assert_close(head.weight.grad, gradient)


def refusals(torch: Any) -> dict[str, tuple[Any, ...]]:
    logits = torch.randn(20, 10)
    target = torch.randint(0, 10, (20,))
    scattered = torch.randn(6, 10, 4, 5).permute(3, 1, 0, 2)
    return {
        "its targets are probabilities of classes": (logits, logits.softmax(1)),
        "its logits are too few": (logits[:2], target[:2]),
        "it is called in a way that is out of date": (logits, target, None, False),
        "its logits lie scattered in memory": (scattered, torch.randint(0, 10, (5, 6, 4))),
    }


def test_what_is_left_to_torch(jobs: Any, torch: Any) -> None:
    functional = torch.nn.functional
    for reason, given in refusals(torch).items():
        lever, expected = ChunkedLoss(chunk=50), functional.cross_entropy(*given)
        with jobs.under(lever):
            assert torch.equal(functional.cross_entropy(*given), expected)
        assert lever.receipt().reason == f"no loss was cut: {reason}"


def test_what_is_wrong_with_a_call_torch_says(jobs: Any, torch: Any) -> None:
    logits, target = torch.randn(20, 10), torch.randint(0, 10, (20,))
    functional = torch.nn.functional
    with jobs.under(ChunkedLoss(chunk=50)):
        with pytest.raises(TypeError):
            functional.cross_entropy(logits, target, unheard_of=1)
        with pytest.raises(ValueError, match="batch_size"):
            functional.cross_entropy(logits, target[:3])
        with pytest.raises(RuntimeError, match="not differentiable"):
            functional.cross_entropy(logits, target, torch.ones(10, requires_grad=True))
        with pytest.raises(RuntimeError, match="weight tensor"):
            functional.cross_entropy(logits, target, torch.ones(3))
        with pytest.raises(RuntimeError, match="out of bounds"):
            functional.cross_entropy(logits, target.fill_(10))


def test_under_torch_func_it_is_torchs(jobs: Any, torch: Any) -> None:
    logits, target = torch.randn(20, 10), torch.randint(0, 10, (20,))
    lever = ChunkedLoss(chunk=50)
    with jobs.under(lever):
        gradient = torch.func.grad(torch.nn.functional.cross_entropy)(logits, target)
    assert gradient.shape == logits.shape
    assert "torch.func" in lever.receipt().reason


def test_twice_differentiated_it_says_what_to_do(jobs: Any, torch: Any) -> None:
    logits = torch.randn(20, 10, requires_grad=True)
    with jobs.under(ChunkedLoss(chunk=50)):
        loss = torch.nn.functional.cross_entropy(logits, torch.randint(0, 10, (20,)))
        with pytest.raises(RuntimeError) as refused:
            torch.autograd.grad(loss, logits, create_graph=True)
    assert str(refused.value) == TWICE


def test_inside_compiled_code_it_did_nothing(jobs: Any, torch: Any) -> None:
    """torch's own loss is in the graph, and fused there."""

    class WithLoss(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(4, 30)

        def forward(self, x: Any, y: Any) -> Any:
            return torch.nn.functional.cross_entropy(self.head(x), y)

    lever = ChunkedLoss(chunk=50)
    compiled = torch.compile(WithLoss(), backend="aot_eager")
    with jobs.under(lever):
        compiled(torch.randn(20, 4), torch.randint(0, 30, (20,))).backward()
    torch._dynamo.reset()
    assert not lever.receipt().applied
    assert "compiled code" in lever.receipt().reason


def test_a_training_is_the_same(jobs: Any, torch: Any) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 50))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        x, y = torch.randn(32, 6), torch.randint(0, 50, (32,))
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    plain, lever = train(), ChunkedLoss(chunk=100)
    with jobs.under(lever):
        assert train() == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().evidence["losses"] == 10


class TestExpectation:
    @staticmethod
    def seen(jobs: Any, logits: int, **changes: Any) -> Any:
        memory = Memory(host_peak=2**30)
        made = jobs.seen(measurement=builders.measurement(memory=memory))
        losses = [LossSeen("cross_entropy", False, 2, 2 * logits, 2)] if logits else []
        losses.append(LossSeen("mse_loss", False, 2, 2**40, 4))
        operators = Operators(steps=2, bytes=2 * 2**32)
        look = Inspection(steps=2, operators=operators, losses=losses)
        return replace(made, inspection=look, **changes)

    def test_of_large_logits(self, jobs: Any) -> None:
        large = self.seen(jobs, 2**26)
        assert ChunkedLoss.expected(large).share == pytest.approx(3 / 16 * 13 / 20, rel=0.05)
        for_memory = ChunkedLoss.expected(replace(large, objective="memory"))
        assert for_memory.share == pytest.approx(1 / 4)

    def test_of_small_ones_and_of_none(self, jobs: Any) -> None:
        assert "is 0.1% of the job's memory" in ChunkedLoss.expected(self.seen(jobs, 2**18)).reason
        assert ChunkedLoss.expected(self.seen(jobs, 0)).reason == "no cross-entropy was seen"
        assert "no run looked for" in ChunkedLoss.expected(jobs.seen()).reason

    def test_chunks_are_as_large_as_the_device_likes(self, jobs: Any) -> None:
        on_gpu = builders.measurement(software=Software(device=builders.GPU))
        assert ChunkedLoss.settings(jobs.seen()) == [{"chunk": ON_CPU}]
        assert ChunkedLoss.settings(jobs.seen(measurement=on_gpu)) == [{"chunk": ON_GPU}]
        assert ChunkedLoss(chunk=0).problem()


@pytest.mark.gpu
@pytest.mark.parametrize("autocast", [False, True])
def test_on_a_gpu_the_peak_is_lower_by_what_is_said(autocast: bool, jobs: Any, torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")

    def peak() -> int:
        torch.manual_seed(0)
        dtype = torch.bfloat16 if autocast else torch.float32
        logits = torch.randn(4096, 32768, device="cuda", dtype=dtype, requires_grad=True)
        target = torch.randint(0, 32768, (4096,), device="cuda")
        torch.cuda.reset_peak_memory_stats()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = torch.nn.functional.cross_entropy(logits, target)
        loss.backward()
        return int(torch.cuda.max_memory_allocated())

    plain, lever = peak(), ChunkedLoss(chunk=2**22)
    with jobs.under(lever):
        saved = plain - peak()
    claimed = lever.receipt().evidence["bytes_saved"]
    assert isinstance(claimed, int)
    assert saved >= 0.8 * claimed

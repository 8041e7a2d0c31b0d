"""What torch captures of a model, and what of it can be recorded."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.levers.recorded_passes import RecordedPasses, obstacle
from tests.levers.model_graphs import ModelGraphOnCpu, plain_network


@pytest.fixture
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


def told(torch: Any, compute: Any, *given: Any) -> list[str]:
    """Of each pass that was captured: why it cannot be recorded."""
    from tests.levers.recorder import RecorderOnCpu

    backend = RecordedPasses(torch, RecorderOnCpu())
    torch.compile(compute, backend=backend, dynamic=False)(*given).sum().backward()
    return [tally.reason for tally in backend.tallies]


def weight(torch: Any, *sizes: int) -> Any:
    return torch.ones(*sizes, requires_grad=True)


def test_plain_passes_can_be(torch: Any) -> None:
    assert told(torch, lambda x: x.sin(), weight(torch, 3)) == ["", ""]


def test_what_a_mask_marks_is_waited_for(torch: Any) -> None:
    def marked(x: Any) -> Any:
        x = x.sin()
        x[x > 0.5] = 0.0
        return x

    assert told(torch, marked, weight(torch, 3))[0] == "it waits for the GPU, in index_put"


def test_indexing_by_numbers_is_not(torch: Any) -> None:
    which = torch.tensor([0, 2])
    assert told(torch, lambda x: x.sin()[which], weight(torch, 3)) == ["", ""]


def test_a_number_kept_as_a_tensor_is_a_constant(torch: Any) -> None:
    assert told(torch, lambda x: x * torch.tensor(2.0), weight(torch, 3)) == ["", ""]


def test_what_is_given_is_left_as_it_is(torch: Any) -> None:
    """A replay would change its copy."""

    def changes(x: Any, seen: Any) -> Any:
        seen.add_(1)
        return x * seen

    given = weight(torch, 3), torch.ones(3)
    assert told(torch, changes, *given)[0] == "it changes what it is given"


def test_two_devices(torch: Any) -> None:
    graph = torch.fx.Graph()
    for device in ("meta", "cpu"):
        node = graph.placeholder(device)
        node.meta["val"] = torch.empty(2, device=device)
    graph.output(node)
    module = torch.fx.GraphModule({}, graph)
    assert obstacle(torch, module, [0, 1]) == "it is not computed on one device"


def test_a_number_that_is_copied_to_the_device(torch: Any) -> None:
    graph = torch.fx.Graph()
    graph.placeholder("x").meta["val"] = torch.empty(2, device="meta")
    constant = graph.get_attr("two")
    constant.meta["val"] = torch.tensor(2.0)
    to = graph.call_function(torch.ops.aten._to_copy.default, (constant,), {"device": "meta"})
    to.meta["val"] = torch.empty((), device="meta")
    graph.output(to)
    module = torch.fx.GraphModule({"two": torch.tensor(2.0)}, graph)
    assert obstacle(torch, module, [0]) == "it waits for the GPU, in _to_copy"


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("dropout", [0.1, 0.0])
def test_attention_that_keeps_its_seed_elsewhere_when_it_is_recorded(
    torch: Any, dropout: float, is_backward: bool
) -> None:
    """Read on the host, a seed on the GPU ends the process."""
    graph, aten = torch.fx.Graph(), torch.ops.aten
    x, seed = graph.placeholder("x"), graph.placeholder("seed")
    given: tuple[Any, ...]
    if is_backward:
        computes = aten._scaled_dot_product_efficient_attention_backward.default
        given = (x, x, x, x, None, x, x, seed, seed, dropout, [True, True, True, False])
    else:
        computes = aten._scaled_dot_product_efficient_attention.default
        given = (x, x, x, None, True, dropout)
    graph.output(graph.call_function(computes, given))
    for node in graph.nodes:
        node.meta["val"] = torch.empty(2)
    why = obstacle(torch, torch.fx.GraphModule({}, graph), [0, 1])
    assert ("keeps the seed of its dropout" in why) is bool(dropout)


def test_numbers(torch: Any) -> None:
    graph = torch.fx.Graph()
    graph.placeholder("x").meta["val"] = torch.empty(2)
    count = graph.placeholder("count")
    count.meta["val"] = 3
    graph.output(count)
    module = torch.fx.GraphModule({}, graph)
    assert obstacle(torch, module, []).startswith("it is given numbers")


def test_a_model_of_which_nothing_is_learned(jobs: Any, torch: Any) -> None:
    lever, frozen = ModelGraphOnCpu(), plain_network(torch).requires_grad_(False)
    head = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    with jobs.under(lever):
        for _ in range(6):
            optimizer.zero_grad()
            head(frozen(torch.randn(6, 4))).square().mean().backward()
            optimizer.step()
    frozen_backend = lever._backends[0]
    assert not frozen_backend.tallies
    assert frozen_backend.why_not == "nothing of the model is learned"


def test_another_way_through_a_model_gives_up_the_memory_of_those_before(
    jobs: Any, torch: Any
) -> None:
    """Weights are learned from some step on: recordings without them are not asked for again."""
    lever, model = ModelGraphOnCpu(), plain_network(torch)
    alive = []
    with jobs.under(lever):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for first_is_learned in (False, True):
            model[0].requires_grad_(first_is_learned)
            for _ in range(8):
                optimizer.zero_grad()
                model(torch.randn(6, 4)).square().mean().backward()
                optimizer.step()
            passes = lever._backends[0]._passes
            alive.append(sum(len(one._recordings) for one in passes))
    assert alive == [2, 2]

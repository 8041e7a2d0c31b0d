"""What torch.compile captures of a job is the same whether or not the job is watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotloop.measurement import Kind
from hotloop.runtime.script import ScriptDriver
from hotloop.runtime.watching import Watch
from hotloop.seams import Seams

Job = Callable[[Any, Any, Any], Any]
"""Given torch, `tests.runtime.jobs` and a backend, it trains a compiled model and returns it."""


def wrapped(torch: Any, jobs: Any, backend: Any) -> Any:
    model = torch.compile(jobs.Net(), backend=backend)
    jobs.train(model)
    return model


def in_place(torch: Any, jobs: Any, backend: Any) -> Any:
    model = jobs.Net()
    model.compile(backend=backend)
    jobs.train(model)
    return model


def nested(torch: Any, jobs: Any, backend: Any) -> Any:
    """The class of the root stands inside the root."""
    model = jobs.Tree(2)
    model.compile(backend=backend)
    jobs.train(model)
    return model


def sequential(torch: Any, jobs: Any, backend: Any) -> Any:
    nn = torch.nn
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model = torch.compile(nn.Sequential(inner, nn.Linear(4, 1)), backend=backend)
    jobs.train(model)
    return model


def a_part(torch: Any, jobs: Any, backend: Any) -> Any:
    model = jobs.Net()
    model.body = torch.compile(model.body, backend=backend)
    jobs.train(model)
    return model


def evaluated(torch: Any, jobs: Any, backend: Any) -> Any:
    """Compiled anew while it is watched: for another mode, and for another batch."""
    model = jobs.Net()
    model.compile(backend=backend)
    jobs.train(model)
    model.eval()
    with torch.no_grad():
        model(jobs.batch(11)[0])
    model.train()
    jobs.train(model, loss_of=lambda model, x, y: jobs.plain_loss(model, *jobs.batch(5)))
    return model


def compiled_late(torch: Any, jobs: Any, backend: Any) -> Any:
    """After discovery."""
    model = jobs.Net()
    jobs.train(model)
    model = torch.compile(model, backend=backend, fullgraph=True)
    jobs.train(model)
    return model


def during_discovery(torch: Any, jobs: Any, backend: Any) -> Any:
    model = jobs.Net()
    jobs.train(model, steps=2)
    model = torch.compile(model, backend=backend, fullgraph=True)
    jobs.train(model)
    return model


def the_loss(torch: Any, jobs: Any, backend: Any) -> Any:
    """A function that calls the model: model and loss in one graph."""
    model = jobs.Net()
    jobs.train(model, loss_of=torch.compile(jobs.plain_loss, backend=backend))
    return model


JOBS: list[Job] = [
    wrapped,
    in_place,
    nested,
    sequential,
    a_part,
    evaluated,
    compiled_late,
    during_discovery,
    the_loss,
]


def captured(torch: Any, jobs: Any, job: Job) -> tuple[int, int, int]:
    """Graphs, operations in them, and breaks."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    sizes: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        sizes.append(len(graph.graph.nodes))
        return graph.forward

    job(torch, jobs, backend)
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    return len(sizes), sum(sizes), breaks


def both_ways(torch: Any, jobs: Any, job: Job, at_once: bool) -> list[tuple[int, int, int]]:
    before = captured(torch, jobs, job)
    assert before[0] >= 1
    watch = Watch(torch)
    watch.seams.model.at_once = at_once
    watch.driver.attach()
    try:
        return [before, captured(torch, jobs, job)]
    finally:
        watch.driver.detach()
        torch._dynamo.reset()


@pytest.mark.parametrize("job", JOBS)
def test_probes_change_nothing_that_is_captured(job: Job, torch: Any, jobs: Any) -> None:
    before, watched = both_ways(torch, jobs, job, at_once=False)
    assert watched == before


@pytest.mark.parametrize("job", JOBS[:-1])
def test_nor_where_calls_are_watched_from_the_first_on(job: Job, torch: Any, jobs: Any) -> None:
    before, watched = both_ways(torch, jobs, job, at_once=True)
    assert watched == before


def test_a_function_that_calls_the_model_is_then_captured_once_more(torch: Any, jobs: Any) -> None:
    """When the models are found: the call of modules, which is in its graph, is torch's again."""
    before, watched = both_ways(torch, jobs, the_loss, at_once=True)
    assert watched == (2 * before[0], 2 * before[1], before[2])


def test_a_model_that_is_compiled_holds_no_call_of_ours(torch: Any, jobs: Any) -> None:
    pristine = vars(torch.nn.Module)["__call__"]
    watch = Watch(torch)
    watch.seams.model.at_once = True
    watch.driver.attach()
    model = torch.compile(jobs.Net(), backend="eager")
    is_open = torch.nn.Module.__call__ is not pristine
    jobs.train(model)
    watch.driver.detach()
    torch._dynamo.reset()
    assert is_open
    assert model.forward._torchdynamo_orig_callable.__func__ is pristine
    assert jobs.roots(watch) == [model]


@pytest.mark.parametrize("job", [wrapped, in_place, nested, sequential])
def test_a_compiled_model_is_a_root(job: Job, torch: Any, jobs: Any, watch: Watch) -> None:
    torch._dynamo.reset()
    model = job(torch, jobs, "eager")
    assert jobs.roots(watch) == [model]
    assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1
    assert [seen.compiled for seen in jobs.found(watch).models] == [True]
    torch._dynamo.reset()


def test_graphs_hold_torchs_own_losses(torch: Any) -> None:
    """Also where somebody listens to losses: nothing of ours is compiled."""
    original = torch.nn.functional.l1_loss
    targets: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        targets.extend(node.target for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    seams, criterion = Seams(), torch.nn.L1Loss()
    seams.loss.before.append(lambda args, kwargs: None)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    torch.compile(lambda x: criterion(x, 2 * x), backend=backend)(torch.ones(3))
    driver.detach()
    assert targets[-1] is original

from __future__ import annotations

import sys
import weakref
from types import ModuleType
from typing import Any

import pytest

from hotloop.measurement import Events, Kind, Losses
from hotloop.runtime.probes.loss import CUDA_GRAPHS, LossProbe
from hotloop.runtime.watching import Watch


def numbers(watch: Watch) -> list[float | None]:
    return losses(watch).value


def losses(watch: Watch) -> Losses:
    return watch.loss.losses(watch.clock.events)


def test_every_loss_with_its_backward_pass(torch: Any, jobs: Any, watch: Watch) -> None:
    expected: list[float] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        expected.append(loss.item())
        return loss

    jobs.train(jobs.Net(), loss_of=loss_of)
    found = losses(watch)
    assert found.value == pytest.approx(expected)
    assert found.not_finite == 0
    kinds = watch.clock.events.kind
    begins = [index for index, kind in enumerate(kinds) if kind == Kind.BACKWARD_BEGIN]
    assert found.event == begins


def test_none_is_none(watch: Watch) -> None:
    found = losses(watch)
    assert (found.event, found.value) == ([], [])


def test_a_scaled_loss_is_kept_as_it_was(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    optimizer = jobs.sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    expected = []
    for _ in range(3):
        loss = jobs.plain_loss(model, *jobs.batch())
        expected.append(loss.item())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    assert numbers(watch) == pytest.approx(expected)


def test_one_that_was_scaled_but_never_differentiated_is_forgotten(
    torch: Any, jobs: Any, watch: Watch
) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(torch.tensor(7.0))
    x = torch.tensor(3.0, requires_grad=True)
    x.square().backward()
    assert numbers(watch) == [9.0]


def test_several_backward_passes_a_step(torch: Any, watch: Watch) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    (x * 1).backward()
    (x * 2).backward()
    torch.autograd.backward([x * 4, x * 5])
    assert numbers(watch) == [3.0, 6.0, 12.0]


def test_a_checkpointed_block_has_no_loss_of_its_own(torch: Any, watch: Watch) -> None:
    """The reentrant kind differentiates inside the job's own backward pass."""
    checkpoint = __import__("torch.utils.checkpoint").utils.checkpoint.checkpoint
    x = torch.tensor(3.0, requires_grad=True)
    checkpoint(torch.square, x, use_reentrant=True).backward()
    assert numbers(watch) == [9.0]
    assert watch.clock.events.kind.count(Kind.BACKWARD_BEGIN) == 2


def test_a_loss_of_many_numbers_is_their_mean(torch: Any, watch: Watch) -> None:
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    (2 * x).backward(torch.ones(2))
    assert numbers(watch) == [4.0]


def test_what_is_not_finite_is_counted_and_not_written(torch: Any, watch: Watch) -> None:
    x = torch.tensor(1.0, requires_grad=True)
    for factor in (1.0, float("nan"), float("inf")):
        (x * factor).backward()
    found = losses(watch)
    assert found.value == [1.0, None, None]
    assert found.not_finite == 2


def test_it_is_kept_as_it_was_at_that_moment(torch: Any, watch: Watch) -> None:
    """What a step overwrites, as CUDA graphs do, changes nothing here."""
    x = torch.tensor(3.0, requires_grad=True)
    loss = x * 1
    loss.backward()
    loss.data.fill_(99.0)
    assert numbers(watch) == [3.0]


def test_nothing_keeps_the_graph_alive(torch: Any, watch: Watch) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for scale in (lambda loss: loss, scaler.scale):
        loss = x.square()
        scaled = scale(loss)
        gone = weakref.ref(loss), weakref.ref(scaled)
        scaled.backward()
        del loss, scaled
        assert [known() for known in gone] == [None, None]


def test_a_backward_pass_that_raises_confuses_nothing(torch: Any, watch: Watch) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    loss = x.square()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    (x * 1).backward()
    assert numbers(watch) == [9.0, 9.0, 3.0]


class TestOnDevice:
    """Losses that only claim to be on a GPU: what is kept of them, and when it is read."""

    @pytest.fixture
    def keep(self, torch: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        # Whatever ran before in this process may have imported them.
        monkeypatch.delitem(sys.modules, CUDA_GRAPHS, raising=False)

        class OnDevice(torch.Tensor):  # type: ignore[misc]
            is_cuda = True

        def keep(*values: float) -> tuple[LossProbe, list[Any], Events]:
            probe, tensors = LossProbe(torch), []
            events = Events()
            for place, value in enumerate(values):
                tensors.append(torch.tensor(value).as_subclass(OnDevice))
                probe._keep((tensors[-1],), None, place)
                for column, entry in zip(
                    (events.time_ns, events.kind, events.key, events.n),
                    (place, int(Kind.BACKWARD_BEGIN), 0, 0),
                    strict=True,
                ):
                    column.append(entry)
            return probe, tensors, events

        return keep

    def test_they_are_read_at_the_end(self, keep: Any) -> None:
        probe, _, events = keep(1.0, 2.0)
        assert probe.losses(events).value == [1.0, 2.0]

    def test_one_that_the_script_used_again_is_no_loss_any_more(self, keep: Any) -> None:
        probe, tensors, events = keep(1.0, 2.0, 3.0)
        tensors[0].add_(tensors[1])
        found = probe.losses(events)
        assert (found.event, found.value) == ([1, 2], [2.0, 3.0])

    def test_beside_cuda_graphs_each_is_copied(
        self, keep: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A replay overwrites what it made before, and no counter tells."""
        monkeypatch.setitem(sys.modules, CUDA_GRAPHS, ModuleType("trees"))
        probe, tensors, events = keep(1.0, 2.0)
        tensors[0].data.fill_(9.0)
        assert probe.losses(events).value == [1.0, 2.0]

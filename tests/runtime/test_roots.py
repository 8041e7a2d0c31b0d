from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop import timeline
from hotloop.measurement import Kind
from hotloop.runtime.roots import DISCOVERY_STEPS
from hotloop.runtime.watching import Watch
from hotloop.timeline import Phase


class TestWhoIsARoot:
    def test_the_model_and_not_its_parts(self, jobs: Any, watch: Watch) -> None:
        model = jobs.Net()
        jobs.train(model)
        assert jobs.roots(watch) == [model]
        # Discovery begins with the first backward pass: what came before was not seen.
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1
        assert jobs.seen(watch)[Kind.FORWARD_END] == jobs.STEPS - 1

    def test_one_that_is_built_when_data_was_differentiated(
        self, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        for _ in range(3 * DISCOVERY_STEPS):
            torch.ones(3, requires_grad=True).square().sum().backward()
        model = jobs.Net()
        jobs.train(model)
        assert jobs.roots(watch) == [model]

    def test_not_a_criterion(self, torch: Any, jobs: Any, watch: Watch) -> None:
        model, criterion = jobs.Net(), torch.nn.MSELoss()
        jobs.train(model, loss_of=lambda model, x, y: criterion(model(x), y))
        assert jobs.roots(watch) == [model]

    def test_not_a_weight_that_is_computed_where_it_is_read(
        self, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        model = jobs.Net()
        torch.nn.utils.parametrizations.weight_norm(model.head)

        def loss_of(model: Any, x: Any, y: Any) -> Any:
            return jobs.plain_loss(model, x, y) + model.head.weight.square().sum()

        jobs.train(model, loss_of=loss_of)
        assert jobs.roots(watch) == [model]

    def test_a_sequential_in_a_sequential_counts_once(
        self, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        nn = torch.nn
        model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 1))
        jobs.train(model)
        assert jobs.roots(watch) == [model]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    def test_a_module_of_modules_of_its_own_class(self, jobs: Any, watch: Watch) -> None:
        jobs.train(jobs.Tree(3))
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    def test_two_models(self, torch: Any, jobs: Any, watch: Watch) -> None:
        one, two = jobs.Net(), torch.nn.Linear(4, 1)
        jobs.train(
            one,
            optimizer=jobs.sgd(one, two),
            loss_of=lambda model, x, y: (model(x) + two(x) - y).square().mean(),
        )
        assert jobs.roots(watch) == [one, two]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == 2 * (jobs.STEPS - 1)
        assert set(watch.clock.events.key) == {0, 1}

    def test_a_task_that_holds_the_model(self, jobs: Any, watch: Watch) -> None:
        task = jobs.Task(jobs.Net())
        jobs.train(task, loss_of=lambda task, x, y: task(x, y))
        assert jobs.roots(watch) == [task]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    def test_one_that_overrides_the_call(self, jobs: Any, watch: Watch) -> None:
        model = jobs.OwnCall()
        jobs.train(model)
        assert jobs.roots(watch) == [model]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1
        assert model.calls == jobs.STEPS

    def test_a_class_and_the_class_it_inherits_from(self, jobs: Any, watch: Watch) -> None:
        one, two = jobs.Net(), jobs.OwnCall()
        jobs.train(
            one,
            optimizer=jobs.sgd(one, two),
            loss_of=lambda model, x, y: (model(x) + two(x) - y).square().mean(),
        )
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == 2 * (jobs.STEPS - 1)

    @pytest.mark.parametrize("with_parameters", [False, True])
    def test_nothing_that_runs_inside_a_loader(
        self, with_parameters: bool, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        """Even when it is of the very class that a root has."""
        nn = torch.nn
        transform = nn.Sequential(nn.Linear(4, 4) if with_parameters else nn.Identity())
        model = nn.Sequential(nn.Linear(4, 1))
        jobs.train_on(jobs.loader(jobs.Transformed(transform)), model)
        assert jobs.roots(watch) == [model]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == 32 // 4 - 1
        assert jobs.seen(watch)[Kind.NO_GRAD_BEGIN] == 0

    def test_nothing_without_parameters(self, torch: Any, jobs: Any, watch: Watch) -> None:
        """An augmentation of the same class as the model, run between loader and model."""
        nn = torch.nn
        augment, model = nn.Sequential(nn.Identity()), nn.Sequential(nn.Linear(4, 1))
        jobs.train(model, loss_of=lambda model, x, y: jobs.plain_loss(model, augment(x), y))
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    def test_nothing_that_another_thread_runs(self, jobs: Any, watch: Watch) -> None:
        model = jobs.Net()

        def loss_of(model: Any, x: Any, y: Any) -> Any:
            other = threading.Thread(target=model, args=(x,))
            other.start()
            other.join()
            return jobs.plain_loss(model, x, y)

        jobs.train(model, loss_of=loss_of)
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    def test_not_what_only_another_thread_runs(self, torch: Any, jobs: Any, watch: Watch) -> None:
        model, other = jobs.Net(), torch.nn.Linear(4, 1)

        def loss_of(model: Any, x: Any, y: Any) -> Any:
            thread = threading.Thread(target=other, args=(x,))
            thread.start()
            thread.join()
            return jobs.plain_loss(model, x, y)

        jobs.train(model, loss_of=loss_of)
        assert jobs.roots(watch) == [model]

    def test_a_model_that_is_called_while_another_thread_loads(
        self, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        """Ahead, as it may do all the time: a part of the model was taken for one of its own."""
        loading, called = threading.Event(), threading.Event()

        def wait(x: Any) -> Any:
            loading.set()
            called.wait(5)
            return x

        def loss_of(model: Any, x: Any, y: Any) -> Any:
            loading.clear()
            called.clear()
            ahead = threading.Thread(target=next, args=(iter(loader),))
            ahead.start()
            loading.wait(5)
            loss = jobs.plain_loss(model, x, y)
            called.set()
            ahead.join()
            return loss

        loader = jobs.loader(jobs.Transformed(wait))
        model = jobs.Net()
        jobs.train(model, loss_of=loss_of)
        assert jobs.roots(watch) == [model]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    def test_after_discovery_a_copy_of_it_too(self, torch: Any, jobs: Any, watch: Watch) -> None:
        """The average of a model's weights, evaluated now and then."""
        model = jobs.Net()
        jobs.train(model)
        with torch.no_grad():
            copy.deepcopy(model)(jobs.batch()[0])
        assert jobs.seen(watch)[Kind.NO_GRAD_BEGIN] == 1


class TestWhatStaysPatched:
    def test_at_first_nothing(self, torch: Any, jobs: Any, watch: Watch) -> None:
        pristine = torch.nn.Module.__call__
        model = jobs.Net()
        model(jobs.batch()[0])
        assert torch.nn.Module.__call__ is pristine

    def test_while_searching_not_inside_a_root(self, torch: Any, jobs: Any, watch: Watch) -> None:
        pristine = torch.nn.Module.__call__
        found: list[Any] = []

        def loss_of(model: Any, x: Any, y: Any) -> Any:
            found.append(torch.nn.Module.__call__)
            return model(x).mean()

        class Looking(torch.nn.Linear):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                assert torch.nn.Module.__call__ is pristine
                return super().forward(x)

        jobs.train(Looking(4, 1), steps=3, loss_of=loss_of)
        assert [call is pristine for call in found] == [True, False, False]

    def test_in_the_end_the_roots_classes_alone(self, torch: Any, jobs: Any, watch: Watch) -> None:
        pristine = torch.nn.Module.__call__
        model = jobs.Net()
        jobs.train(model, steps=DISCOVERY_STEPS)
        assert torch.nn.Module.__call__ is pristine
        assert "__call__" in vars(jobs.Net)
        assert "__call__" not in vars(torch.nn.Linear)
        assert "__call__" not in vars(model)
        watch.driver.detach()
        assert "__call__" not in vars(jobs.Net)

    def test_steps_of_discovery_are_counted(self, jobs: Any, watch: Watch) -> None:
        jobs.train(jobs.Net(), steps=3)
        assert watch.driver.roots.steps == 3
        jobs.train(jobs.Net())
        assert watch.driver.roots.steps == DISCOVERY_STEPS

    def test_leaving_in_the_middle_of_discovery(self, torch: Any, jobs: Any, watch: Watch) -> None:
        pristine = torch.nn.Module.__call__
        jobs.train(jobs.Net(), steps=2)
        watch.driver.detach()
        assert torch.nn.Module.__call__ is pristine

    def test_after_a_pause_the_roots_are_watched_again(self, jobs: Any, watch: Watch) -> None:
        model = jobs.Net()
        jobs.train(model)
        watch.driver.detach()
        jobs.train(model)
        before = jobs.seen(watch)[Kind.FORWARD_BEGIN]
        watch.driver.attach()
        jobs.train(model)
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == before + jobs.STEPS

    @pytest.mark.parametrize("pause_after", [1, 3])
    def test_a_pause_in_the_middle_of_discovery(
        self, pause_after: int, jobs: Any, watch: Watch
    ) -> None:
        model = jobs.Net()
        jobs.train(model, steps=pause_after)
        watch.driver.detach()
        watch.driver.attach()
        jobs.train(model)
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == pause_after - 1 + jobs.STEPS

    def test_a_scripts_own_patch_stays(
        self, torch: Any, jobs: Any, watch: Watch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Made after torch was imported and before training began, as libraries do."""
        original, calls = torch.nn.Module.__call__, []

        def counting(module: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(type(module))
            return original(module, *args, **kwargs)

        monkeypatch.setattr(torch.nn.Module, "__call__", counting)
        jobs.train(jobs.Net())
        assert calls.count(jobs.Net) == jobs.STEPS
        watch.driver.detach()
        assert torch.nn.Module.__call__ is counting


class TestTheModelItself:
    def test_computes_the_same(self, torch: Any, jobs: Any, watch: Watch) -> None:
        def trained() -> list[Any]:
            torch.manual_seed(3)
            model = jobs.Net()
            jobs.train(model)
            return [p.detach().clone() for p in model.parameters()]

        watched = trained()
        watch.driver.detach()
        assert all(map(torch.equal, watched, trained()))

    @pytest.mark.parametrize("steps", [2, 8])
    def test_can_be_pickled_and_saved(
        self, steps: int, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        model = jobs.Net()
        jobs.train(model, steps=steps)
        x = jobs.batch()[0]
        again = pickle.loads(pickle.dumps(model))
        assert torch.equal(again(x), model(x))

    @pytest.mark.parametrize("steps", [2, 8])
    def test_a_deep_copy_has_weights_of_its_own(
        self, steps: int, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        model = jobs.Net()
        jobs.train(model, steps=steps)
        x = jobs.batch()[0]
        other = copy.deepcopy(model)
        before = model(x)
        torch.nn.init.zeros_(other.head.weight)
        torch.nn.init.zeros_(other.head.bias)
        assert not other(x).any()
        assert torch.equal(model(x), before)

    @pytest.mark.parametrize("steps", [2, 8])
    def test_an_error_in_it_is_the_scripts(
        self, steps: int, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        model = jobs.Net()
        jobs.train(model, steps=steps)
        before = jobs.seen(watch)
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.randn(2, 99))
        model(jobs.batch()[0])
        after = jobs.seen(watch)
        assert after[Kind.FORWARD_BEGIN] == before[Kind.FORWARD_BEGIN] + 2
        assert after[Kind.FORWARD_END] == before[Kind.FORWARD_END] + 2


class TestFromTheFirstCallOn:
    """For those who must hear of it: a job that has no memory for a step without them."""

    @pytest.fixture
    def early(self, torch: Any, unharmed: None) -> Iterator[Watch]:
        watch = Watch(torch)
        watch.seams.model.at_once = True
        watch.driver.attach()
        yield watch
        watch.driver.detach()

    def test_every_call_is_seen(self, jobs: Any, early: Watch) -> None:
        model = jobs.Net()
        jobs.train(model)
        assert jobs.roots(early) == [model]
        assert jobs.seen(early)[Kind.FORWARD_BEGIN] == jobs.STEPS

    def test_a_pause_before_the_first_step(self, torch: Any, jobs: Any, early: Watch) -> None:
        original = torch.compile.__wrapped__
        early.driver.detach()
        assert torch.compile is original
        early.driver.attach()
        assert torch.compile is not original
        jobs.train(jobs.Net())
        assert jobs.seen(early)[Kind.FORWARD_BEGIN] == jobs.STEPS


class TestCheckpointed:
    """Blocks that a script checkpoints itself run once more during the backward pass."""

    def train(self, torch: Any, jobs: Any, reentrant: bool) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint

        class Checkpointed(jobs.Net):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return self.head(checkpoint(self.body, x, use_reentrant=reentrant))

        model = Checkpointed()
        jobs.train(model, loss_of=lambda m, x, y: jobs.plain_loss(m, x.requires_grad_(), y))
        return model

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_are_no_roots(self, reentrant: bool, torch: Any, jobs: Any, watch: Watch) -> None:
        model = self.train(torch, jobs, reentrant)
        assert jobs.roots(watch) == [model]
        assert jobs.seen(watch)[Kind.FORWARD_BEGIN] == jobs.STEPS - 1

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_leave_losses_and_steps_as_they_are(
        self, reentrant: bool, torch: Any, jobs: Any, watch: Watch
    ) -> None:
        self.train(torch, jobs, reentrant)
        assert len(jobs.losses(watch).value) == jobs.STEPS
        steps = timeline.steps(watch.clock.events, jobs.losses(watch))
        assert len(steps) == jobs.STEPS
        assert all(len(step.losses) == 1 for step in steps)
        for step in steps[1:]:
            assert sum(step.phases.values()) == pytest.approx(step.seconds)
            assert step.phases[Phase.BACKWARD] > 0 < step.phases[Phase.FORWARD]

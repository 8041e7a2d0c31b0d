from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

from hotloop import timeline
from hotloop.measurement import Kind
from hotloop.runtime.probes import clock
from hotloop.runtime.probes.clock import Numbers
from hotloop.runtime.watching import Watch

K = Kind


def story(watch: Watch, since: int = 0) -> list[Kind]:
    return [Kind(kind) for kind in watch.clock.events.kind[since:]]


def test_a_small_training_loop(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    jobs.train_on(jobs.loader(), model)
    begins = [kind for kind in story(watch) if kind % 2 == 0]
    step = [K.DATA_BEGIN, K.ZERO_GRAD_BEGIN, K.FORWARD_BEGIN, K.BACKWARD_BEGIN, K.OPTIMIZER_BEGIN]
    first = [kind for kind in step if kind != K.FORWARD_BEGIN]  # before discovery began
    begins_of_a_pass, end_of_it = [K.DATA_BEGIN], [K.DATA_BEGIN]
    assert begins == begins_of_a_pass + first + step * 7 + end_of_it
    times = watch.clock.events.time_ns
    assert times == sorted(times)


def test_a_module_clears_gradients_too(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.zero_grad()
    optimizer.zero_grad()
    assert story(watch) == [K.ZERO_GRAD_BEGIN, K.ZERO_GRAD_END] * 2


def test_every_begin_has_its_end(torch: Any, jobs: Any, watch: Watch) -> None:
    jobs.train_on(jobs.loader(), jobs.Net())
    open_calls: list[int] = []
    for kind in watch.clock.events.kind:
        if kind % 2 == 0:
            open_calls.append(kind)
        else:
            assert open_calls.pop() == kind - 1
    assert open_calls == []


def counted(watch: Watch, kind: Kind) -> list[int]:
    events = watch.clock.events
    return [n for n, seen in zip(events.n, events.kind, strict=True) if seen == kind]


def test_samples_of_a_loader_are_counted(torch: Any, jobs: Any, watch: Watch) -> None:
    jobs.train_on(jobs.loader(size=5), jobs.Net())
    # -1: a pass begins, and a pass has no more.
    assert counted(watch, K.DATA_END) == [-1, 5, 5, 5, 5, 5, 5, 2, -1]


@pytest.mark.parametrize("joined", ["atoms of all molecules", "words before sentences"])
def test_and_not_the_first_dimension_where_the_loader_knows(
    joined: str, torch: Any, jobs: Any, watch: Watch
) -> None:
    items = [(torch.ones(2 + number % 3, 4), torch.ones(1)) for number in range(32)]

    def together(batch: list[Any]) -> Any:
        xs, ys = zip(*batch, strict=True)
        if joined == "atoms of all molecules":
            return torch.cat(xs), torch.cat(ys).sum().expand(sum(map(len, xs)), 1)
        return torch.nn.utils.rnn.pad_sequence(xs), torch.stack(ys)

    loader = torch.utils.data.DataLoader(items, batch_size=5, collate_fn=together)
    jobs.train_on(loader, jobs.Net())
    assert counted(watch, K.DATA_END) == [-1, 5, 5, 5, 5, 5, 5, 2, -1]


@pytest.mark.parametrize("by_name", [False, True])
def test_or_those_that_a_root_is_given(by_name: bool, torch: Any, jobs: Any, watch: Watch) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return (model(x=x) if by_name else model(x)).mean()

    jobs.train(jobs.Net(), loss_of=loss_of)
    assert counted(watch, K.FORWARD_BEGIN) == [6] * (jobs.STEPS - 1)


def test_evaluation_is_told_from_training(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    jobs.train_on(jobs.loader(), model)
    before = len(watch.clock.events)
    with torch.no_grad():
        model(jobs.batch()[0])
    with torch.inference_mode():
        model(jobs.batch()[0])
    model(jobs.batch()[0])
    assert story(watch, before) == [
        *(K.NO_GRAD_BEGIN, K.NO_GRAD_END) * 2,
        K.FORWARD_BEGIN,
        K.FORWARD_END,
    ]


def test_a_closure_runs_inside_its_optimizer(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x, y = jobs.batch()

    def closure() -> Any:
        optimizer.zero_grad()
        loss = jobs.plain_loss(model, x, y)
        loss.backward()
        return loss

    for _ in range(jobs.STEPS):
        optimizer.step(closure)
    steps = timeline.steps(watch.clock.events)
    assert len(steps) == jobs.STEPS
    last = story(watch)[story(watch)[:-1].index(K.OPTIMIZER_END) + 1 :]
    assert last[0] == K.OPTIMIZER_BEGIN
    assert last[-1] == K.OPTIMIZER_END
    assert K.FORWARD_BEGIN in last and K.BACKWARD_BEGIN in last
    assert steps[-1].phases[timeline.Phase.FORWARD] > 0
    assert steps[-1].phases[timeline.Phase.BACKWARD] > 0


def test_parameters_updated_by_hand(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    for _ in range(jobs.STEPS):
        jobs.plain_loss(model, *jobs.batch()).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
                p.grad = None
    assert timeline.metronome(watch.clock.events) is None
    assert len(timeline.steps(watch.clock.events)) == jobs.STEPS
    assert jobs.roots(watch) == [model]
    assert not watch.driver.roots.searching


def test_autograd_grad_is_a_backward_pass(torch: Any, jobs: Any, watch: Watch) -> None:
    x = torch.ones(3, requires_grad=True)
    torch.autograd.grad(x.square().sum(), x)
    assert story(watch) == [K.BACKWARD_BEGIN, K.BACKWARD_END]
    assert watch.clock.events.key == [1, 1]


def test_two_optimizers_are_told_apart(torch: Any, jobs: Any, watch: Watch) -> None:
    one, two = jobs.Net(4), jobs.Net(5)
    first, second = jobs.sgd(one), jobs.sgd(two)
    for _ in range(3):
        for model, optimizer in ((one, first), (two, second)):
            jobs.plain_loss(model, *jobs.batch()).backward()
            optimizer.step()
    events = watch.clock.events
    keys = [k for k, kind in zip(events.key, events.kind, strict=True) if kind == K.OPTIMIZER_END]
    assert keys == [0, 1] * 3
    assert timeline.metronome(events) == 1


def test_an_optimizer_built_anew_for_every_item_is_one(torch: Any, jobs: Any, watch: Watch) -> None:
    for _ in range(4):
        jobs.train(jobs.Net(), steps=2)
    assert len(timeline.steps(watch.clock.events)) == 8


def test_a_loader_built_anew_every_epoch_is_one(torch: Any, jobs: Any, watch: Watch) -> None:
    model, data = jobs.Net(), torch.utils.data.TensorDataset(*jobs.batch(8))
    for _ in range(3):
        jobs.train_on(jobs.loader(data), model)
    assert len(jobs.found(watch).loaders) == 1


def test_so_is_one_whose_dataset_is_built_anew_too(torch: Any, jobs: Any, watch: Watch) -> None:
    """Each of them lies elsewhere: what was told by that was one loader or many, by chance."""

    class Items(torch.utils.data.TensorDataset):  # type: ignore[misc]
        pass

    model, places = jobs.Net(), set()
    prepared = [Items(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
    while prepared:
        data = prepared.pop()
        places.add(id(data))
        jobs.train_on(torch.utils.data.DataLoader(data, batch_size=4), model)
        gone = weakref.ref(data)
        del data
        assert gone() is None
    assert len(places) == 3 and len(jobs.found(watch).loaders) == 1


def test_datasets_that_live_side_by_side_are_not_one(torch: Any, jobs: Any, watch: Watch) -> None:
    model, kept = jobs.Net(), []
    for _ in range(2):
        kept.append(torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1)))
        jobs.train_on(torch.utils.data.DataLoader(kept[-1], batch_size=4), model)
    jobs.train_on(torch.utils.data.DataLoader([*kept[0]], batch_size=4), model)  # a plain list
    assert len(jobs.found(watch).loaders) == 3


def test_training_and_evaluation_loaders_are_told_apart(
    torch: Any, jobs: Any, watch: Watch
) -> None:
    evaluation, training = jobs.loader(size=16), jobs.loader(size=2)
    jobs.train_on(training, jobs.Net())
    list(evaluation)
    events = watch.clock.events
    assert timeline.training_loader(events) == 0
    keys = {k for k, kind in zip(events.key, events.kind, strict=True) if kind == K.DATA_END}
    assert keys == {0, 1}


def test_an_error_in_a_dataset_ends_its_entry(torch: Any, jobs: Any, watch: Watch) -> None:
    def broken(item: Any) -> Any:
        raise KeyError("no such item")

    with pytest.raises(KeyError, match="no such item"):
        next(iter(jobs.loader(jobs.Transformed(broken))))
    assert story(watch) == [K.DATA_BEGIN, K.DATA_END] * 2


def test_other_threads_are_not_heard(torch: Any, jobs: Any, watch: Watch) -> None:
    thread = threading.Thread(target=jobs.train_on, args=(jobs.loader(), jobs.Net()))
    thread.start()
    thread.join()
    assert len(watch.clock.events) == 0


def test_there_is_an_end_to_what_is_kept(
    torch: Any, jobs: Any, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "MOST_SPANS", 5)
    jobs.train(jobs.Net())
    assert len(watch.clock.events) == 10
    assert watch.clock.lost > 10


class TestNumbers:
    class Thing:
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("cannot be compared")

        __hash__ = None  # type: ignore[assignment]

    def test_what_replaces_another_takes_its_number(self) -> None:
        numbers = Numbers(lambda thing: thing.kind)
        thing = self.Thing("x")
        assert numbers.of(thing) == 0
        assert numbers.of(other := self.Thing("y")) == 1
        thing = self.Thing("x")
        assert [numbers.of(known) for known in (thing, other, thing)] == [0, 1, 0]

    def test_twins_that_live_side_by_side_are_two(self) -> None:
        numbers = Numbers(lambda thing: thing.kind)
        a, b = self.Thing("x"), self.Thing("x")
        assert [numbers.of(thing) for thing in (a, b, a, b)] == [0, 1, 0, 1]

    def test_an_identity_that_is_used_again_is_looked_at_again(self) -> None:
        numbers = Numbers(lambda thing: thing.kind)
        old, new = self.Thing("x"), self.Thing("y")
        place = id(old)
        assert numbers.of(old) == 0
        del old
        assert place not in numbers.by_id
        assert numbers.of(new) == 1

    def test_the_first_of_each_number_is_met(self) -> None:
        met: list[tuple[int, str]] = []
        numbers = Numbers(
            lambda thing: thing.kind, lambda *what: met.append((what[0], what[1].kind))
        )
        a, b = self.Thing("x"), self.Thing("y")
        for thing in (a, b, a):
            numbers.of(thing)
        del a, thing
        numbers.of(self.Thing("x"))
        assert met == [(0, "x"), (1, "y")]

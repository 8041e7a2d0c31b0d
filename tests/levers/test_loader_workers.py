from __future__ import annotations

import multiprocessing
import random
from typing import Any

import pytest

from hotloop.levers.loader_workers import LoaderWorkers, lives_on_device
from tests import builders


def passes(jobs: Any, torch: Any, count: int, **options: Any) -> list[Any]:
    torch.manual_seed(3)
    batches = jobs.loader(shuffle=True, **options)
    return [jobs.order(batches) for _ in range(count)]


SETTINGS = {"value": 1.0}


@pytest.mark.parametrize("persistent", [True, False])
def test_the_same_training_from_workers(jobs: Any, persistent: bool) -> None:
    lever = LoaderWorkers(persistent=persistent)
    plain = jobs.train()
    with jobs.under(lever):
        assert jobs.train() == plain
    receipt = lever.receipt()
    assert receipt.applied
    assert receipt.evidence == {"loaders": 1, "workers": 2, "batches": len(plain)}


def test_later_passes_are_shuffled_as_without(jobs: Any, torch: Any) -> None:
    """A persistent loader draws one random number less a pass, and would shuffle otherwise."""
    plain = passes(jobs, torch, 3)
    assert plain[0] != plain[1]
    with jobs.under(LoaderWorkers()):
        assert passes(jobs, torch, 3) == plain


def test_a_generator_of_the_scripts_own_is_drawn_from_alike(jobs: Any, torch: Any) -> None:
    def drawn() -> tuple[list[Any], Any]:
        generator = torch.Generator().manual_seed(5)
        return passes(jobs, torch, 2, generator=generator), generator.get_state().tolist()

    plain = drawn()
    with jobs.under(LoaderWorkers()):
        assert drawn() == plain


def test_a_pass_inside_a_pass_disturbs_neither(jobs: Any, torch: Any) -> None:
    def nested() -> list[Any]:
        torch.manual_seed(3)
        batches, outer = jobs.loader(shuffle=True), []
        for _, y in batches:
            outer.append((y.tolist(), next(iter(batches))[1].tolist()))
        return [*outer, jobs.order(batches)]

    plain = nested()
    with jobs.under(LoaderWorkers(workers=1)):
        assert nested() == plain


def test_workers_outlive_a_pass_that_was_left_or_is_renewed_by_hand(jobs: Any) -> None:
    lever = LoaderWorkers(workers=1)
    with jobs.under(lever):
        batches = jobs.loader()
        for _ in batches:
            break
        first = {worker.pid for worker in batches._iterator._workers}
        iterator = iter(batches)
        while next(iterator, None) is not None:
            pass
        iterator = iter(batches)  # while the old one is still held
        assert len(next(iterator)) == 2
        assert {worker.pid for worker in batches._iterator._workers} == first


class TestChanged:
    """Workers that outlive a pass have a copy of the dataset as it was. Without them, it is new."""

    @staticmethod
    def seen(batches: Any) -> set[float]:
        return {value for x, _ in batches for value in x.flatten().tolist()}

    def test_a_global_that_its_code_reads(self, jobs: Any, torch: Any, monkeypatch: Any) -> None:
        class Drawn(jobs.Numbers):  # type: ignore[misc]
            def __getitem__(self, index: int) -> Any:
                return torch.tensor([SETTINGS["value"]]), torch.zeros(1)

        monkeypatch.setitem(SETTINGS, "value", 1.0)
        with jobs.under(LoaderWorkers(workers=1)):
            batches = jobs.loader(Drawn())
            assert self.seen(batches) == {1.0}
            monkeypatch.setitem(SETTINGS, "value", 2.0)
            assert self.seen(batches) == {2.0}

    def test_an_attribute(self, jobs: Any, torch: Any) -> None:
        class Drawn(jobs.Numbers):  # type: ignore[misc]
            def __getitem__(self, index: int) -> Any:
                return torch.tensor([self.values[index]]), torch.zeros(1)

        dataset = Drawn(values=[1.0] * jobs.ITEMS)
        with jobs.under(LoaderWorkers(workers=1)):
            batches = jobs.loader(dataset)
            assert self.seen(batches) == {1.0}
            dataset.values = [2.0] * jobs.ITEMS
            assert self.seen(batches) == {2.0}
            dataset.values[-1] = 3.0
            assert self.seen(batches) == {2.0, 3.0}

    def test_inside_what_it_is_a_part_of(self, jobs: Any, torch: Any) -> None:
        dataset = jobs.Numbers(epoch=0)
        part = torch.utils.data.Subset(dataset, range(8))
        with jobs.under(LoaderWorkers(workers=1)):
            batches = jobs.loader(part)
            workers = self.workers_of_a_pass(batches)
            assert self.workers_of_a_pass(batches) == workers
            dataset.epoch = 1
            assert not self.workers_of_a_pass(batches) & workers

    def test_what_puts_a_batch_together(self, jobs: Any, torch: Any) -> None:
        class Scaled:
            scale = 1.0

            def __call__(self, items: Any) -> Any:
                return torch.full((len(items), 1), self.scale), torch.zeros(1)

        collate = Scaled()
        with jobs.under(LoaderWorkers(workers=1)):
            batches = jobs.loader(collate_fn=collate)
            assert self.seen(batches) == {1.0}
            collate.scale = 2.0
            assert self.seen(batches) == {2.0}

    def test_later_passes_are_shuffled_as_without(self, jobs: Any, torch: Any) -> None:
        def shuffled() -> list[Any]:
            torch.manual_seed(3)
            dataset = jobs.Numbers()
            batches, orders = jobs.loader(dataset, shuffle=True), []
            for epoch in range(4):
                dataset.epoch = epoch // 2
                orders.append(jobs.order(batches))
            return orders

        plain = shuffled()
        with jobs.under(LoaderWorkers(workers=1)):
            assert shuffled() == plain

    def test_what_cannot_be_looked_at_counts_as_changed(self, jobs: Any) -> None:
        class Grumpy(float):
            def __eq__(self, other: object) -> bool:
                raise RuntimeError("not now")

            __hash__ = None  # type: ignore[assignment]

        with jobs.under(LoaderWorkers(workers=1)):
            batches = jobs.loader(jobs.Numbers(odd=Grumpy()))
            assert not self.workers_of_a_pass(batches) & self.workers_of_a_pass(batches)

    @staticmethod
    def workers_of_a_pass(batches: Any) -> set[int]:
        for _ in batches:
            pass
        return {worker.pid for worker in batches._iterator._workers}


def test_a_loader_built_again_from_ours_counts(jobs: Any, torch: Any) -> None:
    lever = LoaderWorkers()
    with jobs.under(lever):
        first = jobs.loader()
        again = torch.utils.data.DataLoader(
            first.dataset, batch_sampler=first.batch_sampler, num_workers=first.num_workers
        )
        assert len(jobs.order(again)) == 6
    assert lever.receipt().evidence == {"loaders": 1, "workers": 2, "batches": 6}


def test_a_loader_built_again_from_ours_is_shuffled_as_without(jobs: Any, torch: Any) -> None:
    def rebuilt() -> list[Any]:
        torch.manual_seed(3)
        names = ("dataset", "batch_sampler", "num_workers", "persistent_workers")
        first = jobs.loader(shuffle=True)
        again = torch.utils.data.DataLoader(**{name: getattr(first, name) for name in names})
        return [jobs.order(again) for _ in range(3)]

    plain = rebuilt()
    with jobs.under(LoaderWorkers(workers=1)):
        assert rebuilt() == plain


def test_what_the_script_set_is_never_lowered(jobs: Any) -> None:
    with jobs.under(LoaderWorkers(workers=3)):
        more = jobs.loader(num_workers=2, prefetch_factor=5)
    assert (more.num_workers, more.prefetch_factor, more.persistent_workers) == (3, 5, True)


def test_without_a_loader(jobs: Any) -> None:
    lever = LoaderWorkers()
    with jobs.under(lever):
        pass
    assert lever.receipt().reason == "the script has no loader"


def test_a_loader_that_is_not_iterated_is_no_evidence(jobs: Any) -> None:
    lever = LoaderWorkers()
    with jobs.under(lever):
        jobs.loader()
    assert not lever.receipt().applied
    assert "never iterated" in lever.receipt().reason


def test_as_many_workers_as_it_has_are_kept(jobs: Any, torch: Any) -> None:
    plain = passes(jobs, torch, 3, num_workers=2)
    lever = LoaderWorkers(workers=2, prefetch=7)
    with jobs.under(lever):
        assert passes(jobs, torch, 3, num_workers=2) == plain
        kept = jobs.loader(num_workers=2)
    assert (kept.num_workers, kept.prefetch_factor, kept.persistent_workers) == (2, 2, True)
    assert lever.receipt().evidence["batches"] == 18


@pytest.mark.parametrize("script, plan", [(True, True), (False, False)])
def test_a_loader_with_nothing_to_change_is_left_alone(jobs: Any, script: bool, plan: bool) -> None:
    lever = LoaderWorkers(workers=2, prefetch=7, persistent=plan)
    with jobs.under(lever):
        own = jobs.loader(num_workers=2, persistent_workers=script)
        jobs.order(own)
    assert own.prefetch_factor == 2
    assert not lever.receipt().applied
    assert lever.receipt().reason == "the loader already has 2 workers"


def test_an_iterable_dataset_is_left_alone(jobs: Any) -> None:
    lever = LoaderWorkers()
    with jobs.under(lever):
        assert len(jobs.order(jobs.loader(jobs.Stream()))) == 6
        assert not jobs.loader(jobs.Stream(), num_workers=2).persistent_workers
    assert "iterable" in lever.receipt().reason


def test_data_on_a_device_is_left_alone(jobs: Any, torch: Any) -> None:
    """The meta device stands in for a GPU: it is not the CPU either."""
    lever = LoaderWorkers()
    tensors = torch.utils.data.TensorDataset(torch.empty(8, 4, device="meta"))
    with jobs.under(lever):
        assert jobs.loader(torch.utils.data.Subset(tensors, [1, 2])).num_workers == 0
    assert "lives on the GPU" in lever.receipt().reason


def test_where_a_dataset_lives(jobs: Any, torch: Any) -> None:
    away = torch.empty(2, device="meta")
    numbers = jobs.Numbers
    both = torch.utils.data.ConcatDataset([numbers(), numbers(x=away)])
    module = torch.nn.Linear(1, 1, device="meta")
    device = torch.device("cuda")
    for attributes in ({"x": away}, {"x": [away]}, {"net": module}, {"to": device}, {"to": "cuda"}):
        assert lives_on_device(torch, numbers(**attributes))
    assert lives_on_device(torch, both)
    assert lives_on_device(torch, [away])
    for attributes in (
        {},
        {"x": torch.ones(2)},
        {"path": "cuda/data"},
        {"to": torch.device("cpu")},
    ):
        assert not lives_on_device(torch, numbers(**attributes))


def test_processes_that_spawn_are_not_started(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none: "spawn")
    lever = LoaderWorkers()
    with jobs.under(lever):
        assert jobs.loader().num_workers == 0
    assert "spawn" in lever.receipt().reason


def test_settings_go_beyond_what_the_script_has(jobs: Any) -> None:
    def counts(cores: int, workers: int) -> list[int]:
        loaders = [builders.loader(workers=workers)]
        return [s["workers"] for s in LoaderWorkers.settings(jobs.seen(cores, loaders=loaders))]

    assert counts(8, 0) == [8, 4]
    assert counts(8, 4) == [8]
    assert counts(64, 0) == [16, 8, 32]
    assert counts(1, 0) == [1]
    assert counts(2, 2) == [2]
    assert counts(2, 999) == [256]
    assert LoaderWorkers.settings(jobs.seen(2))[0]["persistent"]


def test_it_expects_to_win_what_is_waited_for(jobs: Any) -> None:
    expected = LoaderWorkers.expected(jobs.seen(8))
    assert expected.is_worth_trying
    assert expected.share == pytest.approx(0.2)


def test_or_what_starting_its_workers_takes_for_every_short_pass(jobs: Any) -> None:
    assert LoaderWorkers.expected(jobs.seen(2)).is_worth_trying


def test_it_refuses_what_it_cannot_help(jobs: Any) -> None:
    log = builders.Log()
    for _ in range(20):
        log.data(0.1, 8).forward(8, 8).backward(8).optimizer(3)
    quick = builders.measurement(log.events)
    stream = LoaderWorkers.expected(jobs.seen(8, loaders=[builders.loader(samples=None)]))
    assert stream.reason == "the dataset's items cannot be asked for by number"
    enough = [builders.loader(persistent=True)]
    of_enough = LoaderWorkers.expected(jobs.seen(2, loaders=enough))
    assert of_enough.reason.startswith("the loader already has 2 workers, on 2")
    endless = LoaderWorkers.expected(jobs.seen(2, loaders=[builders.loader(batches=10**6)]))
    assert endless.reason == of_enough.reason
    assert "0.5% of a step" in LoaderWorkers.expected(jobs.seen(8, quick)).reason
    assert LoaderWorkers.expected(jobs.seen(loaders=[])).reason == "the script has no loader"


def test_settings_that_make_no_sense() -> None:
    assert LoaderWorkers().problem() == ""
    assert "workers" in LoaderWorkers(workers=0).problem()
    assert "workers" in LoaderWorkers(workers=257).problem()
    assert "prefetch" in LoaderWorkers(prefetch=0).problem()


def test_a_dataset_that_draws_is_other_data_in_workers(jobs: Any, torch: Any) -> None:
    """A known limit, which the card names."""

    class Drawing(jobs.Numbers):  # type: ignore[misc]
        def __getitem__(self, index: int) -> Any:
            return torch.rand(4), torch.tensor([random.random()])

    def drawn() -> list[Any]:
        torch.manual_seed(3)
        random.seed(3)
        return [x.tolist() for x, _ in jobs.loader(Drawing())]

    plain = drawn()
    with jobs.under(LoaderWorkers()):
        assert drawn() != plain

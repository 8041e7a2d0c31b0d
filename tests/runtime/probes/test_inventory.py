from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.errors import JobInvalid
from hotloop.measurement import Inventory, LoaderSeen, LoopSeen, ModelSeen, OptimizerSeen
from hotloop.runtime.watching import Watch


def found(watch: Watch) -> Inventory:
    return watch.inventory.inventory(watch.clock.events)


def test_a_whole_job(torch: Any, jobs: Any, watch: Watch) -> None:
    jobs.train_on(jobs.loader(shuffle=True), model := jobs.Net())
    inventory = found(watch)
    assert model is not None
    assert inventory.models == [
        ModelSeen(
            name="Net",
            parameters=25,
            trainable=25,
            dtypes=["float32"],
            devices=["cpu"],
            compiled=False,
            channels_last=False,
            calls=7,
            large_matrices=0,
        )
    ]
    assert inventory.optimizers == [
        OptimizerSeen("SGD", parameters=25, groups=1, fused=False, foreach=None, steps=8, tensors=4)
    ]
    assert inventory.loaders == [
        LoaderSeen(
            name="DataLoader",
            dataset="TensorDataset",
            samples=32,
            batches=8,
            batch_size=4,
            workers=0,
            prefetch=None,
            persistent=False,
            pinned=False,
            drop_last=False,
            shuffled=True,
            names_files=False,
        )
    ]
    assert inventory.optimizer_built
    assert inventory.threads == 1


def test_a_loop_of_ours_and_what_depends_on_a_pass(torch: Any, watch: Watch) -> None:
    from hotloop.runtime.owned.loop import Loop
    from tests.runtime.owned.jobs import Plain

    class Normed(Plain):
        def model(self) -> Any:
            nn = torch.nn
            return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    job = Normed()
    job.microbatch = 3
    Loop(torch, job).train()
    seen = found(watch)
    assert seen.loop == LoopSeen(batch_size=8, microbatch=3, resizable=True)
    assert seen.models[0].batch_norms == 1


def test_sequences_of_a_loop_of_ours(torch: Any, watch: Watch) -> None:
    from hotloop.runtime.owned.loop import Loop
    from tests.runtime.owned.jobs import Tokens

    Loop(torch, Tokens()).train()
    assert found(watch).loop == LoopSeen(batch_size=8, microbatch=8, length=7)


def test_a_loop_that_could_not_begin(torch: Any, watch: Watch) -> None:
    """What is wrong with the job is said, and nothing is made of the loop."""
    from hotloop.runtime.owned.loop import Loop
    from tests.runtime.owned.jobs import Plain

    class Empty(Plain):
        def data(self) -> Any:
            return None

    with pytest.raises(JobInvalid, match="must not return None"):
        Loop(torch, Empty()).train()
    assert found(watch).loop is None


def test_of_nothing_there_is_nothing(watch: Watch) -> None:
    inventory = found(watch)
    assert [*inventory.models, *inventory.optimizers, *inventory.loaders] == []
    assert not inventory.optimizer_built


def test_a_model_that_is_gone_was_still_seen(torch: Any, jobs: Any, watch: Watch) -> None:
    """A script's main() has returned by the time its result is written."""

    def main() -> None:
        jobs.train(jobs.Net())

    main()
    assert [(model.name, model.calls) for model in found(watch).models] == [("Net", 7)]


@pytest.mark.parametrize(("whole", "named"), [(6, ["Critic"]), (3, ["Critic", "Linear"])])
def test_what_is_called_as_a_part_of_another_is_no_model_of_its_own(
    whole: int, named: list[str], torch: Any, watch: Watch
) -> None:
    """Unless it is what the script calls most."""

    class Critic(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return self.first(x)

        def of_one(self, x: Any) -> Any:
            return self.first(x)

    critic = Critic()
    for _ in range(whole):
        critic(torch.ones(3, 4)).sum().backward()
    for _ in range(6):
        critic.of_one(torch.ones(3, 4)).sum().backward()
    assert [one.name for one in found(watch).models] == named


def test_a_lazy_model_is_let_alone(torch: Any, jobs: Any, watch: Watch) -> None:
    """Its optimizer may be built, and cleared, before it has any shape."""
    model = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.LazyLinear(1))
    optimizer = jobs.sgd(model)
    jobs.train(model, optimizer=optimizer)
    assert found(watch).models[0].parameters == 25
    assert found(watch).optimizers[0].parameters == 25


def test_a_part_that_never_ran_has_no_shape(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    model.spare = torch.nn.LazyLinear(3)
    jobs.train(model)
    assert found(watch).models[0].parameters == 25


def test_what_is_compiled_later_is_compiled(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    jobs.train(model)
    assert not found(watch).models[0].compiled
    model.compile(backend="eager")
    assert found(watch).models[0].compiled


def test_frozen_parameters(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    model.body.requires_grad_(False)
    jobs.train(model)
    assert (found(watch).models[0].parameters, found(watch).models[0].trainable) == (25, 5)


def test_mixed_precision(torch: Any, jobs: Any, watch: Watch) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return jobs.plain_loss(model, x, y)

    jobs.train(jobs.Net(), loss_of=loss_of)
    assert found(watch).precision.autocast == "bfloat16"


def test_full_precision(torch: Any, jobs: Any, watch: Watch) -> None:
    jobs.train(jobs.Net())
    assert found(watch).precision.autocast is None
    assert not found(watch).precision.grad_scaler


@pytest.mark.parametrize("enabled", [True, False])
def test_a_gradient_scaler_counts_when_it_is_on(enabled: bool, torch: Any, watch: Watch) -> None:
    torch.amp.GradScaler("cpu", enabled=enabled).scale(torch.tensor(1.0))
    assert found(watch).precision.grad_scaler is enabled


def test_channels_last(torch: Any, jobs: Any, watch: Watch) -> None:
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(36, 1))
    model = model.to(memory_format=torch.channels_last)
    jobs.train(model, loss_of=lambda model, x, y: model(torch.randn(2, 3, 5, 5)).mean())
    assert found(watch).models[0].channels_last


def test_one_pixel_kernels_are_both_layouts_and_so_neither(
    torch: Any, jobs: Any, watch: Watch
) -> None:
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten(), nn.Linear(100, 1))
    jobs.train(model, loss_of=lambda model, x, y: model(torch.randn(2, 3, 5, 5)).mean())
    assert not found(watch).models[0].channels_last


def test_optimizers_as_they_are_set(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    groups = [{"params": model.body.parameters()}, {"params": model.head.parameters(), "lr": 1.0}]
    jobs.train(model, optimizer=torch.optim.AdamW(groups, foreach=True))
    assert found(watch).optimizers == [
        OptimizerSeen(
            "AdamW", parameters=25, groups=2, fused=False, foreach=True, steps=8, tensors=4
        )
    ]


def test_a_fused_optimizer(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()
    jobs.train(model, optimizer=torch.optim.AdamW(model.parameters(), fused=True))
    assert found(watch).optimizers[0].fused


class TestLoaders:
    def test_of_unknown_length(self, torch: Any, jobs: Any, watch: Watch) -> None:
        class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
            def __iter__(self) -> Iterator[Any]:
                return iter([torch.ones(4)] * 6)

        list(jobs.loader(Stream()))
        seen = found(watch).loaders[0]
        assert (seen.dataset, seen.samples, seen.batches) == ("Stream", None, None)
        assert not seen.shuffled

    def test_whose_dataset_names_files(self, torch: Any, watch: Watch, tmp_path: Path) -> None:
        numbers = torch.utils.data.TensorDataset(torch.ones(8, 4))
        numbers.root = tmp_path
        list(torch.utils.data.DataLoader(numbers))
        assert found(watch).loaders[0].names_files

    def test_with_a_batch_sampler(self, torch: Any, jobs: Any, watch: Watch) -> None:
        data = torch.utils.data
        dataset = data.TensorDataset(torch.ones(12, 4))
        sampler = data.BatchSampler(data.RandomSampler(dataset), batch_size=3, drop_last=True)
        list(data.DataLoader(dataset, batch_sampler=sampler))
        seen = found(watch).loaders[0]
        assert (seen.batch_size, seen.batches) == (3, 4)
        assert seen.drop_last and seen.shuffled

    def test_whose_batches_are_shared_out(self, torch: Any, jobs: Any, watch: Watch) -> None:
        data = torch.utils.data
        dataset = data.TensorDataset(torch.ones(12, 4))

        class Shard:
            def __init__(self) -> None:
                self.batch_sampler = data.BatchSampler(data.RandomSampler(dataset), 3, True)

            def __iter__(self) -> Iterator[Any]:
                return iter(self.batch_sampler)

        list(data.DataLoader(dataset, batch_sampler=Shard()))
        seen = found(watch).loaders[0]
        assert seen.drop_last and seen.shuffled

    def test_without_automatic_batches(self, torch: Any, jobs: Any, watch: Watch) -> None:
        list(torch.utils.data.DataLoader([torch.ones(5, 4)] * 3, batch_size=None))
        assert found(watch).loaders[0].batch_size is None

    def test_that_is_built_but_never_asked_is_none(self, jobs: Any, watch: Watch) -> None:
        jobs.loader()
        assert found(watch).loaders == []


class TestTf32:
    @pytest.fixture(autouse=True)
    def restored(self, torch: Any) -> Iterator[None]:
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        before = matmul.fp32_precision, cudnn.fp32_precision, cudnn.conv.fp32_precision
        yield
        matmul.fp32_precision, cudnn.fp32_precision, cudnn.conv.fp32_precision = before

    @pytest.mark.parametrize(("setting", "on"), [("tf32", True), ("ieee", False)])
    def test_the_newer_setting_is_understood(
        self, setting: str, on: bool, torch: Any, watch: Watch
    ) -> None:
        """Once it was used, asking for the older one raises."""
        torch.backends.cuda.matmul.fp32_precision = setting
        torch.backends.cudnn.conv.fp32_precision = setting
        assert found(watch).precision.tf32_matmul is on
        assert found(watch).precision.tf32_cudnn is on


def test_convolutions_are_counted_by_their_dimensions(torch: Any) -> None:
    from hotloop.runtime.probes.inventory import _model

    nn = torch.nn
    flat = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv3d(3, 4, 3))
    lines = nn.Sequential(nn.Conv1d(3, 4, 3), nn.ConvTranspose1d(3, 4, 3))
    tokens = nn.ParameterList([torch.zeros(1, 5, 8)])
    counts = [
        (seen.convolutions, seen.convolutions_1d, seen.convolves)
        for seen in (_model(torch, model) for model in (flat, lines, tokens))
    ]
    assert counts == [(2, 0, True), (0, 2, True), (0, 0, False)]


def test_what_is_frozen_only_while_another_learns_is_trained(
    torch: Any, jobs: Any, watch: Watch
) -> None:
    """The critic, while the generator takes its step."""
    model = jobs.Net()
    jobs.train(model)
    model.requires_grad_(False)
    assert found(watch).models[0].trainable == 25

"""Small jobs soaked in this process: where they end, and what they are seen to meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hotloop.evidence import SoakSeen
from hotloop.runtime.probes.progress import ProgressProbe
from hotloop.runtime.soaking import STEPS_A_BATCH, Soaking
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Soak, StopRule

CUT = Soak(batches=8, passes=2, load="", save="")
FAR = StopRule(steps=10**6)
SAMPLES, SIZE = 42, 4
"""Eleven batches, the last of two samples."""


class Enough(BaseException):
    """Stands for the end of the process."""


class Soaked:
    """Attached as a child attaches it, and taken off again."""

    def __init__(self, torch: Any, path: Path, soak: Soak, stop: StopRule) -> None:
        self._watch = watch = Watch(torch)
        self._soaking = Soaking(torch, watch, soak, stop)
        self._soaking.attach()
        numbers = watch.inventory.numbers["optimizer"]
        probe = ProgressProbe(str(path), self._soaking, float("inf"), numbers, self._enough, 2)
        probe.attach(watch.seams)
        watch.driver.attach()
        self.steps = 0
        self.ended_early = False
        watch.seams.step.before.append(self._count)

    def _count(self, args: Any, kwargs: Any) -> None:
        self.steps += 1

    def _enough(self) -> None:
        self.ended_early = True
        raise Enough

    def leave(self) -> SoakSeen:
        self._watch.driver.detach()
        return self._soaking.finish()

    def run(self, job: Callable[[], Any]) -> SoakSeen:
        with suppress(Enough):
            job()
        return self.leave()


@pytest.fixture
def soaking(torch: Any, unharmed: None, tmp_path: Path) -> Iterator[Callable[..., Soaked]]:
    begun: list[Soaked] = []

    def begin(soak: Soak = CUT, stop: StopRule = FAR) -> Soaked:
        begun.append(Soaked(torch, tmp_path / "progress", soak, stop))
        return begun[-1]

    yield begin
    for one in begun:
        one.leave()


class Script:
    """A training loop as scripts write it, with what a test wants of it."""

    def __init__(self, torch: Any, jobs: Any, samples: int = SAMPLES, every: int = 1) -> None:
        self.torch, self.every = torch, every
        self.model = jobs.Net()
        self.optimizer: Any = None
        self.by_hand = False
        data = torch.utils.data.TensorDataset(torch.randn(samples, 4), torch.randn(samples, 1))
        self.loader = torch.utils.data.DataLoader(data, batch_size=SIZE)
        self.batches: list[int] = []

    def train(self, epochs: int = 1000, evaluate: Callable[[], Any] | None = None) -> None:
        for _ in range(epochs):
            for number, batch in enumerate(self.loader, start=1):
                self.learn(batch, number % self.every == 0)
            if evaluate:
                evaluate()

    def learn(self, batch: Any, step: bool = True) -> None:
        if self.optimizer is None and not self.by_hand:
            self.optimizer = self.torch.optim.AdamW(self.model.parameters(), lr=0.01)
        x, y = batch
        self.batches.append(len(x))
        (self.model(x) - y).square().mean().backward()
        if step and not self.by_hand:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def test(self) -> None:
        held_out = self.torch.utils.data.DataLoader(self.loader.dataset, batch_size=3)
        with self.torch.no_grad():
            for x, _ in held_out:
                self.model(x)


@pytest.fixture
def script(torch: Any, jobs: Any) -> Script:
    return Script(torch, jobs)


class TestWhereItEnds:
    def test_at_the_last_step_of_the_second_pass(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        soaked = soaking()
        seen = soaked.run(script.train)
        assert soaked.ended_early
        assert script.batches == ([4] * 7 + [2]) * 2
        assert (seen.passes, seen.short_batch, seen.evaluation) == (2, True, False)

    def test_not_before_its_models_are_known(
        self, soaking: Callable[..., Soaked], torch: Any, jobs: Any
    ) -> None:
        soaked, script = soaking(), Script(torch, jobs, samples=6)
        soaked.run(script.train)
        assert (soaked.steps, script.batches) == (6, [4, 2] * 3)

    def test_steps_that_take_several_batches_are_waited_for(
        self, soaking: Callable[..., Soaked], torch: Any, jobs: Any
    ) -> None:
        soaked, script = soaking(), Script(torch, jobs, every=4)
        seen = soaked.run(script.train)
        assert (soaked.steps, seen.passes) == (6, 3)

    def test_where_the_script_ends_if_that_is_sooner(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        soaked = soaking()
        seen = soaked.run(lambda: script.train(epochs=1))
        assert not soaked.ended_early
        assert (soaked.steps, seen.passes) == (8, 1)

    def test_by_the_stop_rule_without_a_loader(
        self, soaking: Callable[..., Soaked], jobs: Any
    ) -> None:
        soaked = soaking(stop=StopRule(warm_up=2, steps=10))
        seen = soaked.run(lambda: jobs.train(jobs.Net(), steps=1000))
        assert (soaked.steps, seen.passes) == (1 + 2 + 10, 0)

    def test_by_the_stop_rule_where_passes_are_not_cut(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        soaked = soaking(Soak(0, 2, "", ""), StopRule(warm_up=2, steps=20))
        soaked.run(script.train)
        assert soaked.steps == 1 + 2 + 20
        assert script.batches == [*[4] * 10, 2] * 2 + [4]

    def test_by_the_stop_rule_where_the_data_is_a_stream(
        self, soaking: Callable[..., Soaked], script: Script, torch: Any
    ) -> None:
        class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
            def __iter__(self) -> Any:
                while True:
                    yield torch.randn(4), torch.randn(1)

        script.loader = torch.utils.data.DataLoader(Stream(), batch_size=SIZE)
        soaked = soaking(stop=StopRule(warm_up=2, steps=20))
        soaked.run(script.train)
        assert soaked.steps == 1 + 2 + 20

    def test_by_the_stop_rule_once_the_loader_is_no_longer_drawn_from(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        def keep_and_train() -> None:
            batches = list(script.loader)
            for number in range(10_000):
                script.learn(batches[number % len(batches)])

        soaked = soaking(stop=StopRule(warm_up=2, steps=20))
        soaked.run(keep_and_train)
        assert soaked.steps == STEPS_A_BATCH * CUT.passes * CUT.batches


class TestWhatItMeets:
    def test_a_model_called_without_gradients_is_evaluated(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        assert soaking().run(lambda: script.train(evaluate=script.test)).evaluation

    def test_evaluation_need_not_use_a_loader(
        self, soaking: Callable[..., Soaked], script: Script, torch: Any
    ) -> None:
        @torch.no_grad()  # type: ignore[untyped-decorator]
        def sample() -> None:
            script.model(torch.randn(1, 4))

        assert soaking().run(lambda: script.train(evaluate=sample)).evaluation

    def test_a_second_loader_between_passes_is_evaluation_too(
        self, soaking: Callable[..., Soaked], script: Script, torch: Any
    ) -> None:
        """Whoever forgets to switch gradients off, or tests a part of the model, still tests."""

        def test() -> None:
            for x, _ in torch.utils.data.DataLoader(script.loader.dataset, batch_size=3):
                script.model.head(x)

        assert soaking().run(lambda: script.train(evaluate=test)).evaluation

    def test_a_teacher_is_no_evaluation(
        self, soaking: Callable[..., Soaked], script: Script, torch: Any, jobs: Any
    ) -> None:
        teacher = jobs.Net()

        def train() -> None:
            for _ in range(1000):
                for x, _ in script.loader:
                    with torch.no_grad():
                        y = teacher(x)
                    script.learn((x, y))

        assert not soaking().run(train).evaluation

    def test_nor_are_two_loaders_that_are_read_together(
        self, soaking: Callable[..., Soaked], script: Script, torch: Any
    ) -> None:
        other = torch.utils.data.DataLoader(script.loader.dataset, batch_size=3)

        def train() -> None:
            for _ in range(1000):
                for batch, _ in zip(script.loader, other, strict=False):
                    script.learn(batch)

        seen = soaking().run(train)
        assert (seen.evaluation, seen.passes) == (False, 2)

    def test_evaluating_more_than_training_makes_no_training_loader(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        def train() -> None:
            for _ in range(1000):
                script.test()
                script.train(epochs=1, evaluate=script.test)

        soaking().run(train)
        assert script.batches == ([4] * 7 + [2]) * 2

    def test_a_short_batch_that_is_only_looked_at_is_not_trained_on(
        self, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        def train() -> None:
            for _ in range(1000):
                for batch in script.loader:
                    if len(batch[0]) == SIZE:
                        script.learn(batch)

        assert not soaking().run(train).short_batch


class TestState:
    @pytest.fixture
    def state(self, tmp_path: Path, soaking: Callable[..., Soaked], torch: Any, jobs: Any) -> str:
        """Left by a run of its own, with weights that no other run would come to."""
        path, script = str(tmp_path / "state.pt"), Script(torch, jobs)
        with torch.no_grad():
            script.model.head.bias.fill_(100.0)
        seen = soaking(Soak(8, 2, "", path)).run(script.train)
        assert (seen.saved, seen.problem) == (True, "")
        return path

    def test_is_gone_on_from(
        self, state: str, soaking: Callable[..., Soaked], script: Script
    ) -> None:
        soaked = soaking(Soak(8, 2, state, ""))
        seen = soaked.run(script.train)
        assert (seen.loaded, seen.saved, seen.problem) == (True, False, "")
        assert script.model.head.bias.item() > 90.0
        assert soaked.steps == 16

    def test_a_step_is_made_from_it_before_the_end(
        self, state: str, soaking: Callable[..., Soaked], torch: Any, jobs: Any
    ) -> None:
        """Two batches a pass: the models are known when the passes have been met long before."""
        soaked = soaking(Soak(2, 2, state, ""))
        assert soaked.run(Script(torch, jobs).train).loaded
        assert soaked.steps == 7

    def test_without_a_step_from_it_it_was_not_gone_on_from(
        self, state: str, soaking: Callable[..., Soaked], torch: Any, jobs: Any
    ) -> None:
        soaked = soaking(Soak(8, 2, state, ""))
        seen = soaked.run(lambda: Script(torch, jobs, samples=24).train(epochs=1))
        assert (soaked.steps, seen.loaded, seen.problem) == (6, False, "")

    def test_one_that_does_not_fit_is_a_problem_and_no_exception(
        self, state: str, soaking: Callable[..., Soaked], script: Script, jobs: Any
    ) -> None:
        script.model = jobs.Net(width=5)
        seen = soaking(Soak(8, 2, state, "")).run(script.train)
        assert not seen.loaded
        assert "in the state, and float32 (5, 4) in the job" in seen.problem
        assert seen.passes == 2

    def test_is_left_by_a_script_whose_model_is_gone(
        self, soaking: Callable[..., Soaked], torch: Any, jobs: Any, tmp_path: Path
    ) -> None:
        def main() -> None:
            Script(torch, jobs).train(epochs=1)

        path = tmp_path / "left.pt"
        seen = soaking(Soak(8, 2, "", str(path))).run(main)
        assert seen.saved
        state = torch.load(path)
        assert [len(state[part]) for part in ("models", "optimizers")] == [1, 1]

    def test_there_is_none_without_a_model(
        self, soaking: Callable[..., Soaked], torch: Any, tmp_path: Path
    ) -> None:
        def train() -> None:
            weight = torch.nn.Parameter(torch.ones(3))
            optimizer = torch.optim.SGD([weight], lr=0.1)
            for _ in range(20):
                weight.square().sum().backward()
                optimizer.step()

        seen = soaking(Soak(8, 2, "", str(tmp_path / "left.pt"))).run(train)
        assert (seen.saved, seen.problem) == (False, "")
        assert not (tmp_path / "left.pt").exists()

    def test_parameters_updated_by_hand_have_one_too(
        self, soaking: Callable[..., Soaked], script: Script, tmp_path: Path
    ) -> None:
        script.by_hand = True
        seen = soaking(Soak(8, 2, "", str(tmp_path / "left.pt"))).run(script.train)
        assert (seen.saved, seen.passes, seen.short_batch) == (True, 2, True)

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from hotloop import timeline
from hotloop.measurement import Events, GpuTimes, Kind, Losses
from hotloop.timeline import Phase, Step
from tests.builders import Log, on_gpu, training


def ms(step: Step) -> dict[Phase, float]:
    return {phase: round(seconds * 1e3, 6) for phase, seconds in step.phases.items() if seconds}


def last(log: Log) -> Step:
    return timeline.steps(log.events)[-1]


class TestMetronome:
    def test_one_optimizer(self) -> None:
        log = training(3)
        assert timeline.metronome(log.events) == 0
        assert len(timeline.steps(log.events)) == 3

    def test_of_equals_the_last_in_the_cycle(self) -> None:
        """A GAN: a step ends when both networks have stepped."""
        log = Log()
        for _ in range(4):
            log.forward(1).backward(1).optimizer(1, key=0)
            log.forward(1).backward(1).optimizer(1, key=1)
        assert timeline.metronome(log.events) == 1
        steps = timeline.steps(log.events)
        assert [round(step.seconds * 1e3, 6) for step in steps] == [6] * 4

    def test_otherwise_the_most_frequent(self) -> None:
        """A WGAN: five steps of the critic for each of the generator, which comes last."""
        log = Log()
        for _ in range(3):
            for _ in range(5):
                log.forward(1).backward(1).optimizer(1, key=7)
            log.forward(2).backward(2).optimizer(2, key=9)
        assert timeline.metronome(log.events) == 7
        assert len(timeline.steps(log.events)) == 15

    def test_clients_of_a_federation_step_in_turns(self) -> None:
        """Each with an optimizer and data of its own."""
        log = Log()
        for _ in range(3):
            for client in range(4):
                for _ in range(5):
                    log.data(1, n=8, key=client).forward(1).backward(1).optimizer(1, key=client)
        steps = timeline.steps(log.events)
        assert [(step.seconds, step.samples) for step in steps[1:]] == [(0.004, 8)] * 59

    def test_without_an_optimizer_each_backward_pass_is_a_step(self) -> None:
        log = Log().forward(1).backward(2).wait(3).forward(1).backward(2)
        assert timeline.metronome(log.events) is None
        steps = timeline.steps(log.events)
        assert len(steps) == 2
        assert ms(steps[1]) == {Phase.REST: 3, Phase.FORWARD: 1, Phase.BACKWARD: 2}

    def test_of_nothing_there_are_no_steps(self) -> None:
        assert timeline.steps(Events()) == []
        assert timeline.steps(Log().data(1, 8).forward(2).events) == []


class TestPhases:
    def test_each_call_has_its_own(self) -> None:
        log = Log().optimizer(1)
        log.data(4, n=8).copy(2).forward(5).backward(8).optimizer(3)
        assert ms(last(log)) == {
            Phase.DATA: 4,
            Phase.COPY: 2,
            Phase.FORWARD: 5,
            Phase.BACKWARD: 8,
            Phase.OPTIMIZER: 3,
        }

    def test_clearing_gradients_belongs_to_the_optimizer(self) -> None:
        log = Log().optimizer(1).zero_grad(2).forward(1).backward(1).zero_grad(4).optimizer(8)
        assert ms(last(log))[Phase.OPTIMIZER] == 2 + 4 + 8

    def test_the_loss_belongs_to_the_forward_pass(self) -> None:
        log = Log().optimizer(1).forward(5).wait(2).backward(1).optimizer(1)
        assert ms(last(log))[Phase.FORWARD] == 7

    def test_so_it_does_where_gradients_are_cleared_right_before_they_are_computed(self) -> None:
        log = Log().optimizer(1).forward(5).wait(2).zero_grad(1).wait(4).backward(1).optimizer(1)
        assert ms(last(log)) == {Phase.FORWARD: 11, Phase.BACKWARD: 1, Phase.OPTIMIZER: 2}

    def test_without_a_model_it_is_all_that_comes_before_the_backward_pass(self) -> None:
        log = Log().optimizer(1).wait(5).backward(8).optimizer(3)
        assert ms(last(log)) == {Phase.FORWARD: 5, Phase.BACKWARD: 8, Phase.OPTIMIZER: 3}
        log = Log().optimizer(1).data(2, n=8).wait(5).backward(8).optimizer(3)
        assert ms(last(log))[Phase.FORWARD] == 5

    def test_what_comes_before_a_closures_first_pass_is_no_update(self) -> None:
        """Lightning does much there, of its own."""
        log = Log().optimizer(1)
        with log.inside(Kind.OPTIMIZER_BEGIN):
            log.wait(8).forward(1).backward(1).wait(2)
        assert ms(last(log))[Phase.OPTIMIZER] == 2
        assert ms(last(log))[Phase.REST] == 8

    def test_clipping_belongs_to_the_optimizer(self) -> None:
        log = Log().optimizer(1).forward(1).backward(8).wait(2).optimizer(3)
        assert ms(last(log))[Phase.OPTIMIZER] == 5

    def test_between_two_of_a_kind_the_same_goes_on(self) -> None:
        log = Log().optimizer(1).copy(1).wait(2).copy(1).forward(1).wait(4).forward(1)
        log.backward(1).optimizer(1)
        assert ms(last(log))[Phase.COPY] == 4
        assert ms(last(log))[Phase.FORWARD] == 6

    def test_taking_the_next_microbatch_belongs_to_its_pass(self) -> None:
        log = Log().optimizer(1).data(1, 8)
        log.forward(1).backward(1).wait(4).forward(1).backward(1).optimizer(1)
        assert ms(last(log))[Phase.FORWARD] == 1 + 4 + 1
        assert Phase.REST not in ms(last(log))

    def test_a_batch_may_be_drawn_before_gradients_are_cleared(self) -> None:
        """The commonest loop without a loader: get_batch(), zero_grad(), model(x)."""
        log = Log().optimizer(1).wait(18).zero_grad(1).wait(2).forward(4).backward(5).optimizer(1)
        assert ms(last(log)) == {
            Phase.DATA: 18 + 2,
            Phase.FORWARD: 4,
            Phase.BACKWARD: 5,
            Phase.OPTIMIZER: 2,
        }

    def test_with_a_loader_nobody_knows_what_comes_before_that(self) -> None:
        log = Log().optimizer(1).wait(2).zero_grad(1).wait(4).data(1, 8)
        log.wait(8).zero_grad(1).forward(1).backward(1).optimizer(1)
        assert ms(last(log))[Phase.OPTIMIZER] == 1 + 1 + 1
        assert ms(last(log))[Phase.REST] == 2 + 4 + 8

    def test_several_optimizers_clear_theirs(self) -> None:
        log = Log().optimizer(1, key=1).wait(4).zero_grad(1).wait(2).zero_grad(1, key=1)
        log.wait(1).forward(1).backward(1).optimizer(1).optimizer(1, key=1)
        assert ms(last(log))[Phase.DATA] == 4 + 2 + 1

    @pytest.mark.parametrize("loaded", [False, True])
    def test_a_module_called_by_its_forward_is_seen_by_nobody(self, loaded: bool) -> None:
        """As in examples/mnist_forward_forward: what precedes the backward pass is that."""
        log = Log().data(1, 8) if loaded else Log()
        log.optimizer(1).wait(70).zero_grad(1).wait(2).backward(60).optimizer(3)
        assert ms(last(log)) == {Phase.FORWARD: 72, Phase.BACKWARD: 60, Phase.OPTIMIZER: 1 + 3}

    def test_nor_where_it_is_called_as_a_module_elsewhere(self) -> None:
        log = Log().optimizer(1)
        for _ in range(3):
            log.data(1, 8).wait(5).zero_grad(1).backward(8).optimizer(3)
        log.forward(50)
        assert ms(last(log))[Phase.FORWARD] == 5

    def test_any_other_gap_is_unaccounted_for(self) -> None:
        log = Log().optimizer(1).wait(10).data(1, 8).wait(20).forward(1).backward(1).optimizer(1)
        assert ms(last(log))[Phase.REST] == 30

    def test_a_gap_inside_a_call_belongs_to_that_call(self) -> None:
        log = Log().optimizer(1)
        with log.inside(Kind.DATA_BEGIN):
            log.wait(1).zero_grad(2).wait(4)
        log.optimizer(1)
        assert ms(last(log)) == {Phase.DATA: 5, Phase.OPTIMIZER: 3}

    def test_a_closure_is_nested_in_its_optimizer(self) -> None:
        """LBFGS: one step, several forward and backward passes."""
        log = Log().optimizer(1).wait(1)
        with log.inside(Kind.OPTIMIZER_BEGIN):
            log.wait(2)
            for _ in range(3):
                log.zero_grad(1).forward(5).wait(1).backward(10)
            log.wait(4)
        found = ms(last(log))
        assert found == {
            Phase.REST: 1,
            Phase.OPTIMIZER: 2 + 3 + 4,
            Phase.FORWARD: 3 * 6,
            Phase.BACKWARD: 30,
        }

    def test_a_step_in_a_step_is_counted_once(self) -> None:
        """Lightning wraps; SAM steps a base optimizer inside its own step."""
        log = Log()
        for _ in range(3):
            log.data(2, 8)
            with log.inside(Kind.OPTIMIZER_BEGIN, key=0):
                log.forward(3).backward(4)
                log.optimizer(5, key=1)
                log.wait(1)
        steps = timeline.steps(log.events)
        assert len(steps) == 3
        assert ms(steps[1]) == {
            Phase.DATA: 2,
            Phase.FORWARD: 3,
            Phase.BACKWARD: 4,
            Phase.OPTIMIZER: 6,
        }


class TestEvaluation:
    @staticmethod
    def every(period: int, steps: int = 8) -> Log:
        """Training on loader 0, with two batches of loader 1 looked at every few steps."""
        log = Log()
        for number in range(1, steps + 1):
            log.step(n=8)
            if number % period == 0:
                log.wait(1)
                for _ in range(2):
                    log.data(10, n=100, key=1).wait(1).no_grad(30, n=100).wait(2)
        return log

    def test_is_no_part_of_a_step(self) -> None:
        steps = timeline.steps(self.every(4).events)
        assert len(steps) == 8
        paused = steps[4]
        # Two batches and passes, and what the loop did between them.
        assert round(paused.evaluation * 1e3, 6) == 2 * (10 + 1 + 30) + 2
        assert round(paused.seconds * 1e3, 6) == 20 + 1 + 2
        assert all(step.evaluation == 0 for step in [*steps[:4], *steps[5:]])

    def test_its_samples_are_not_trained_on(self) -> None:
        steps = timeline.steps(self.every(4).events)
        assert {step.samples for step in steps} == {8}
        assert {step.batches for step in steps} == {1}

    def test_what_happens_in_every_step_is_part_of_it(self) -> None:
        """A teacher, a target network, the generator while the critic learns."""
        log = Log()
        for _ in range(6):
            log.data(4, n=8).no_grad(2, n=8).forward(5, n=8).backward(8).optimizer(3)
        for step in timeline.steps(log.events)[1:]:
            assert step.evaluation == 0
            assert step.samples == 8
            assert round(step.seconds * 1e3, 6) == 22
            assert ms(step)[Phase.FORWARD] == 7

    def test_after_the_last_step_is_left_out(self) -> None:
        log = training(4).data(10, n=100, key=1).no_grad(500, n=100)
        steps = timeline.steps(log.events)
        assert len(steps) == 4
        assert all(step.evaluation == 0 for step in steps)

    def test_of_a_model_that_no_step_calls_is_seen_by_its_loader(self) -> None:
        """An average of the weights, say, after the model itself: nothing tells of its passes."""
        log = training(6).wait(1).data(10, n=100, key=1).no_grad(30, n=100).data(1, n=-1, key=1)
        for _ in range(2):
            log.wait(2).data(10, n=100, key=1).wait(30)
        log.data(1, n=-1, key=1).wait(1)
        for _ in range(6):
            log.step()
        paused = timeline.steps(log.events)[6]
        assert round(paused.evaluation * 1e3, 6) == 10 + 30 + 1 + 2 * (2 + 10 + 30) + 1
        assert round(paused.seconds * 1e3, 6) == 20 + 1 + 1
        assert (paused.samples, paused.batches) == (8, 1)

    def test_what_is_drawn_from_its_last_batch_is_no_part_of_a_step(self) -> None:
        """By methods of a model, which nobody sees, from the first batch of one more loader."""
        log = training(6).data(10, n=100, key=1).no_grad(30, n=100).data(1, n=-1, key=1)
        log.wait(2).data(10, n=100, key=2).wait(500)
        for _ in range(6):
            log.step()
        paused = timeline.steps(log.events)[6]
        assert round(paused.evaluation * 1e3, 6) == 10 + 30 + 1 + 2 + 10 + 500
        assert round(paused.seconds * 1e3, 6) == 20

    def test_beside_a_teacher_is_seen_by_its_loader_too(self) -> None:
        log = Log()
        for number in range(8):
            log.data(4, n=8).no_grad(2, n=8).forward(5, n=8).backward(8).optimizer(3)
            if number == 3:
                log.data(10, n=9, key=1).no_grad(30).data(10, n=9, key=1).no_grad(30)
                log.data(1, n=-1, key=1)
        paused = timeline.steps(log.events)[4]
        assert round(paused.evaluation * 1e3, 6) == 81
        assert round(paused.seconds * 1e3, 6) == 22

    def test_a_batch_of_another_loader_may_be_for_the_step_that_follows(self) -> None:
        log = training(4).data(4, n=8, key=1).data(4, n=8)
        log.forward(5, n=8).backward(8).optimizer(3)
        assert timeline.steps(log.events)[4].evaluation == 0

    @pytest.mark.parametrize("of_evaluation", [0, 1])
    def test_begins_with_its_own_pass_and_not_with_the_end_of_the_trainings(
        self, of_evaluation: int
    ) -> None:
        """Also where it goes over the data that is trained on."""
        log = training(6).wait(1).data(70, n=-1).wait(90)  # in which its loader is made ready
        log.data(20, n=-1, key=of_evaluation).data(10, n=100, key=of_evaluation).no_grad(30)
        for _ in range(6):
            log.step()
        paused = timeline.steps(log.events)[6]
        assert round(paused.evaluation * 1e3, 6) == 90 + 20 + 10 + 30
        assert round(ms(paused)[Phase.DATA], 6) == 70 + 4

    def test_without_a_loader_it_is_the_pass_alone(self) -> None:
        """Sampling by hand between two steps."""
        log = training(6).wait(3).no_grad(50).wait(3).no_grad(50).wait(3)
        for _ in range(6):
            log.step()
        paused = timeline.steps(log.events)[6]
        assert round(paused.evaluation * 1e3, 6) == 103
        assert round(paused.seconds * 1e3, 6) == 20 + 3 + 3


def _evaluating_with_gradients(loads: bool) -> Log:
    """After every fourth step, by two batches."""
    log = Log()
    for number in range(12):
        if loads:
            log.data(2, n=8)
        log.forward(10, n=8).wait(1).backward(20).optimizer(5).wait(1)
        if number % 4 == 3:
            for _ in range(2):
                if loads:
                    log.data(7, n=100, key=1)
                log.forward(30, n=100).wait(1)
            if loads:
                log.data(3, n=-1, key=1)
    return log


class TestEvaluationWithGradients:
    @pytest.mark.parametrize("loads", [False, True])
    def test_is_no_part_of_steps(self, loads: bool) -> None:
        steps = timeline.steps(_evaluating_with_gradients(loads).events)[1:]
        pauses = [round(step.evaluation * 1e3, 6) for step in steps]
        whole = 2 * 30 + 1 + (2 * 7 + 1 + 3 if loads else 0)
        assert pauses == [0, 0, 0, whole, 0, 0, 0, whole, 0, 0, 0]
        assert max(round(step.phases[Phase.FORWARD] * 1e3) for step in steps) <= 12
        if loads:
            assert {round(step.phases[Phase.DATA] * 1e3) for step in steps} == {2}

    def test_more_passes_with_more_backward_passes_train(self) -> None:
        """The generator of a pair, now and then."""
        log = Log()
        for number in range(12):
            log.forward(10).backward(20)
            if number % 4 == 3:
                log.forward(10).backward(20)
            log.optimizer(5)
        assert all(step.evaluation == 0 for step in timeline.steps(log.events))

    def test_as_many_passes_as_a_sequence_is_long_train(self) -> None:
        log = Log()
        for number in range(12):
            for _ in range(1 + number % 3):
                log.forward(10)
            log.backward(20).optimizer(5)
        assert all(step.evaluation == 0 for step in timeline.steps(log.events))


class TestSamples:
    def test_come_from_the_loader(self) -> None:
        log = Log().optimizer(1)
        for _ in range(3):
            log.data(1, n=16).forward(1, n=4).backward(1)
        log.optimizer(1)
        assert (last(log).samples, last(log).batches) == (48, 3)

    def test_those_of_a_loader_that_is_read_now_and_then_are_not_trained_on(self) -> None:
        """As of an evaluation that forgets to turn gradients off."""
        log = Log().optimizer(1)
        for number in range(10):
            log.data(1, n=8).forward(1, n=8).backward(1).optimizer(1)
            if number % 5 == 0:
                log.data(1, n=100, key=1).forward(1, n=100)
        steps = timeline.steps(log.events)[1:]
        assert [(step.samples, step.batches) for step in steps] == [(8, 1)] * 10

    def test_those_of_a_second_stage_are_trained_on(self) -> None:
        """It is read in few steps yet, as is the loader of the last fold; of another kind is what
        is read beside the training's own."""
        log = Log().optimizer(1)
        for number in range(12):
            key = 2 if number >= 9 else 0
            log.data(1, n=8, key=key).forward(1, n=8).backward(1).optimizer(1)
            if number % 6 == 5:
                log.data(1, n=100, key=1).forward(1, n=100)
        steps = timeline.steps(log.events)[1:]
        assert [(step.samples, step.batches) for step in steps] == [(8, 1)] * 12

    def test_what_is_evaluated_by_hand_is_not_trained_on(self) -> None:
        log = Log().optimizer(1)
        for number in range(10):
            log.forward(1, n=8).backward(1).optimizer(1)
            if number == 5:
                log.forward(1, n=100).forward(1, n=100)
        assert {step.samples for step in timeline.steps(log.events)[1:]} == {8}

    def test_come_from_all_loaders_that_every_step_reads(self) -> None:
        log = Log().optimizer(1)
        for _ in range(4):
            log.data(1, n=8).data(1, n=4, key=1).forward(1, n=12).backward(1).optimizer(1)
        assert (last(log).samples, last(log).batches) == (12, 2)

    def test_or_from_what_the_busiest_root_was_given(self) -> None:
        log = Log().optimizer(1)
        log.forward(1, n=32, key=0).forward(1, n=32, key=0).forward(1, n=48, key=1)
        log.backward(1).optimizer(1)
        assert (last(log).samples, last(log).batches) == (64, 0)

    def test_what_a_model_made_was_counted_when_it_came_in(self) -> None:
        """A recurrent cell is called for every word; a head is given what a body has made."""
        log = Log().optimizer(1).forward(1, n=4, key=0)
        for _ in range(9):
            log.forward(1, n=-4, key=0)
        log.forward(1, n=-64, key=1).backward(1).optimizer(1)
        assert last(log).samples == 4

    def test_where_all_was_made_it_counts(self) -> None:
        """Of inputs that went through a parameter of the script's own first."""
        log = Log().optimizer(1).forward(1, n=-4).forward(1, n=-4).backward(1).optimizer(1)
        assert last(log).samples == 8

    def test_the_end_of_a_pass_is_no_batch(self) -> None:
        log = Log().optimizer(1).data(1, n=-1).data(1, n=8).forward(1).backward(1).optimizer(1)
        assert (last(log).samples, last(log).batches) == (8, 1)

    def test_the_training_loader_is_the_one_that_steps_are_made_on(self) -> None:
        """Also where a short run reads more to evaluate than to train."""
        log = Log()
        for number in range(4):
            log.data(1, n=8, key=0).forward(1).backward(1).optimizer(1)
            if number == 1:
                for _ in range(50):
                    log.data(1, n=8, key=1).no_grad(1)
        assert timeline.training_loader(log.events) == 0

    def test_without_steps_it_is_the_busiest(self) -> None:
        log = Log()
        for _ in range(3):
            log.data(1, n=8, key=4)
        for _ in range(5):
            log.data(1, n=-1, key=2)
        log.data(1, n=8, key=3)
        assert timeline.training_loader(log.events) == 4
        assert timeline.training_loader(Events()) is None


class TestLosses:
    def test_belong_to_the_step_of_their_backward_pass(self) -> None:
        log = training(3)
        begins = [i for i, kind in enumerate(log.events.kind) if kind == Kind.BACKWARD_BEGIN]
        losses = Losses(event=begins, value=[3.0, None, 1.0], not_finite=1)
        steps = timeline.steps(log.events, losses)
        assert [step.losses for step in steps] == [[3.0], [None], [1.0]]


class TestGpu:
    EDGES = (
        Kind.FORWARD_BEGIN,
        Kind.FORWARD_END,
        Kind.BACKWARD_BEGIN,
        Kind.BACKWARD_END,
        Kind.OPTIMIZER_BEGIN,
        Kind.OPTIMIZER_END,
    )

    def test_spans_are_on_its_own_clock(self) -> None:
        events = training(3).events
        gpu = on_gpu(events, *self.EDGES)
        doubled = GpuTimes(event=gpu.event, ms=[2 * value for value in gpu.ms])
        step = timeline.steps(events, gpu=doubled)[-1]
        assert step.gpu_seconds == pytest.approx(0.040)
        assert step.gpu_phases == pytest.approx(
            {
                Phase.DATA: 0.008,
                Phase.FORWARD: 0.010,
                Phase.BACKWARD: 0.016,
                Phase.OPTIMIZER: 0.006,
            }
        )

    def test_a_cpu_that_waits_for_it_in_a_copy_spends_its_time_on_the_passes(self) -> None:
        log = Log()
        for _ in range(2):
            log.copy(90).forward(4).backward(5).optimizer(1)
        edges = (Kind.COPY_BEGIN, Kind.COPY_END, *self.EDGES)
        marks = [index for index, kind in enumerate(log.events.kind) if kind in edges]
        took = [0.0, 1.0, 0.0, 30.0, 0.0, 60.0, 0.0, 9.0] * 2  # up to each mark, in milliseconds
        gpu = GpuTimes(event=marks, ms=list(accumulate(took)))
        step = timeline.steps(log.events, gpu=gpu)[-1]
        assert step.phases[Phase.COPY] == pytest.approx(0.090)
        assert step.gpu_phases == pytest.approx(
            {
                Phase.COPY: 0.001,
                Phase.FORWARD: 0.030,
                Phase.BACKWARD: 0.060,
                Phase.OPTIMIZER: 0.009,
            }
        )

    def test_a_span_belongs_to_the_innermost_call(self) -> None:
        log = Log().optimizer(1)
        with log.inside(Kind.OPTIMIZER_BEGIN):
            log.forward(5).backward(8).wait(3)
        step = timeline.steps(log.events, gpu=on_gpu(log.events, *self.EDGES))[-1]
        assert step.gpu_phases == pytest.approx(
            {Phase.FORWARD: 0.005, Phase.BACKWARD: 0.008, Phase.OPTIMIZER: 0.003}
        )

    def test_what_it_did_not_see_is_unknown(self) -> None:
        events = training(3).events
        step = timeline.steps(events, gpu=on_gpu(events, Kind.FORWARD_BEGIN))[-1]
        assert step.gpu_seconds is None
        assert step.gpu_phases == {}


class TestUnbalanced:
    def test_a_run_may_end_anywhere(self) -> None:
        events = training(4).events
        whole = timeline.steps(events)
        for length in range(len(events)):
            cut = Events(
                events.time_ns[:length],
                events.kind[:length],
                events.key[:length],
                events.n[:length],
            )
            steps = timeline.steps(cut)
            complete = cut.kind.count(Kind.OPTIMIZER_END)
            # Without one, backward passes are all there is to go by.
            assert len(steps) == (complete or cut.kind.count(Kind.BACKWARD_END))
            if complete:
                assert steps == whole[:complete]

    def test_an_optimizer_that_raised_does_not_own_what_follows(self) -> None:
        """Torch tells nobody when a step raises: its begin has no end."""
        log = training(3).mark(Kind.OPTIMIZER_BEGIN).wait(5)
        for _ in range(3):
            log.wait(10).step()
        steps = timeline.steps(log.events)
        assert len(steps) == 6
        assert ms(steps[-1])[Phase.REST] == 10
        assert ms(steps[-1])[Phase.OPTIMIZER] == 3

    def test_an_end_closes_what_was_left_open_inside_it(self) -> None:
        log = training(2)
        with log.inside(Kind.FORWARD_BEGIN):
            log.wait(1).mark(Kind.OPTIMIZER_BEGIN).wait(2)
        log.wait(10).data(1, 8).forward(1).backward(1).optimizer(1).wait(7).step()
        assert ms(last(log))[Phase.REST] == 7

    def test_an_end_without_a_begin_is_nothing(self) -> None:
        log = training(2).mark(Kind.FORWARD_END).wait(5)
        log.data(1, 8).forward(1).backward(1).optimizer(1)
        assert ms(last(log))[Phase.REST] == 5


def random_log(rng: random.Random) -> Log:
    """Well-nested calls of every kind, in no order that a training loop would have."""
    log = Log()
    begins = [kind for kind in Kind if kind % 2 == 0]

    def some(depth: int) -> None:
        for _ in range(rng.randint(0, 4)):
            log.wait(rng.choice([0, 0.001, rng.random() * 10]))
            begin = rng.choice(begins)
            samples = rng.randint(-1 if begin == Kind.DATA_BEGIN else 0, 64)
            with log.inside(begin, rng.randint(0, 2), samples):
                log.wait(rng.random())
                if depth:
                    some(depth - 1)

    for _ in range(rng.randint(1, 12)):
        some(rng.randint(0, 3))
    return log


def without(events: Events, lost: set[int]) -> Events:
    kept = [index for index in range(len(events)) if index not in lost]
    columns = (events.time_ns, events.kind, events.key, events.n)
    return Events(*([column[index] for index in kept] for column in columns))


@pytest.mark.parametrize("seed", range(60))
def test_phases_add_up_to_the_step(seed: int) -> None:
    rng = random.Random(seed)
    events = random_log(rng).events
    for lost in (set(), set(rng.sample(range(len(events)), len(events) // 5))):
        seen = without(events, lost)
        steps = timeline.steps(seen)
        for step in steps:
            assert all(seconds >= 0 for seconds in step.phases.values())
            parts = [step.phases.get(phase, 0.0) for phase in timeline.STEP_PHASES]
            assert sum(parts) == step.seconds >= 0
            assert step.samples >= 0
        if steps:
            ends = timeline.step_ends(seen)
            passed = (seen.time_ns[ends[-1]] - seen.time_ns[0]) / 1e9
            told = sum(step.seconds + step.evaluation for step in steps)
            assert told == pytest.approx(passed, rel=1e-9, abs=1e-12)

"""Updates as graphs. Where there is no GPU another recorder stands in for CUDA's."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hotloop.levers import capturing, replaying
from hotloop.levers.base import MUCH_FASTER
from hotloop.levers.fused_optimizer import FusedOptimizer
from hotloop.levers.replaying import BareRecorder, Replays
from hotloop.levers.update_graph import UpdateGraph
from hotloop.measurement import Software
from tests import builders

KINDS = [
    ("AdamW", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("RMSprop", {"maximize": True}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("ASGD", {"t0": 4}),
    ("Rprop", {}),
]
KEEPING = [(kind, options) for kind, options in KINDS if kind != "SGD" or options]
"""Those that keep something from one update to the next."""
UNFUSED = [(kind, options) for kind, options in KINDS if kind in capturing.UNFUSED]
STEPS = 12


def firsts(kind: str) -> int:
    """Updates before one can be replayed. All but SGD have no state before their first: the second
    is the first to be met."""
    return 1 if kind == "SGD" else 2


@dataclass
class UpdateGraphOnCpu(UpdateGraph):
    """With a recorder that needs no GPU."""

    fails: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fake: Any = None

    def recorder(self, optimizer: Any) -> Any:
        from tests.levers.recorder import RecorderOnCpu

        self.fake = self.fake or RecorderOnCpu(self.fails)
        return self.fake


class Script:
    """Weights that lie still, as they do, and gradients that are written where they lay."""

    def __init__(self, torch: Any, kind: str = "AdamW", **options: Any) -> None:
        torch.manual_seed(0)
        self.torch = torch
        self.parameters = [torch.nn.Parameter(torch.randn(3, 4)) for _ in range(4)]
        self.gradients = [torch.empty(3, 4) for _ in self.parameters]
        groups = [{"params": self.parameters[:2]}, {"params": self.parameters[2:], "lr": 0.02}]
        self.optimizer = getattr(torch.optim, kind)(groups, lr=0.01, **options)
        self.norms: list[Any] = []

    def prepare(self, elsewhere: bool = False) -> None:
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            gradient.copy_((parameter.detach() * 3).cos())
            parameter.grad = gradient.clone() if elsewhere else gradient

    def step(self, clip: float | None = None, elsewhere: bool = False) -> None:
        self.prepare(elsewhere)
        if clip is not None:
            norm = self.torch.nn.utils.clip_grad_norm_(iter(self.parameters), clip)
            self.norms.append(norm)
        self.optimizer.step()

    def train(self, steps: int = STEPS, **how: Any) -> list[list[float]]:
        for _ in range(steps):
            self.step(**how)
        return [p.flatten().tolist() for p in self.parameters]


def same(one: list[list[float]], other: list[list[float]]) -> bool:
    """But for rounding, which is all there is of a number that is nearly zero."""
    return all(a == pytest.approx(b, rel=1e-5, abs=1e-6) for a, b in zip(one, other, strict=True))


def trained_the_same(jobs: Any, train: Callable[[], list[list[float]]]) -> UpdateGraphOnCpu:
    """The lever, under which it did."""
    plain = train()
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        assert same(train(), plain)
    return lever


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_the_same_training(jobs: Any, torch: Any, kind: str, options: dict[str, Any]) -> None:
    plain = Script(torch, kind, **options).train()
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        assert same(Script(torch, kind, **options).train(), plain)
    receipt = lever.receipt()
    assert receipt.applied
    others = firsts(kind)
    assert receipt.evidence == {"updates": STEPS - others, "clips": 0, "as_they_are": others}
    assert lever.fake.recorded == 1


def test_clipping_too_and_its_norm_is_the_scripts_own(jobs: Any, torch: Any) -> None:
    plain = Script(torch)
    weights = plain.train(clip=0.5)
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        planned = Script(torch)
        assert same(planned.train(clip=0.5), weights)
    assert [float(norm) for norm in planned.norms] == pytest.approx(
        [float(norm) for norm in plain.norms], rel=1e-5
    )
    # It learns of the optimizer, and of the device, when that steps first.
    assert lever.receipt().evidence["clips"] == STEPS - 2


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_schedule_goes_on_changing_the_rate(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def train() -> Any:
        script = Script(torch, kind, **options)
        schedule = torch.optim.lr_scheduler.ExponentialLR(script.optimizer, 0.7)
        for _ in range(STEPS):
            script.step()
            schedule.step()
        return script

    plain = train()
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        planned = train()
    assert same(planned.train(0), plain.train(0))
    assert lever.receipt().evidence["updates"] == STEPS - firsts(kind)
    rates = [group["lr"] for group in planned.optimizer.param_groups]
    assert rates == [group["lr"] for group in plain.optimizer.param_groups]
    assert all(isinstance(rate, float) for rate in rates)


@pytest.mark.parametrize(("kind", "options"), UNFUSED)
def test_a_rate_that_begins_at_zero(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    """Some divide by it, on the device."""

    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        for step in range(STEPS):
            script.optimizer.param_groups[0]["lr"] = max(0, step - 5) / 100
            script.step()
        return script.train(0)

    assert trained_the_same(jobs, train).receipt().applied


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_any_other_setting_that_changes_makes_another_graph(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        script.train()
        script.optimizer.param_groups[0]["maximize"] ^= True
        return script.train()

    lever = trained_the_same(jobs, train)
    assert lever.fake.recorded == 2
    assert lever.receipt().evidence["as_they_are"] == firsts(kind) + 1


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_gradients_that_always_lie_elsewhere_are_copied(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        kept = []
        for step in range(30):
            if step == 20:
                script.optimizer.param_groups[0]["lr"] = 0.05
            script.step(elsewhere=True)
            kept.append([p.grad for p in script.parameters])  # so that no place comes again
        return script.train(0)

    lever = trained_the_same(jobs, train)
    others = 4 + firsts(kind)
    assert lever.receipt().evidence == {"updates": 30 - others, "clips": 0, "as_they_are": others}
    assert lever.fake.recorded == 1


def test_gradients_that_lie_elsewhere_at_two_steps_of_three(jobs: Any, torch: Any) -> None:
    """As where a script keeps a little of each step: places come again, but seldom."""

    def train() -> list[list[float]]:
        script = Script(torch)
        kept = []
        for step in range(40):
            script.step(elsewhere=step % 3 > 0)
            kept.append([p.grad for p in script.parameters])
        return script.train(0)

    receipt = trained_the_same(jobs, train).receipt()
    assert int(receipt.evidence["as_they_are"]) < 15


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_short_run_says_so(jobs: Any, torch: Any, steps: int) -> None:
    lever = trained_the_same(jobs, lambda: Script(torch).train(steps))
    receipt = lever.receipt()
    assert receipt.applied is (steps > 2)
    assert receipt.applied or receipt.reason == "there were too few steps to record one"


@pytest.mark.parametrize("steps", [8, 9, 10])
@pytest.mark.parametrize("moving", [3, 5, 7])
@pytest.mark.parametrize("unused", [False, True], ids=["all", "all but one"])
def test_in_a_soak_it_is_seen_to_take_effect(
    jobs: Any, torch: Any, steps: int, moving: int, unused: bool
) -> None:
    """Whose few steps meet all that there is: gradients that lie elsewhere until the passes are
    recorded, too, a checkpoint that is loaded, and a short batch that may not need all weights."""

    def train() -> list[list[float]]:
        script = Script(torch, "Adadelta")
        kept = []
        for step in range(steps):
            if step == 5:
                script.optimizer.load_state_dict(copy.deepcopy(script.optimizer.state_dict()))
            script.prepare(elsewhere=step < moving)
            if unused and step == 6:
                script.parameters[1].grad = None
            kept.append([p.grad for p in script.parameters])
            script.optimizer.step()
        return script.train(0)

    receipt = trained_the_same(jobs, train).receipt()
    assert receipt.applied, (receipt.reason, receipt.evidence)


def test_fewer_gradients_than_are_copied_are_taken_as_they_are(jobs: Any, torch: Any) -> None:
    def train() -> list[list[float]]:
        script = Script(torch)
        kept = []
        for step in range(40):
            for parameter in script.parameters:
                parameter.grad = (parameter.detach() * 3).cos()
            if step == 30:
                script.parameters[1].grad = None
            kept.append([p.grad for p in script.parameters])
            script.optimizer.step()
        return script.train(0)

    lever = trained_the_same(jobs, train)
    assert lever.receipt().evidence["as_they_are"] == 7


def test_others_than_those_that_were_copied_first_are_copied_too(jobs: Any, torch: Any) -> None:
    """As where a head is trained first, and then all of it."""

    def train() -> list[list[float]]:
        script = Script(torch)
        kept = []
        for step in range(60):
            for parameter in script.parameters[: 2 if step < 20 else 4]:
                parameter.grad = (parameter.detach() * 3).cos()
            kept.append([p.grad for p in script.parameters])
            script.optimizer.step()
        return script.train(0)

    lever = trained_the_same(jobs, train)
    assert lever.fake.recorded == 2
    assert int(lever.receipt().evidence["as_they_are"]) < 10


def test_after_a_long_time_in_one_place_gradients_move(jobs: Any, torch: Any) -> None:
    def train() -> list[list[float]]:
        script = Script(torch)
        kept = []
        for step in range(400):
            script.step(elsewhere=step >= 300)
            kept.append([p.grad for p in script.parameters])
        return script.train(0)

    evidence = trained_the_same(jobs, train).receipt().evidence
    assert int(evidence["as_they_are"]) < 10


def test_without_room_for_copies_the_training_goes_on(
    jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch)
        kept = []
        for _ in range(20):
            script.step(elsewhere=True)
            kept.append([p.grad for p in script.parameters])
        return script.train(0)

    plain = train()
    lever = UpdateGraphOnCpu()

    def full(tensor: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with jobs.under(lever):
        monkeypatch.setattr(torch, "empty_like", full)
        assert same(train(), plain)
    assert not lever.receipt().applied


def test_settings_that_change_at_every_step(jobs: Any, torch: Any) -> None:
    def train() -> list[list[float]]:
        script = Script(torch)
        for step in range(STEPS):
            script.optimizer.param_groups[0]["betas"] = [0.9, 0.9 + step / 1000]
            script.step()
        return script.train(0)

    lever = trained_the_same(jobs, train)
    receipt = lever.receipt()
    assert not receipt.applied
    assert receipt.reason == "the optimizer's settings or gradients are others at most steps"


@pytest.mark.parametrize(("kind", "options"), KEEPING)
def test_state_from_a_checkpoint_is_where_it_goes_on(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        script.train()
        saved = copy.deepcopy(script.optimizer.state_dict())
        script.train()
        script.optimizer.load_state_dict(saved)
        return script.train()

    lever = trained_the_same(jobs, train)
    assert lever.fake.recorded == 2


def kept(saved: dict[str, Any]) -> list[dict[str, Any]]:
    """What a checkpoint says of what it keeps, but for the numbers."""
    states = saved["state"].values()
    return [{name: (x.device, x.dtype, x.shape) for name, x in each.items()} for each in states]


@pytest.mark.parametrize(("kind", "options"), KEEPING)
def test_a_checkpoint_is_the_plain_jobs(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def saved() -> dict[str, Any]:
        script = Script(torch, kind, **options)
        script.train()
        made: dict[str, Any] = script.optimizer.state_dict()
        return made

    plain = saved()
    with jobs.under(lever := UpdateGraphOnCpu()):
        planned = saved()
    assert lever.receipt().applied
    assert planned["param_groups"] == plain["param_groups"]
    assert kept(planned) == kept(plain)
    counts = [state.get("step") for state in planned["state"].values()]
    assert counts == [state.get("step") for state in plain["state"].values()]


def test_steps_are_counted_where_the_parameters_are(torch: Any) -> None:
    """Where a first update, or a checkpoint, has left the count on the host."""
    weight = torch.nn.Parameter(torch.ones(2, device="meta"))
    optimizer = torch.optim.RMSprop([weight])
    optimizer.state[weight]["step"] = torch.tensor(3.0)
    capturing.make_ready(torch, optimizer, again=False)
    assert optimizer.state[weight]["step"].device == weight.device


def test_a_closure_is_called_once_and_its_loss_handed_back(jobs: Any, torch: Any) -> None:
    def train() -> tuple[list[float], list[list[float]]]:
        script = Script(torch, "SGD")
        losses = []

        def closure() -> Any:
            loss = sum((p * p).sum() for p in script.parameters)
            found = torch.autograd.grad(loss, script.parameters)
            for parameter, gradient, place in zip(
                script.parameters, found, script.gradients, strict=True
            ):
                parameter.grad = place.copy_(gradient)
            return loss

        for _ in range(STEPS):
            losses.append(script.optimizer.step(closure).item())
        return losses, script.train(0)

    plain = train()
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        planned = train()
    assert planned[0] == pytest.approx(plain[0], rel=1e-5)
    assert same(planned[1], plain[1])
    assert lever.receipt().applied


def test_under_a_scaler_updates_run_as_they_are(jobs: Any, torch: Any) -> None:
    def train() -> list[list[float]]:
        script = Script(torch)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=5)
        for _ in range(STEPS):
            script.optimizer.zero_grad()
            scaler.scale(sum((p * p).sum() for p in script.parameters)).backward()
            scaler.step(script.optimizer)
            scaler.update()
        return script.train(0)

    lever = trained_the_same(jobs, train)
    assert not lever.receipt().applied
    assert not lever.fake.recorded


@pytest.mark.parametrize(("kind", "options"), UNFUSED)
def test_a_scaler_that_waits_before_it_steps(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    """Without a fused kernel the scaler itself unscales, asks, and then steps as any script."""

    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=5)
        for step in range(STEPS):
            for parameter, gradient in zip(script.parameters, script.gradients, strict=True):
                gradient.copy_((parameter.detach() * 3).cos() * scaler.get_scale())
                parameter.grad = gradient.mul_(float("inf")) if step == 7 else gradient
            scaler.scale(torch.zeros(()))
            scaler.step(script.optimizer)
            scaler.update()
        return script.train(0)

    assert trained_the_same(jobs, train).receipt().evidence["updates"] == STEPS - 1 - firsts(kind)


def test_beside_fused_optimizer_and_one_that_the_script_has_fused(jobs: Any, torch: Any) -> None:
    plain = Script(torch).train()
    both = FusedOptimizer(), UpdateGraphOnCpu()
    with jobs.under(*both):
        assert same(Script(torch).train(), plain)
    assert all(lever.receipt().applied for lever in both)
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        assert same(Script(torch, fused=True).train(), plain)
    assert lever.receipt().applied


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_group_that_is_added_later(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        script.train()
        late = torch.nn.Parameter(torch.ones(3, 4))
        script.optimizer.add_param_group({"params": [late], "lr": 0.5})
        script.parameters.append(late)
        script.gradients.append(torch.empty(3, 4))
        return script.train()

    lever = trained_the_same(jobs, train)
    assert lever.fake.recorded == 2


@pytest.mark.parametrize(("kind", "options"), UNFUSED)
@pytest.mark.parametrize("choice", ["foreach", "differentiable"])
def test_a_later_group_for_which_the_script_has_chosen(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any], choice: str
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        script.train()
        late = torch.nn.Parameter(torch.ones(3, 4))
        script.optimizer.add_param_group({"params": [late], choice: True})
        script.parameters.append(late)
        script.gradients.append(torch.empty(3, 4))
        return script.train() if choice == "foreach" else []

    lever = trained_the_same(jobs, train)
    assert lever.fake.recorded == 1


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_group_that_is_taken_away(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        script.train()
        del script.optimizer.param_groups[0]
        return script.train()

    lever = trained_the_same(jobs, train)
    assert lever.receipt().applied


def test_what_it_leaves_alone(jobs: Any, torch: Any) -> None:
    class Mine(torch.optim.SGD):  # type: ignore[misc]
        pass

    def reason(lever: UpdateGraph, optimizer: Any) -> str:
        with jobs.under(lever):
            optimizer.step()
        assert not lever.receipt().applied
        return lever.receipt().reason

    weight = torch.nn.Parameter(torch.ones(2))
    adam, optim = torch.optim.Adam, torch.optim
    assert reason(UpdateGraph(), adam([weight])) == "the script's Adam is not on one GPU"
    capture = "cannot be captured in a graph"
    for kind in ("Adagrad", "Adamax", "NAdam", "RAdam"):
        optimizer = getattr(optim, kind)([weight])
        assert reason(UpdateGraphOnCpu(), optimizer) == f"the script's {kind} {capture}"
    assert reason(UpdateGraphOnCpu(), Mine([weight], lr=0.1)) == f"the script's Mine {capture}"
    chosen = reason(UpdateGraphOnCpu(), adam([weight], foreach=True))
    assert chosen == "the script's Adam has an implementation that the script has chosen itself"
    double = adam([torch.nn.Parameter(torch.ones(2, dtype=torch.float64))])
    assert "float64" in reason(UpdateGraphOnCpu(), double)
    rate = adam([weight], lr=torch.tensor(0.1), capturable=True)
    assert reason(UpdateGraphOnCpu(), rate) == "the script's Adam has a tensor for a learning rate"


@pytest.mark.parametrize("kind", capturing.UNFUSED)
def test_what_it_leaves_alone_of_those_without_a_fused_kernel(
    jobs: Any, torch: Any, kind: str
) -> None:
    def reason(weight: Any, **options: Any) -> str:
        weight = torch.nn.Parameter(weight)
        weight.grad = torch.ones_like(weight)
        if options.get("differentiable"):
            weight.requires_grad_(False)
        optimizer = getattr(torch.optim, kind)([weight], **options)
        settings = {**optimizer.param_groups[0]}
        lever = UpdateGraphOnCpu()
        with jobs.under(lever):
            for _ in range(4):
                optimizer.step()
        assert {**optimizer.param_groups[0]} == settings
        assert not lever.receipt().applied
        return lever.receipt().reason.removeprefix(f"the script's {kind} has ")

    chosen = "an implementation that the script has chosen itself"
    assert reason(torch.ones(2), foreach=True) == chosen
    assert reason(torch.ones(2), foreach=False) == chosen
    assert reason(torch.ones(2), differentiable=True) == chosen
    assert reason(torch.ones(2), lr=torch.tensor(0.1)) == "a tensor for a learning rate"
    assert reason(torch.ones(2, dtype=torch.complex64)) == "parameters that are not real numbers"
    assert reason(torch.ones(4, 4)[:, :2]).startswith("parameters with gaps")
    assert reason(torch.ones(2, dtype=torch.float64)).startswith("parameters in float64")
    assert reason(torch.ones(2, dtype=torch.float16)).startswith("parameters in float16")


@pytest.mark.parametrize(("kind", "options"), UNFUSED)
def test_one_that_the_script_means_to_capture_itself(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    from tests.levers.recorder import capturable_on_cpu

    def train() -> list[list[float]]:
        script = Script(torch, kind, capturable=True, **options)
        weights = script.train()
        assert all(group["capturable"] for group in script.optimizer.state_dict()["param_groups"])
        return weights

    with capturable_on_cpu():
        assert trained_the_same(jobs, train).receipt().applied


@pytest.mark.parametrize(("kind", "options"), UNFUSED)
def test_weights_in_bfloat16(jobs: Any, torch: Any, kind: str, options: dict[str, Any]) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        for parameter in script.parameters:
            parameter.data = parameter.data.bfloat16()
        script.gradients = [each.bfloat16() for each in script.gradients]
        return script.train(5)  # before roundings add up

    plain = train()
    with jobs.under(lever := UpdateGraphOnCpu()):
        planned = train()
    assert lever.receipt().applied
    for one, other in zip(planned, plain, strict=True):
        assert one == pytest.approx(other, rel=0.02, abs=0.02)


def test_what_cannot_be_recorded_runs_as_it_is(jobs: Any, torch: Any) -> None:
    plain = Script(torch).train(clip=0.5)
    lever = UpdateGraphOnCpu(fails="operation not permitted\nand more")
    with jobs.under(lever):
        assert same(Script(torch).train(clip=0.5), plain)
    assert lever.receipt().reason == "it cannot be captured: operation not permitted"


def test_torch_is_left_as_it_was_and_optimizers_keep_their_hooks(jobs: Any, torch: Any) -> None:
    kinds = [getattr(torch.optim, kind) for kind in capturing.KINDS]
    told: list[Any] = []
    with jobs.under(UpdateGraphOnCpu()):
        pass  # torch may not have hooked them yet
    before = [kind.step for kind in kinds]
    with jobs.under(UpdateGraphOnCpu()):
        scripts = [Script(torch, kind.__name__) for kind in kinds]
        for script in scripts:
            script.optimizer.register_step_post_hook(lambda *args: told.append("after"))
            script.step()
    assert [kind.step for kind in kinds] == before
    for script in scripts:
        script.step()
    assert len(told) == 2 * len(kinds)


def test_hooks_hear_of_every_step(jobs: Any, torch: Any) -> None:
    told: list[Any] = []
    with jobs.under(UpdateGraphOnCpu()):
        script = Script(torch)
        script.optimizer.register_step_post_hook(lambda *args: told.append("after"))
        script.train()
    assert len(told) == STEPS


def test_only_a_few_graphs_are_kept(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.levers.recorder import RecorderOnCpu

    monkeypatch.setattr(replaying, "MOST", 6)
    recorder = RecorderOnCpu()
    replays = Replays(recorder)
    for place in range(5):
        for _ in range(2):
            replays.run(place, lambda: None, lambda: None)
    assert recorder.recorded == 5
    replays.run(4, lambda: None, lambda: None)
    assert recorder.recorded == 5  # it is still there
    replays.run(0, lambda: None, lambda: None)
    assert recorder.recorded == 6  # it had been given up
    replays.run(1, lambda: None, lambda: None)
    assert recorder.recorded == 6  # there were too many


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_state_that_is_made_anew(jobs: Any, torch: Any, kind: str, options: dict[str, Any]) -> None:
    """A first update makes the state: replayed, each would be a first one."""

    def train() -> list[list[float]]:
        script = Script(torch, kind, **options)
        for _ in range(4):
            script.train(6)
            script.optimizer.state.clear()
        return script.train(6)

    trained_the_same(jobs, train)


def test_a_weight_of_another_shape_in_the_same_place(jobs: Any, torch: Any) -> None:
    """As where rows are pruned, and memory is handed out again."""

    def train() -> list[list[float]]:
        memory, slopes = torch.ones(6, 4), torch.empty(6, 4)
        weight = torch.nn.Parameter(memory[:4])
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for rows in (4, 6, 2):
            weight.grad = None
            weight.data = memory[:rows]
            for _ in range(8):
                slopes.copy_(memory.cos())
                weight.grad = slopes[:rows]
                optimizer.step()
        return [memory.flatten().tolist()]

    lever = trained_the_same(jobs, train)
    assert lever.fake.recorded == 3


def test_settings_that_are_tensors_may_change_unnoticed(jobs: Any, torch: Any) -> None:
    def train() -> list[list[float]]:
        script = Script(torch, "SGD", weight_decay=torch.tensor(0.1))
        script.train()
        script.optimizer.param_groups[0]["weight_decay"].fill_(0.5)
        return script.train()

    lever = trained_the_same(jobs, train)
    assert not lever.receipt().applied


def test_settings_without_a_hash(jobs: Any, torch: Any) -> None:
    class Norm(float):
        __hash__ = None  # type: ignore[assignment]

    plain = Script(torch).train(clip=0.5)
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        assert same(Script(torch).train(clip=Norm(0.5)), plain)
    assert lever.receipt().evidence["clips"] == 0


def test_autograd_hears_of_what_a_replay_has_changed(jobs: Any, torch: Any) -> None:
    with jobs.under(UpdateGraphOnCpu()):
        script = Script(torch)
        script.train(clip=0.5)
        weight = script.parameters[0]
        loss = (weight * weight).sum()
        versions = weight._version, weight.grad._version
        script.step(clip=0.5)
        assert weight._version > versions[0]
        assert weight.grad._version > versions[1] + 1  # the first is the script's own writing
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_copies_hold_on_to_no_graph(jobs: Any, torch: Any) -> None:
    alive: list[weakref.ref[Any]] = []
    with jobs.under(lever := UpdateGraphOnCpu()):
        script = Script(torch, "SGD")
        for _ in range(20):
            loss = sum((p**3).sum() for p in script.parameters)
            found = torch.autograd.grad(loss, script.parameters, create_graph=True)
            for parameter, gradient in zip(script.parameters, found, strict=True):
                parameter.grad = gradient.clone()
            alive.append(weakref.ref(loss))
            script.optimizer.step()
        for parameter in script.parameters:
            parameter.grad = None
        del loss, found, gradient
        gc.collect()
    assert lever.receipt().applied
    assert not any(one() is not None for one in alive)


@pytest.mark.parametrize(("kind", "options"), KEEPING)
def test_a_parameter_that_joins_in_later(
    jobs: Any, torch: Any, kind: str, options: dict[str, Any]
) -> None:
    """Fused SGD knows no first step of some, and a graph none at all."""

    def train(*levers: Any) -> list[list[float]]:
        with jobs.under(*levers):
            script = Script(torch, kind, **options)
            script.train()
            del script.optimizer.state[script.parameters[1]]
            return script.train()

    plain = train()
    assert same(train(UpdateGraphOnCpu()), plain)
    assert same(train(FusedOptimizer()), plain)


def test_nothing_is_done_inside_somebody_elses_recording(jobs: Any, torch: Any) -> None:
    plain = Script(torch).train(2 * STEPS, clip=0.5)
    lever = UpdateGraphOnCpu()
    with jobs.under(lever):
        script = Script(torch)
        script.train(clip=0.5)
        replayed = lever._tallies[0].replayed
        lever.fake.is_free = False
        assert same(script.train(clip=0.5), plain)
    assert replayed == lever._tallies[0].replayed > 0


def test_places_that_change_now_and_then(jobs: Any, torch: Any) -> None:
    """Before all recordings are used up, gradients are copied; buffers are made once."""
    with jobs.under(lever := UpdateGraphOnCpu()):
        script = Script(torch)
        kept = []
        for _ in range(20):
            script.gradients = [torch.empty(3, 4) for _ in script.parameters]
            kept.append(script.gradients)
            script.train(20)
    assert lever.fake.recorded == 9
    assert int(lever.receipt().evidence["updates"]) > 380


def test_steps_without_gradients_are_not_recorded(jobs: Any, torch: Any) -> None:
    with jobs.under(lever := UpdateGraphOnCpu()):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
        for _ in range(STEPS):
            optimizer.step()
    assert lever.fake.recorded == 0


def seen(jobs: Any, share: float = 0.2, idle: float = 0.4, **more: Any) -> Any:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    return replace(jobs.seen(measurement=on_gpu, **more), gpu_idle=idle)


def test_it_is_offered_where_a_gpu_waits(jobs: Any) -> None:
    assert UpdateGraph.expected(jobs.seen()).reason == "CUDA graphs need a GPU"
    assert UpdateGraph.expected(seen(jobs)).worth_from == 1
    assert UpdateGraph.expected(seen(jobs, idle=0.0)).worth_from == MUCH_FASTER
    assert UpdateGraph.expected(seen(jobs, optimizers=[])).reason == "no optimizer steps"


def test_it_is_offered_to_optimizers_that_can_be_captured(jobs: Any) -> None:
    for kind in capturing.KINDS:
        optimizers = [builders.optimizer(name=kind)]
        assert not UpdateGraph.expected(seen(jobs, optimizers=optimizers)).reason
    others = [builders.optimizer(name="RAdam")]
    refused = UpdateGraph.expected(seen(jobs, optimizers=others))
    assert refused.reason == "RAdam cannot be captured in a graph"


@pytest.mark.gpu
@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_on_a_gpu(jobs: Any, torch: Any, kind: str, options: dict[str, Any], keeps: bool) -> None:
    """`keeps`: what the script holds on to pushes its gradients to other places."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    def train() -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(8))).cuda()
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, **options)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        x = torch.randn(4, 16, device="cuda")
        norms = []
        for _ in range(30):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            norms.append(norm if keeps else norm.item())
            optimizer.step()
            schedule.step()
        return [*norms, *(p.detach() for p in model.parameters())]

    plain = train()
    lever = UpdateGraph()
    with jobs.under(lever):
        planned = train()
    torch.testing.assert_close(plain, planned, rtol=1e-4, atol=1e-5)
    assert lever.receipt().applied
    recorder = BareRecorder(torch, plain[-1].device)
    assert recorder.bears(plain[-1])
    assert not recorder.bears(plain[-1].cpu())


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "options"), KEEPING)
def test_state_on_a_gpu(jobs: Any, torch: Any, kind: str, options: dict[str, Any]) -> None:
    """It is saved as a plain job's, loaded in the midst of training, and made anew for one."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    def train() -> tuple[list[Any], Any]:
        torch.manual_seed(0)
        weights = [torch.nn.Parameter(torch.randn(3, 4, device="cuda")) for _ in range(4)]
        slopes = [torch.empty_like(weight) for weight in weights]
        optimizer = getattr(torch.optim, kind)(weights, lr=0.01, **options)

        def steps() -> None:
            for _ in range(STEPS):
                for weight, slope in zip(weights, slopes, strict=True):
                    weight.grad = slope.copy_((weight.detach() * 3).cos())
                optimizer.step()

        steps()
        saved = copy.deepcopy(optimizer.state_dict())
        steps()
        optimizer.load_state_dict(saved)
        steps()
        del optimizer.state[weights[1]]
        steps()
        return [weight.detach() for weight in weights], (kept(saved), saved["param_groups"])

    weights, saved = train()
    lever = UpdateGraph()
    with jobs.under(lever):
        planned = train()
    torch.testing.assert_close(planned[0], weights, rtol=1e-4, atol=1e-5)
    assert planned[1] == saved
    assert lever.receipt().applied
    assert int(lever.receipt().evidence["updates"]) >= 4 * STEPS - 8

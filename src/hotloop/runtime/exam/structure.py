"""What the training consists of: its batches, its steps and the settings of every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import get_ident
from typing import Any

from hotloop.evidence import Given, SettingSeen, StepSeen, Structure
from hotloop.runtime.exam.checksums import RowSums, checksum
from hotloop.runtime.marks import sample
from hotloop.runtime.probes import samples
from hotloop.runtime.probes.clock import Numbers
from hotloop.seams import Seams

# How an optimizer computes its update, which is for a plan to choose, not what it computes.
IMPLEMENTATION = frozenset({"params", "fused", "foreach", "capturable", "differentiable"})


class StructureProbe:
    """Tells `stepped(optimizer, number)` of every step, also of one that a scaler skipped."""

    def __init__(
        self,
        torch: Any,
        numbers: dict[str, Numbers],
        stepped: Callable[[Any, int], None],
        at_once: bool = False,
    ) -> None:
        """`at_once`: also of a model's calls before the first backward pass."""
        self.structure = Structure()
        self._learns = at_once
        """Whether calls of models count: which of the first are seen depends on the plan."""
        self._torch = torch
        self._thread = get_ident()
        self._numbers = numbers
        self._stepped = stepped
        self._settings: dict[tuple[int, int], dict[str, str]] = {}
        self._before: list[Any] = []
        self._last: dict[int, tuple[int, list[Any]]] = {}
        """Of every optimizer: which was its last step, and the weights before it."""
        self._has_optimizer = False
        self._by_hand: _ByHand | None = None
        self._passes = self._clips = 0
        self._inside_model = False
        self._by_step: RowSums | None = None
        self._scaled: list[bool] = []
        """For every scaler's step that is going on: whether an optimizer has stepped in it."""

    def attach(self, seams: Seams) -> None:
        seams.loop.after.append(self._own_loop)
        seams.optimizer.before.append(self._build)
        seams.batch.after.append(self._batch)
        seams.model.before.append(self._call)
        seams.model.after.append(self._called)
        seams.backward.after.append(self._differentiated)
        seams.grad.after.append(self._differentiated)
        seams.clip.after.append(self._clipped)
        seams.scaler_step.before.append(self._scaler_steps)
        seams.scaler_step.after.append(self._scaler_stepped)
        seams.step.before.append(self._steps)
        seams.step.after.append(self._has_stepped)

    @property
    def steps(self) -> int:
        return len(self.structure.steps)

    def _own_loop(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """A batch may be taken apart in another way than it is now, and be the same batch."""
        self._by_step = RowSums(self._torch)

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._has_optimizer = True

    def _batch(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        """How far a thread that loads ahead has come is chance: what counts is what models get."""
        if batch is not None and get_ident() == self._thread:
            self._give(f"loader {getattr(args[0], '_hotloop_loader', 0)}", batch)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._inside_model = True
        if self._learns and self._torch.is_grad_enabled():
            if self._passes and not self._has_optimizer:
                self._update_by_hand(args[0])
            self._give_model(f"model {self._numbers['model'].of(args[0])}", args[1:], kwargs)

    def _called(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._inside_model = False

    def _give_model(self, model: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Each argument by itself: beside the data there may be a state that the model has made."""
        named = {f"{place + 1}": value for place, value in enumerate(args)} | kwargs
        batches = {name: value for name, value in named.items() if samples.count(value)}
        for name, value in batches.items():
            stream = model if len(named) == 1 else f"{model}, argument {name}"
            self._give(stream, value)
            if self._by_step is not None:
                self._by_step.add(stream, value)

    def _give(self, stream: str, what: Any) -> None:
        given = Given(stream, self.steps, samples.count(what), checksum(self._torch, what))
        self.structure.given.append(given)

    def _differentiated(self, args: Any, result: Any, began: int) -> None:
        """Passes of the job itself: not inside a model, where torch compiles or recomputes."""
        if not self._inside_model and self._torch._C._current_graph_task_id() == -1:
            self._passes += 1
            self._learns = True

    def _clipped(self, args: Any, result: Any, began: int) -> None:
        self._clips += 1

    def _scaler_steps(self, args: Any, kwargs: Any) -> None:
        self._scaled.append(False)

    def _scaler_stepped(self, args: Any, result: Any, began: int) -> None:
        if not self._scaled.pop():
            self._note(args[1], taken=False, moved=False)

    def _steps(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._before = sample(args[0])
        number = self._numbers["optimizer"].of(args[0])
        if number in self._last:
            place, before = self._last[number]
            if before == self._before:  # somebody has undone what that step changed
                steps = self.structure.steps
                steps[place] = replace(steps[place], moved=False)

    def _has_stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        optimizer = args[0]
        self._scaled = [True] * len(self._scaled)
        moved = sample(optimizer) != self._before
        self._last[self._numbers["optimizer"].of(optimizer)] = self.steps, self._before
        # A fused kernel is handed what the scaler found, and skips the step by itself.
        overflow = getattr(optimizer, "found_inf", None)
        self._note(optimizer, taken=not (overflow is not None and float(overflow)), moved=moved)

    def _update_by_hand(self, model: Any) -> None:
        """The script itself changes the weights, at the latest before it calls the model again."""
        if self._by_hand is None:
            self._by_hand = _ByHand(model)
        now = sample(self._by_hand)
        moved, self._before = now != self._before, now
        self._note(self._by_hand, taken=True, moved=moved)

    def _note(self, optimizer: Any, taken: bool, moved: bool) -> None:
        number = self._numbers["optimizer"].of(optimizer)
        self._note_settings(optimizer, number)
        self.structure.steps.append(StepSeen(number, taken, moved, self._passes, self._clips))
        self._passes = self._clips = 0
        self._note_by_step()
        self._stepped(optimizer, number)

    def _note_by_step(self) -> None:
        """Not of the first step: models are found when it is first differentiated, which in passes
        of another size is another part of it."""
        if self._by_step is None:
            return
        done, step = self._by_step.taken(), self.steps - 1
        if step:
            self.structure.by_step.extend(Given(s, step, n, c) for s, n, c in done)

    def _note_settings(self, optimizer: Any, number: int) -> None:
        for place, group in enumerate(optimizer.param_groups):
            known = self._settings.setdefault((number, place), {})
            now = {name: _text(value) for name, value in group.items()}
            now["parameters"] = str(len(group["params"]))
            for name in sorted(now.keys() - IMPLEMENTATION):
                if known.get(name) != now[name]:
                    known[name] = now[name]
                    seen = SettingSeen(self.steps, number, place, name, now[name])
                    self.structure.settings.append(seen)


class _ByHand:
    """Stands for the optimizer of a job that has none."""

    def __init__(self, model: Any) -> None:
        learned = [weight for weight in model.parameters() if weight.requires_grad]
        self.param_groups: list[dict[str, Any]] = [{"params": learned}]
        self.state: dict[Any, Any] = {}


def _text(value: Any) -> str:
    """The same for a number and for a tensor that holds it."""
    if hasattr(value, "item") and getattr(value, "numel", lambda: 1)() == 1:
        value = value.item()
    return repr(value) if not isinstance(value, list) else str(len(value))

"""One step at a time from the reference's own weights: how far do gradients and updates differ?

Two trainings that round differently drift apart, so that after some steps nothing can be said of
their weights. Therefore the reference saves what a step depends on, the others load it, take that
one step, and compare what came out of it, tensor by tensor.
"""

from __future__ import annotations

import math
import shutil
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

from hotloop.evidence import NOT_BEGUN, NOT_ENDED, Difference, KeptSeen
from hotloop.runtime.exam import randomness
from hotloop.runtime.exam.distances import Distances
from hotloop.runtime.exam.kept import Kept, named
from hotloop.runtime.marks import Mark, mark, matched
from hotloop.runtime.marks import parameters as _parameters

_Outcome = dict[str, dict[str, Any]]
"""Gradients and updates, by the names of their tensors."""


class Teacher:
    def __init__(self, torch: Any, folder: Path, is_reference: bool, points: int) -> None:
        self.differences: list[Difference] = []
        self.forced: list[int] = []
        self.problem = ""
        self._torch = torch
        self._folder = folder
        self._is_reference = is_reference
        self._points = points
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._steps: Counter[int] = Counter()
        """Of every optimizer."""
        self._marks: dict[int, Mark] = {}
        self._theirs: dict[int, int] = {}
        """Which number each optimizer has in the reference."""
        self._names: dict[int, str] = {}
        self._saved = {int(path.stem.split("-")[1]) for path in folder.glob("step-*-before.pt")}
        self._start: dict[str, Any] = {}
        """The stepping parameters before the step that is being compared."""
        self._distances: dict[str, Distances] = {}
        self._kept = Kept(torch, folder, is_reference)

    @property
    def kept(self) -> list[KeptSeen]:
        return self._kept.seen

    def mark(self, number: int, optimizer: Any) -> None:
        """Before a step, of which only an optimizer's first counts."""
        if number not in self._marks:
            self._marks[number] = mark(optimizer)

    def meet(self, number: int, optimizer: Any) -> None:
        """After each of its steps, also of one that was skipped."""
        self._optimizers.setdefault(number, weakref.ref(optimizer))
        self._steps[number] += 1

    def has(self, step: int) -> bool:
        """Whether the reference has saved what this step begins from."""
        return step in self._saved

    def begin(self, step: int, roots: list[Any]) -> None:
        """Before a step that is to be compared: the reference saves, the others load."""
        if self.problem:
            return
        try:
            saved = None if self._is_reference else self._read(step)
            self._theirs = matched(self._marks, saved["marks"]) if saved else {}
            tensors = self._tensors(roots)
            kept = self._untrained(tensors)
            if saved:
                self.differences += self._kept.counts(step, saved["tensors"], kept)
                self._load(saved, tensors)
            else:
                self._save(step, tensors)
            self._kept.begin(kept)
            # On the host: a job may need all the memory its device has.
            self._start = {name: _on_host(t.detach()) for name, t in tensors.items()}
            self._distances = {n: Distances(self._torch, t.device) for n, t in tensors.items()}
        except Exception as error:  # whatever a script's own classes do with it
            self.problem = f"step {step + 1} {NOT_BEGUN}: {error}"

    def end(self, step: int, number: int) -> None:
        """After such a step, or another of the same round of optimizers."""
        if self.problem:
            return
        try:
            made, file = self._outcome(number), self._after(number)
            if self._is_reference:
                self._torch.save({"step": step, **made}, file)
            elif not file.exists():
                return  # the reference's scaler skipped it
            else:
                step = self._compare(made, file)
            self.forced.append(step)
        except Exception as error:
            self.problem = f"step {step + 1} {NOT_ENDED}: {error}"

    def end_round(self, step: int, roots: list[Any]) -> None:
        """All optimizers have made their steps since `begin`."""
        if self.problem:
            return
        try:
            self.differences += self._kept.end(step, dict(named(roots)))
        except Exception as error:
            self.problem = f"step {step + 1} {NOT_ENDED}: {error}"

    def _save(self, step: int, tensors: dict[str, Any]) -> None:
        saved = {
            "tensors": {name: t.detach() for name, t in tensors.items()},
            "gradients": {n: t.grad for n, t in tensors.items() if t.grad is not None},
            "states": {
                name: state
                for optimizer in self._living().values()
                for name, state in self._states(optimizer).items()
            },
            "random": randomness.state(self._torch),
            "marks": self._marks,
        }
        self._require_space(saved)
        self._torch.save(saved, self._before(step))

    def _read(self, step: int) -> Any:
        """Mapped, not read: what is copied from there is copied once."""
        path = self._before(step)
        return self._torch.load(path, map_location="cpu", weights_only=False, mmap=True)

    def _load(self, saved: Any, tensors: dict[str, Any]) -> None:
        torch = self._torch
        if saved["tensors"].keys() != tensors.keys():
            odd = sorted(saved["tensors"].keys() ^ tensors.keys())
            raise ValueError(f"it has other weights than the reference, such as {odd[0]}")
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(saved["tensors"][name])
                _set_gradient(tensor, saved["gradients"].get(name))
        for optimizer in self._living().values():
            for parameter in _parameters(optimizer):
                state = saved["states"].get(self._name(parameter))
                if state:
                    _restore(torch, optimizer.state[parameter], state, parameter)
        randomness.restore(torch, saved["random"])

    def _untrained(self, tensors: dict[str, Any]) -> dict[str, Any]:
        trained = {self._name(p) for o in self._living().values() for p in _parameters(o)}
        return {name: tensor for name, tensor in tensors.items() if name not in trained}

    def _outcome(self, number: int) -> _Outcome:
        """Gradients after the step: by then clipped, unscaled, and made by a closure if any."""
        optimizer = self._living()[number]
        gradients, updates = {}, {}
        for parameter in _parameters(optimizer):
            name = self._name(parameter)
            if name in self._start:
                if parameter.grad is not None:
                    gradients[name] = _dense(self._torch, parameter.grad)
                updates[name] = parameter.detach().cpu() - self._start[name]
        return {"gradient": gradients, "update": updates}

    def _compare(self, made: _Outcome, file: Path) -> int:
        """Which step it was in the reference: within a round others may have had their turn."""
        reference = self._torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        step: int = reference.pop("step")
        self.differences += [
            self._difference(step, quantity, name, reference, made)
            for quantity, tensors in reference.items()
            for name in tensors
        ]
        return step

    def _difference(
        self, step: int, quantity: str, name: str, reference: _Outcome, made: _Outcome
    ) -> Difference:
        of_update = quantity == "update"
        wanted, found = reference[quantity][name], made[quantity].get(name)
        ulp = self._ulp(name, self._start[name] if of_update else wanted)
        distances = self._distances[name]
        if found is None:
            return Difference(step, quantity, name, distances.norm(wanted), None, 0.0, ulp)
        then, now = (each["gradient"].get(name) for each in (reference, made))
        known = of_update and then is not None and now is not None
        seen = distances.between(wanted, found, (then, now) if known else None)
        if not math.isfinite(seen.difference):
            return Difference(step, quantity, name, seen.reference, None, 0.0, ulp)
        measured = seen.reference, seen.difference, seen.along, ulp
        return Difference(step, quantity, name, *measured, seen.unsettled, seen.undecided)

    def _ulp(self, name: str, tensor: Any) -> float:
        if not tensor.is_floating_point() and not tensor.is_complex():
            return 0.0
        return float(self._torch.finfo(tensor.dtype).eps) * self._distances[name].norm(tensor)

    def _tensors(self, roots: list[Any]) -> dict[str, Any]:
        """What a step depends on: the weights and buffers of models, and what optimizers train."""
        found: dict[str, Any] = {}
        self._names.clear()
        for name, tensor in named(roots):
            self._add(found, name, tensor)
        living = {self._theirs.get(n, n): optimizer for n, optimizer in self._living().items()}
        for number, optimizer in sorted(living.items()):
            for place, parameter in enumerate(_parameters(optimizer)):
                self._add(found, f"optimizer {number}: parameter {place}", parameter)
        return found

    def _add(self, found: dict[str, Any], name: str, tensor: Any) -> None:
        if id(tensor) not in self._names and tensor.layout is self._torch.strided:
            self._names[id(tensor)] = name
            found[name] = tensor

    def _name(self, parameter: Any) -> str:
        return self._names.get(id(parameter), "")

    def _states(self, optimizer: Any) -> dict[str, dict[str, Any]]:
        return {
            self._name(parameter): dict(optimizer.state[parameter])
            for parameter in _parameters(optimizer)
            if parameter in optimizer.state
        }

    def _living(self) -> dict[int, Any]:
        alive = {number: known() for number, known in self._optimizers.items()}
        return {number: optimizer for number, optimizer in alive.items() if optimizer is not None}

    def _before(self, step: int) -> Path:
        return self._folder / f"step-{step}-before.pt"

    def _after(self, number: int) -> Path:
        """By the optimizer and its own steps: in which order several step may differ."""
        theirs = self._theirs.get(number, number)
        return self._folder / f"optimizer-{theirs}-step-{self._steps[number]}-after.pt"

    def _require_space(self, saved: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # What is still to come: as much before each step, and gradients and updates after it.
        needed = 2 * _bytes(self._torch, saved) * (self._points - len(self.forced))
        if needed > 0.8 * shutil.disk_usage(self._folder).free:
            raise OSError(f"{needed / 2**30:.0f} GiB of disk space are needed in {self._folder}")


def _dense(torch: Any, gradient: Any) -> Any:
    """An embedding's may be sparse."""
    plain = gradient.detach()
    return plain if plain.layout is torch.strided else _on_host(plain.to_dense())


def _on_host(tensor: Any) -> Any:
    """A copy, wherever it was."""
    return tensor.clone() if tensor.device.type == "cpu" else tensor.cpu()


def _set_gradient(tensor: Any, saved: Any) -> None:
    if saved is None or tensor.grad is None:
        tensor.grad = None if saved is None else saved.to(tensor.device, tensor.dtype)
    else:
        tensor.grad.copy_(saved)


def _restore(torch: Any, state: dict[str, Any], saved: dict[str, Any], parameter: Any) -> None:
    """In place where possible: fused kernels and captured graphs know the addresses."""
    for key, value in saved.items():
        now: Any = state.get(key)
        if torch.is_tensor(now) and torch.is_tensor(value) and now.shape == value.shape:
            now.copy_(value)
        elif torch.is_tensor(value) and value.shape == parameter.shape:
            state[key] = value.to(parameter.device)
        elif torch.is_tensor(now) and isinstance(value, int | float):
            now.fill_(value)
        elif not torch.is_tensor(now):
            state[key] = value


def _bytes(torch: Any, value: Any) -> int:
    if torch.is_tensor(value):
        return int(value.numel() * value.element_size())
    parts = value.values() if isinstance(value, dict) else value
    return sum(_bytes(torch, part) for part in parts) if isinstance(value, dict | list) else 0

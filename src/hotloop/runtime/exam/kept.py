"""What models keep from step to step beside what is trained, compared after a step.

Running statistics, codebooks that are averaged, weights that follow others, counters: gradients and
updates say nothing of them. A step changes most by a little, so what is compared is their change:
an error of a hundredth in it would be lost in the numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.evidence import Difference, KeptSeen
from hotloop.runtime.exam.distances import Distances

MOST = 1 << 22
"""Numbers of one buffer that are compared. Of larger ones a part, evenly spread."""
MOST_OF_A_WEIGHT = 1 << 16
"""That nothing trains. A large model may consist of these; what follows others does so whole."""


class Kept:
    def __init__(self, torch: Any, folder: Path, is_reference: bool) -> None:
        self.seen: list[KeptSeen] = []
        self._torch = torch
        self._folder = folder
        self._is_reference = is_reference
        self._distances = Distances(torch, torch.device("cpu"))
        self._before: dict[str, Any] = {}
        """Parts of all these tensors before the step."""

    def counts(
        self, step: int, saved: dict[str, Any], tensors: dict[str, Any]
    ) -> Iterator[Difference]:
        """Whole numbers, as the steps before have left them: before they are made to be alike."""
        for name, tensor in tensors.items():
            if name in saved and _is_count(saved[name]) and _is_count(tensor):
                was, now = float(saved[name]), float(tensor)
                along = now / was if was else 1.0
                yield Difference(step, "count", name, abs(was), abs(now - was), along, 0.0)

    def begin(self, tensors: dict[str, Any]) -> None:
        plain = {name: one for name, one in tensors.items() if _is_plain(self._torch, one)}
        self._before = {name: self._part(tensor) for name, tensor in plain.items()}

    def end(self, step: int, now: dict[str, Any]) -> list[Difference]:
        """`step`: where this began, which names it also where optimizers take turns."""
        file = self._folder / f"step-{step}-after.pt"
        changed = self._changed(now)
        if self._is_reference:
            self._torch.save(changed, file)
            self._note(step, now, len(changed))
            return []
        if not file.exists():
            return []  # a step was skipped there, or nobody looked at this then
        wanted = self._torch.load(file, map_location="cpu", weights_only=True)
        found = []
        for name, then in self._before.items():
            there, here = wanted.get(name, then), changed.get(name, then)
            if there is not here:
                found.append(self._difference(step, name, there, here))
        self._note(step, now, len(found))
        return found

    def _changed(self, now: dict[str, Any]) -> dict[str, Any]:
        """Without a tensor: what is no longer there by that name."""
        after = {name: self._part(now[name]) if name in now else None for name in self._before}
        return {n: one for n, one in after.items() if not _equal(self._before[n], one)}

    def _note(self, step: int, now: dict[str, Any], changed: int) -> None:
        alike = [now[name] for name in self._before if name in now]
        in_part = sum(tensor.numel() > self._most(tensor) for tensor in alike)
        self.seen.append(KeptSeen(step, len(self._before), changed, in_part))

    def _difference(self, step: int, name: str, wanted: Any, found: Any) -> Difference:
        before = self._before[name]
        is_lost = wanted is None or found is None or wanted.shape != found.shape
        if wanted is None:
            wanted = before
        change, ulp = self._change(before, wanted), self._ulp(wanted)
        if is_lost or _equal(wanted, found):
            apart, along = (None, 0.0) if is_lost else (0.0, 1.0)
            size = self._distances.norm(change)
            return Difference(step, "change", name, size, apart, along, ulp)
        seen = self._distances.between(change, self._change(before, found), None)
        measured = seen.difference if math.isfinite(seen.difference) else None
        return Difference(step, "change", name, seen.reference, measured, seen.along, ulp)

    def _change(self, before: Any, after: Any) -> Any:
        """Nothing where nothing changed, also of a mask's infinities. All of it is new in what has
        another size than before."""
        one, other = self._numbers(before), self._numbers(after)
        if one.shape != other.shape:
            return other
        return self._torch.where(_same(one, other), self._torch.zeros_like(other), other - one)

    def _numbers(self, tensor: Any) -> Any:
        """In a format in which differences can be told."""
        torch = self._torch
        if tensor.is_complex() or tensor.dtype is torch.float64:
            return tensor
        return tensor.to(torch.float32 if tensor.is_floating_point() else torch.int64)

    def _ulp(self, tensor: Any) -> float:
        if not tensor.is_floating_point() and not tensor.is_complex():
            return 0.0
        return float(self._torch.finfo(tensor.dtype).eps) * self._distances.norm(tensor)

    def _most(self, tensor: Any) -> int:
        return MOST_OF_A_WEIGHT if isinstance(tensor, self._torch.nn.Parameter) else MOST

    def _part(self, tensor: Any) -> Any:
        """On the host, and by itself: the step that follows may write where it lies."""
        flat = tensor.detach()
        if not flat.is_contiguous():
            flat = flat.cpu()  # another order of dimensions is flattened into a copy
        flat = flat.flatten()[:: max(1, -(-tensor.numel() // self._most(tensor)))]
        return flat.clone() if flat.device.type == "cpu" else flat.cpu()


def named(roots: list[Any]) -> Iterator[tuple[str, Any]]:
    for place, root in enumerate(roots):
        for name, tensor in [*root.named_parameters(), *root.named_buffers()]:
            yield f"model {place}: {name}", tensor


def _is_plain(torch: Any, tensor: Any) -> bool:
    """Whether its numbers can be read: not of what is stored in a way of its own, or nowhere."""
    own = torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor)
    return not (own or tensor.is_meta or tensor.is_quantized)


def _is_count(tensor: Any) -> bool:
    return tensor.numel() == 1 and not (tensor.is_floating_point() or tensor.is_complex())


def _equal(one: Any, other: Any) -> bool:
    return other is not None and one.shape == other.shape and bool(_same(one, other).all())


def _same(one: Any, other: Any) -> Any:
    same = one == other
    if one.is_floating_point() or one.is_complex():
        same |= one.isnan() & other.isnan()
    return same

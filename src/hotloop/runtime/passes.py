"""Which parts of a long training a job has come to: its passes, its short batch, its evaluation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hotloop.runtime.probes import samples
from hotloop.runtime.probes.clock import Numbers
from hotloop.seams import Seams


class Passes:
    def __init__(self, torch: Any, numbers: dict[str, Numbers]) -> None:
        self._grad_enabled = torch.is_grad_enabled
        self._numbers = numbers
        self._begun: Counter[int] = Counter()
        self._steps: Counter[int] = Counter()
        """Made on a batch of each loader."""
        self._open: set[int] = set()
        self._largest: Counter[int] = Counter()
        self._drawn: tuple[int, int, int] | None = None
        """The last batch: from which loader, in which pass, how many samples."""
        self._beside: set[int] = set()
        """Loaders that were read while training had no pass open."""
        self._learning: set[int] = set()
        self._tested = False
        self.stepped_in = 0
        """The pass over the training loader that the last step belongs to."""
        self.short_batch = False

    def attach(self, seams: Seams) -> None:
        """After the clock: it tells iterators which loader they belong to."""
        seams.loader.after.append(self._begin)
        seams.batch.after.append(self._draw)
        seams.model.after.append(self._call)

    @property
    def training_loader(self) -> int | None:
        """The one that most steps are made on.

        Not the one most batches come from: a pass that is cut has as many in evaluation.
        """
        return self._steps.most_common(1)[0][0] if self._steps else None

    @property
    def begun(self) -> int:
        training = self.training_loader
        return 0 if training is None else self._begun[training]

    @property
    def evaluation(self) -> bool:
        return self._tested or any(not self._steps[loader] for loader in self._beside)

    def note_step(self) -> None:
        if self._drawn is None:
            return
        loader, number, size = self._drawn
        self._steps[loader] += 1
        if loader == self.training_loader:
            self.stepped_in = number
            self.short_batch = self.short_batch or size < self._largest[loader]

    def _begin(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        loader = self._numbers["loader"].of(args[0])
        self._begun[loader] += 1
        self._open.add(loader)

    def _draw(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        loader = getattr(args[0], "_hotloop_loader", 0)
        if batch is None:
            self._open.discard(loader)
            return
        if self.training_loader not in (None, loader, *self._open):
            self._beside.add(loader)
        size = samples.count(batch)
        self._largest[loader] = max(size, self._largest[loader])
        self._drawn = loader, self._begun[loader], size

    def _call(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """A teacher or a target network never learns; what learns, and then rests, is tested."""
        model = self._numbers["model"].of(args[0])
        if self._grad_enabled():
            self._learning.add(model)
        elif model in self._learning:
            self._tested = True

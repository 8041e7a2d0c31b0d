"""The loop itself, as a careful user would write it for any job."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hotloop.errors import JobInvalid
from hotloop.levers import sequences
from hotloop.runtime.owned import augmenting, splitting
from hotloop.runtime.owned.batches import Feed
from hotloop.runtime.owned.checked import Checked
from hotloop.runtime.owned.gathering import Gathering
from hotloop.runtime.owned.joined import joined
from hotloop.runtime.probes import samples
from hotloop.training_job import TrainingJob


@dataclass(frozen=True)
class Epoch:
    number: int
    steps: int
    seconds: float
    loss: float
    """Of the last pass."""
    evaluation: Any = None


@dataclass
class Trained:
    """What a training came to."""

    model: Any
    optimizer: Any
    epochs: list[Epoch] = field(default_factory=list)


Told = Callable[[Epoch], None]


class Loop:
    def __init__(self, torch: Any, job: TrainingJob) -> None:
        self._torch = torch
        self._checked = Checked(torch, job)
        self.job = job
        self.batch_size = job.batch_size
        self.microbatch = job.microbatch or job.batch_size
        """Samples to one pass. A larger one than the batch is the whole batch."""
        usual = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(job.device or usual)
        self.augments_here = False
        """Whether inputs are augmented on the device, instead of where they are loaded."""
        self.reshape: Callable[[Any], Any] = lambda part: part
        """What a pass is given instead of its part of the batch."""
        self.is_compiled = False
        """Whether whatever module a pass calls is compiled."""
        self.length = 0
        """Tokens to a sequence, of the first batch; 0: it is no batch of sequences."""
        self._steps = 0

    def train(self, told: Told = lambda epoch: None) -> Trained:
        self.begin()
        trained = Trained(self.model, self.optimizer)
        for number in range(1, self.job.epochs + 1):
            epoch = self._epoch(number)
            trained.epochs.append(epoch)
            told(epoch)
        self.job.finished(trained)
        return trained

    def begin(self) -> None:
        """Makes all that the training consists of. The seam `loop` is here: until this is called
        the sizes above may be changed, and afterwards everything is there."""
        torch, job = self._torch, self.job
        torch.manual_seed(job.seed)
        self.feed = Feed(torch, job, self.batch_size, augments=not self.augments_here)
        self.augment = augmenting.of(job) if self.augments_here else None
        torch.manual_seed(job.seed)  # the weights do not depend on what the data drew
        self.model = self._checked.model().to(self.device)
        self.model.train()
        self.optimizer = self._checked.optimizer(self.model)
        self.schedule = self._checked.schedule(self.optimizer)
        self._learned = [p for group in self.optimizer.param_groups for p in group["params"]]
        self._loss: Callable[[Any], Any] = lambda part: job.loss(self.model, part)
        is_half = job.precision == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type) if is_half else None

    def join(self) -> None:
        """From here on a pass calls one module, with the model and the loss in it."""
        self._loss = joined(self._torch, self.job, self.model)

    def _epoch(self, number: int) -> Epoch:
        began, before, loss = time.perf_counter(), self._steps, None
        for batch in self.feed:
            loss = self.step(batch)
            self._steps += 1
        if loss is None:
            raise JobInvalid(
                f"{type(self.job).__name__}.data() holds no batch to train on in epoch {number}.",
                "Is it empty, or shorter than batch_size with drop_last?",
            )
        last = float(loss.detach())
        seconds = time.perf_counter() - began
        return Epoch(number, self._steps - before, seconds, last, self._evaluated())

    def step(self, batch: Any) -> Any:
        """One step of the optimizer on one batch. Hands back the loss of its last part."""
        rows = self._rows(batch)
        if self._steps == 0:
            self.length = sequences.length(self._torch, batch)
        loss = self.compute(self._there(batch), rows)
        if self.schedule is not None:
            self.schedule.step()
        return loss

    def _there(self, batch: Any) -> Any:
        batch = splitting.moved(batch, self.device)
        return batch if self.augment is None else augmenting.changed(batch, self.augment)

    def compute(self, batch: Any, rows: int) -> Any:
        """All of a step that the device does, on a batch that is there: a graph may replace it."""
        self.optimizer.zero_grad()
        gathering = Gathering(self._torch, rows)
        loss = None
        for part, count in splitting.parts(self._torch, batch, rows, self.microbatch):
            with self._precision():
                returned = self._loss(self.reshape(part))
            found, weight = self._checked.loss(returned)
            loss = gathering.differentiate(found, weight, count, self.scaler)
        gathering.finish(self._learned)
        self._update()
        return loss

    def _update(self) -> None:
        optimizer, scaler, most = self.optimizer, self.scaler, self.job.max_grad_norm
        if most:
            if scaler is not None:
                scaler.unscale_(optimizer)
            self._torch.nn.utils.clip_grad_norm_(self._learned, most)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()

    def _precision(self) -> Any:
        if self.job.precision == "float32":
            return contextlib.nullcontext()
        dtype = getattr(self._torch, self.job.precision)
        return self._torch.autocast(self.device.type, dtype=dtype)

    def _rows(self, batch: Any) -> int:
        rows = samples.count(batch)
        if self._steps == 0 and not self.feed.resizable and rows not in (0, self.batch_size):
            raise JobInvalid(
                f"{type(self.job).__name__}.data() yields batches of {rows} samples, but "
                f"batch_size is {self.batch_size}.",
                f"Set batch_size to {rows}: it is what the optimizer steps on.",
            )
        return rows or self.batch_size

    def _evaluated(self) -> Any:
        if type(self.job).evaluate is TrainingJob.evaluate:
            return None
        self.model.eval()
        with self._torch.no_grad():
            found = self._checked.evaluation(self.model)
        self.model.train()
        return found

"""A job that is described, and whose loop is ours: what a user's class inherits from.

    class Digits(hotloop.TrainingJob):
        batch_size = 256

        def model(self): ...
        def data(self): ...
        def loss(self, model, batch): ...
        def optimizer(self, parameters): ...

Only the standard library: this is imported in the user's own interpreter.
"""

from __future__ import annotations

from typing import Any

REQUIRED = ("model", "data", "loss", "optimizer")


class TrainingJob:
    """Everything but the four methods has a default. Settings are plain class attributes."""

    batch_size: int = 32
    """Samples to one step of the optimizer, whatever is done in one pass."""
    microbatch: int = 0
    """Samples to one pass; gradients of several passes are gathered. 0: the whole batch."""
    epochs: int = 1
    shuffle: bool = True
    drop_last: bool = False
    """Leave out the last, short batch of an epoch."""
    workers: int = 0
    """Processes that load the data of a Dataset."""
    seed: int = 0
    """Of the weights, of the data and of its order."""
    device: str = ""
    """"cuda", "cpu", …; empty: a GPU where there is one."""
    precision: str = "float32"
    """"bfloat16" or "float16": products are computed in it by autocast, float16 with a scaler."""
    max_grad_norm: float = 0.0
    """Gradients are clipped to this norm. 0: they are not."""

    def model(self) -> Any:
        """The torch.nn.Module to train. It is moved to the device."""
        raise NotImplementedError

    def data(self) -> Any:
        """What to train on.

        A Dataset; or tensors whose first dimension is the sample, as one tensor, a tuple or a dict;
        or an iterable of batches, which then makes the batch size and the order itself.
        """
        raise NotImplementedError

    def loss(self, model: Any, batch: Any) -> Any:
        """The mean loss over the batch's samples, to be differentiated.

        Or (sum, weight), where samples do not count alike: the loss summed up, and the weight that
        it is to be divided by, such as the number of tokens.
        """
        raise NotImplementedError

    def optimizer(self, parameters: Any) -> Any:
        """A torch optimizer of these parameters."""
        raise NotImplementedError

    def augment(self, inputs: Any) -> Any:
        """Torch operations on a batch of inputs, each changed at random in a way of its own.

        Inputs are the first of what a sample consists of. Runs where samples are loaded, a batch of
        one at a time; or, if that is found to be faster, on the device.
        """
        return inputs

    def schedule(self, optimizer: Any) -> Any:
        """A learning-rate scheduler, stepped after every step of the optimizer; or None."""
        return None

    def evaluate(self, model: Any) -> Any:
        """After every epoch, in eval mode and without gradients: a number, or a dict of them."""
        return None

    def finished(self, trained: Any) -> None:
        """At the end: `trained.model` may be saved here."""

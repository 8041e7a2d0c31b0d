"""A job's model and its loss as one module: what compiles a model then compiles both together.

Apart, all logits are written by the one graph and read by the other, and so are their gradients.
"""

from __future__ import annotations

from typing import Any


def joined(torch: Any, job: Any, model: Any) -> Any:
    """A module that is given a batch and returns what `job.loss` does.

    Its weights are the model's, by the names that they have there: it is no part of a checkpoint.
    """

    class Joined(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: Any) -> Any:
            return job.loss(self.model, batch)

        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            return self.model.named_parameters(*args, **kwargs)

        def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
            return self.model.named_buffers(*args, **kwargs)

        def named_modules(self, *args: Any, **kwargs: Any) -> Any:
            return self.model.named_modules(*args, **kwargs)

        def state_dict(self, *args: Any, **kwargs: Any) -> Any:
            return self.model.state_dict(*args, **kwargs)

        def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
            return self.model.load_state_dict(*args, **kwargs)

    return Joined()

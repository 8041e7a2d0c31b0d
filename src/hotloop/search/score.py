"""What a plan came to in one process."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import units


@dataclass(frozen=True)
class Score:
    """Smaller is better."""

    value: float | None
    """Seconds a step, or bytes."""
    reason: str = ""
    """Why there is no value."""
    applied: bool = True
    """False: there is no value because an optimisation did not take effect."""
    idle: tuple[str, ...] = ()
    """Which did not."""
    out_of_memory: bool = False
    """There is no value because of that."""
    once: float = 0.0
    """Seconds that it takes once in every training, and not in a step."""
    steps: int | None = None
    """Of a training that is so short that all of it was seen."""

    crowd: float = 0.0
    """The share of the cores' time that others took meanwhile, and that may be missing."""

    @property
    def whole(self) -> float | None:
        """With what comes once, where it is known over how many steps that is to be won back."""
        if self.value is None or not self.steps:
            return self.value
        return self.value + self.once / self.steps

    @property
    def too_short(self) -> str:
        """Why it is not kept where steps are faster, and not by enough."""
        once = units.seconds(self.once)
        return (
            f"it takes {once} once, and the {self.steps} steps of the whole training do not make "
            "up for that"
        )

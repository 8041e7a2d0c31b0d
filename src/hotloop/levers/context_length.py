"""Sequences cut into shorter ones, as many tokens to a step as before: [B, L] becomes [2B, L/2].

What attention costs grows with the square of the length. It changes the training: a token no longer
sees what stood before the cut. So it is tried only by those who ask for it, and only in a loop of
ours: in a script nobody knows which tensors of a batch belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers import sequences
from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

PARTS = (2, 4)
SHORTEST = 64
"""Tokens: in shorter sequences there is little left to learn from."""
GAIN = 0.3
"""Of the model's own passes: what attention is of them in a long context. A trial can tell."""


@dataclass
class ContextLength(Lever):
    name = "context_length"
    summary = "sequences cut into shorter ones, as many tokens to a step"
    group = Group.BATCH
    effect = Effect.CHANGES_TRAINING
    not_for_memory = "shorter sequences train otherwise; smaller passes save the memory as well"

    parts: int = 2
    """That each sequence is cut into."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._reason = "the loop is the script's own"
        self._cut = self._whole = self._steps = self._tokens = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        loop = seen.measurement.inventory.loop
        tokens = loop.length if loop else 0
        fitting = [parts for parts in PARTS if sequences.can_be_cut(tokens, parts)]
        return [{"parts": parts} for parts in fitting if tokens // parts >= SHORTEST]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        loop = seen.measurement.inventory.loop
        if loop is None:
            return refuse("only in a loop of hotloop's own is it known what a batch consists of")
        if not loop.length:
            return refuse("the job's batches are not made of sequences of tokens alone")
        if not cls.settings(seen):
            return refuse(f"the job's sequences are short already: {loop.length} tokens")
        return Expectation(seen.share("forward", "backward") * GAIN)

    def problem(self) -> str:
        return "" if self.parts >= 2 else f"parts must be at least 2, not {self.parts}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.loop.after.append(self._begun)
        seams.step.after.append(self._stepped)

    def receipt(self) -> Receipt:
        if not self._cut or self._whole > self._cut:
            return self.not_applied(self._reason)
        if not self._steps:
            return self.not_applied("no optimizer stepped")
        step, more = divmod(self._tokens, self.parts)
        return self.applied(
            tokens=step + more,
            tokens_before=self._tokens,
            passes=self._cut,
            whole_passes=self._whole,
            steps=self._steps,
        )

    def _begun(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._reason = "no batch was trained on"
        args[0].reshape = self._shorter

    def _shorter(self, part: Any) -> Any:
        """What a pass is given. A batch that cannot be cut is trained on as it is."""
        tokens = sequences.length(self._torch, part)
        if sequences.can_be_cut(tokens, self.parts):
            self._cut += 1
            self._tokens = tokens
            return sequences.cut(part, tokens, self.parts)
        self._whole += 1
        self._reason = "the job's batches are not made of sequences of tokens alone"
        if tokens:
            self._reason = f"sequences of {tokens} tokens cannot be cut into {self.parts} parts"
        return part

    def _stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += 1

"""Attention written by hand, replaced by torch's fused kernel in the graph that is compiled.

By hand the whole matrix of scores is made, kept for the way back, and gone over many times; the
fused kernel never makes it. Nothing of the script changes: `compile` captures the graph, and this
rewrites it on its way to the compiler.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.attention.rewrite import Rewritten, rewrite
from hotloop.levers.base import (
    GRAPHS_UNSEEN,
    NOT_LOOKED,
    Effect,
    Expectation,
    Group,
    Lever,
    Receipt,
    Seen,
    refuse,
)

if TYPE_CHECKING:
    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seams

GAIN = 0.25
"""Of the model's own passes, where they are those of a transformer. Only a trial can tell."""


@dataclass
class FusedAttention(Lever):
    name = "fused_attention"
    summary = "attention written by hand computed by the fused kernel"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""
    requires = ("compile",)

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._graphs: list[tuple[Captured, Rewritten]] = []

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        """Whether there is attention at all is known of a job that was looked into."""
        operators = seen.inspection.operators if seen.inspection else None
        if operators is None:
            return refuse(f"the job's attention is not known: {NOT_LOOKED}")
        if not operators.attention:
            return refuse("no attention was seen that is written by hand")
        if seen.is_compiled:
            return refuse(GRAPHS_UNSEEN)
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.captured.before.append(self._rewrite)

    def receipt(self) -> Receipt:
        if not self._graphs:
            return self.not_applied("no graph was captured")
        ran = [(graph, found) for graph, found in self._graphs if graph.runs and found.replaced]
        if ran:
            return self.applied(
                attentions=sum(found.replaced for _, found in ran),
                causal=sum(found.causal for _, found in ran),
                masked=sum(found.masked for _, found in ran),
                left_alone=sum(found.reasons.total() for _, found in ran),
                runs=sum(graph.runs for graph, _ in ran),
                strays=sum(graph.strays for graph, _ in ran),
            )
        return self.not_applied(self._why_not())

    def _rewrite(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        captured = args[0]
        self._graphs.append((captured, rewrite(self._torch, captured)))

    def _why_not(self) -> str:
        if any(found.replaced for _, found in self._graphs):
            return "no graph with attention in it ran"
        reasons: Counter[str] = Counter()
        for _, found in self._graphs:
            reasons += found.reasons
        if not reasons:
            return "no attention was found in the captured graphs"
        return f"attention was found, but {reasons.most_common(1)[0][0]}"

"""Attention in a captured graph, replaced by torch's fused one.

What the kernel assumes is shown first. That a mask is causal is taken from its value, and looked at
again when that may have changed; every other mask is handed over as it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hotloop.levers.attention.chain import Attention, Reader
from hotloop.levers.attention.constants import Constants
from hotloop.levers.attention.masking import LARGE, is_causal, kept, read_masking
from hotloop.levers.attention.nodes import NotUnderstood
from hotloop.levers.attention.writer import Writer
from hotloop.levers.graphs import Captured


@dataclass
class Rewritten:
    """What became of one graph."""

    replaced: int = 0
    causal: int = 0
    masked: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Why attention that was seen was left as it is."""


def rewrite(torch: Any, captured: Captured) -> Rewritten:
    done = Rewritten()
    graph = captured.graph.graph
    constants, reader = Constants(torch, captured), Reader(graph)
    for out in list(graph.nodes):
        try:
            attention = reader.read(out)
            if attention is not None:
                _replace(torch, captured, constants, attention, done)
                reader = Reader(graph)
        except NotUnderstood as reason:
            done.reasons[str(reason)] += 1
    constants.forget()
    if done.replaced:
        graph.lint()
        captured.graph.recompile()
    return done


def _replace(
    torch: Any, captured: Captured, constants: Constants, attention: Attention, done: Rewritten
) -> None:
    masking = read_masking(attention, constants)
    writer = Writer(torch, captured.graph.graph, attention, masking)
    keep = kept(torch, masking, constants) if masking.is_needed else None
    causal = writer.fits(keep) and is_causal(torch, keep)
    if causal:
        captured.assumptions += constants.assume(
            masking.nodes, lambda inputs: is_causal(torch, kept(torch, masking, constants, inputs))
        )
    else:
        writer.require_mask_format()
    captured.assumptions += constants.assume(
        masking.fill_nodes,
        lambda inputs: all(constants.value(node, inputs) <= LARGE for node in masking.fill_nodes),
    )
    writer.write(causal)
    done.replaced += 1
    done.causal += causal
    done.masked += masking.is_needed and not causal

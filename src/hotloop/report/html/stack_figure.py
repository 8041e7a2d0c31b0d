"""Stacked bars on one scale: a step by phase, or memory by kind, before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hotloop import units
from hotloop.report.breakdown_rows import Breakdown
from hotloop.report.html import svg
from hotloop.report.html.figure import Cell, DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale
from hotloop.report.memory_rows import Held

ROW, BAR = 70.0, 30.0
KINDS = ("kind-weights", "kind-gradients", "kind-optimizer", "kind-rest")


@dataclass(frozen=True)
class Piece:
    name: str
    css: str
    value: float | None


@dataclass(frozen=True)
class Stack:
    label: str
    total: float
    pieces: tuple[Piece, ...]


def phases(key: str, title: str, found: Sequence[Breakdown], note: str = "") -> Figure:
    stacks = [
        Stack(
            one.label,
            one.seconds,
            tuple(Piece(part.name, f"phase-{part.phase}", part.seconds) for part in one.parts),
        )
        for one in found
    ]
    return _figure(key, title, stacks, units.seconds, note)


def kinds(found: Sequence[Held], note: str) -> Figure:
    stacks = [
        Stack(
            one.label,
            float(one.peak),
            tuple(
                Piece(kind.name, css, kind.bytes)
                for kind, css in zip(one.kinds, KINDS, strict=True)
            ),
        )
        for one in found
    ]
    return _figure("memory", "Memory at its peak, by kind", stacks, units.size, note)


def _figure(
    key: str, title: str, stacks: list[Stack], words: Callable[[float], str], note: str
) -> Figure:
    names = {piece.css: piece.name for stack in stacks for piece in stack.pieces}
    return drawn(
        key,
        title,
        lambda width: _draw(stacks, words, width),
        _table(stacks, names, words),
        note,
        tuple(names.items()),
    )


def _draw(stacks: list[Stack], words: Callable[[float], str], width: float) -> Markup:
    scale = Scale(0.0, max((stack.total for stack in stacks), default=1.0), 0.0, width)
    rows = [
        _row(stack, index * ROW, scale, words, width, index == len(stacks) - 1 and index > 0)
        for index, stack in enumerate(stacks)
    ]
    summary = "; ".join(
        f"{stack.label} {words(stack.total)}: "
        + ", ".join(f"{piece.name} {_said(piece, words)}" for piece in stack.pieces)
        for stack in stacks
    )
    return svg.drawing(width, ROW * len(stacks) - 10, summary, *rows, class_="marks")


def _row(
    stack: Stack, y: float, scale: Scale, words: Callable[[float], str], width: float, best: bool
) -> Markup:
    shapes = [
        svg.text(0, y + 15, stack.label, class_="name"),
        svg.text(width, y + 15, words(stack.total), class_="value end"),
        svg.rect(0, y + 24, width, BAR, class_="track"),
    ]
    at = 0.0
    for piece in stack.pieces:
        if not piece.value:
            continue
        left, right = scale(at), scale(at + piece.value)
        at += piece.value
        share = piece.value / stack.total if stack.total else 0.0
        tip = f"{stack.label}, {piece.name}: {words(piece.value)}, {units.percent(share)}"
        inner = [svg.rect(left, y + 24, max(right - left - 1, 0.75), BAR, class_=piece.css)]
        label = f"{share:.0%}"
        if right - left > svg.room(label, 12) + 16:
            inner.append(svg.text(left + 8, y + 44, label, class_="inside"))
        shapes.append(svg.mark(tip, *inner))
    return svg.tag("g", *shapes)


def _table(stacks: list[Stack], names: dict[str, str], words: Callable[[float], str]) -> DataTable:
    by_css = [{piece.css: piece for piece in stack.pieces} for stack in stacks]
    rows: list[tuple[Cell, ...]] = [
        (name, *(_cell(pieces.get(css), words) for pieces in by_css)) for css, name in names.items()
    ]
    whole: tuple[Cell, ...] = (
        "together",
        *(Number(words(stack.total), stack.total) for stack in stacks),
    )
    return DataTable(("", *(stack.label for stack in stacks)), (*rows, whole))


def _cell(piece: Piece | None, words: Callable[[float], str]) -> Number:
    return Number("–", None) if piece is None else Number(_said(piece, words), piece.value)


def _said(piece: Piece, words: Callable[[float], str]) -> str:
    return "unknown" if piece.value is None else words(piece.value)

"""A machine's roof and state as plain rows. What is not known says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotloop import units
from hotloop.doctor.check import Check, Status
from hotloop.doctor.examination import Examination
from hotloop.roof import PRECISIONS, Roof

UNKNOWN = "unknown"
NAMES = {"float32": "FP32", "tf32": "TF32", "bfloat16": "BF16", "float16": "FP16"}
ORDER = (Status.WARNING, Status.UNKNOWN, Status.OK)
"""What is to be read stands first."""


@dataclass(frozen=True)
class RoofRow:
    label: str
    text: str
    note: str = ""
    """What the data sheet says, or what the figure is."""


@dataclass(frozen=True)
class DoctorRows:
    title: str
    facts: tuple[tuple[str, str], ...]
    roof: tuple[RoofRow, ...]
    roof_note: str
    checks: tuple[Check, ...]
    """Warnings first."""
    verdict: str


def rows(found: Examination) -> DoctorRows:
    roof = found.roof
    return DoctorRows(
        title=_title(found),
        facts=tuple(_facts(found)),
        roof=(*_gpu_roof(found), *_cpu_roof(roof)) if roof else (),
        roof_note=_roof_note(roof),
        checks=tuple(sorted(found.checks, key=lambda check: ORDER.index(check.status))),
        verdict=_verdict(found.checks),
    )


def _title(found: Examination) -> str:
    gpu = found.state.gpu
    return found.machine.cpu if gpu is None else gpu.name or "GPU"


def _facts(found: Examination) -> list[tuple[str, str]]:
    machine, state = found.machine, found.state
    memory = units.size(machine.memory) if machine.memory is not None else UNKNOWN
    named = f"{machine.cpu}, " if state.gpu else ""
    facts = [("host", f"{named}{machine.cores} cores, {memory}, {machine.system}")]
    for gpu in machine.gpus:
        facts.append(("GPU", f"{gpu.name}, {units.size(gpu.memory)}"))
    software = state.installed
    torch = f"torch {software.torch}" if software.torch else "no torch"
    driver = f", driver {state.driver}" if state.driver else ""
    facts.append(("software", f"Python {software.python or UNKNOWN}, {torch}{driver}"))
    return facts


def _gpu_roof(found: Examination) -> list[RoofRow]:
    roof, sheet = found.roof, found.datasheet
    if roof is None or roof.device == "cpu":
        return []
    lines = []
    for precision in PRECISIONS:
        paper = sheet.matrix_flops.get(precision) if sheet else None
        measured = roof.matrix_flops.get(precision)
        if measured is not None or paper is not None or precision in ("float32", "float16"):
            note = _of_paper(measured, paper, flops)
            lines.append(RoofRow(f"{NAMES[precision]} products", _told(measured, flops), note))
    paper = sheet.memory_bandwidth if sheet else None
    note = _of_paper(roof.memory_bandwidth, paper, bandwidth)
    lines.append(RoofRow("GPU memory", _told(roof.memory_bandwidth, bandwidth), note))
    pinned, pageable = roof.host_to_device_pinned, roof.host_to_device_pageable
    copies = f"{_told(pinned, bandwidth)} pinned, {_told(pageable, bandwidth)} pageable"
    lines.append(RoofRow("host to device", copies))
    lines.append(RoofRow("launch", _told(roof.launch_seconds, moment), "to queue one operator"))
    return lines


def _cpu_roof(roof: Roof) -> list[RoofRow]:
    lines = []
    for precision in ("float32", "bfloat16", "float16"):
        text = _told(roof.cpu_matrix_flops.get(precision), flops)
        threads = f"{roof.threads} threads" if roof.threads and roof.threads > 1 else "one thread"
        lines.append(RoofRow(f"CPU {NAMES[precision]} products", text, threads))
    alone = _told(roof.cpu_matrix_flops_one_thread, flops)
    lines.append(RoofRow("CPU FP32 products", alone, "one thread"))
    lines.append(RoofRow("CPU memory", _told(roof.cpu_memory_bandwidth, bandwidth)))
    if roof.device == "cpu":
        lines.append(RoofRow("operator", _told(roof.launch_seconds, moment), "to run a tiny one"))
    return lines


def _told(value: float | None, words: Callable[[float], str]) -> str:
    return UNKNOWN if value is None else words(value)


def _of_paper(measured: float | None, paper: float | None, words: Callable[[float], str]) -> str:
    if paper is None:
        return ""
    if measured is None:
        return f"data sheet {words(paper)}"
    return f"{measured / paper:.0%} of the data sheet's {words(paper)}"


def _roof_note(roof: Roof | None) -> str:
    if roof is None:
        return "unknown: it takes torch to measure it"
    beside = " beside other work, so too low" if roof.disturbed else ""
    return f"measured on {roof.measured_on}{beside}; --remeasure does it again"


def _verdict(checks: tuple[Check, ...]) -> str:
    warnings = sum(check.status is Status.WARNING for check in checks)
    unknown = sum(check.status is Status.UNKNOWN for check in checks)
    first = "1 warning" if warnings == 1 else f"{warnings or 'no'} warnings"
    return f"{first}, {unknown} unknown, {len(checks) - warnings - unknown} in order"


def flops(value: float) -> str:
    return _scaled(value, "FLOP/s")


def bandwidth(value: float) -> str:
    return _scaled(value, "B/s")


def _scaled(value: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{units.rate(value / factor)} {prefix}{unit}"
    return f"{units.rate(value)} {unit}"


def moment(value: float) -> str:
    return f"{value * 1e6:.1f} µs"

"""What `hotloop profile` has to say, as plain rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hotloop import timeline, units
from hotloop.figures import Figures, PhaseShare, training_loader
from hotloop.levers.base import Receipt
from hotloop.measurement import (
    Events,
    Inventory,
    Kind,
    LoaderSeen,
    Measurement,
    Memory,
    ModelSeen,
    OptimizerSeen,
)
from hotloop.report.phase_names import phase_names
from hotloop.suggest import Suggestion
from hotloop.timeline import Phase
from hotloop.trial.trial import Shielding

A_STAGE, A_TURN = 0.05, 3
"""Of a run, and steps: what is shorter is the last turn of an optimizer that takes turns."""


@dataclass(frozen=True)
class PhaseRow:
    phase: str
    name: str
    share: float
    text: str


@dataclass(frozen=True)
class ProfileRows:
    headline: tuple[str, ...]
    step: tuple[str, ...]
    phases: tuple[PhaseRow, ...]
    gpu_phases: tuple[PhaseRow, ...]
    facts: tuple[tuple[str, str], ...]
    """Label and text, in the order they are shown. Labels may repeat."""
    already: tuple[str, ...]
    """What the script already does well."""


def rows(
    measurement: Measurement,
    found: Figures,
    shielding: Shielding,
    receipts: tuple[Receipt, ...] = (),
    worth: tuple[Suggestion, ...] = (),
) -> ProfileRows:
    names = phase_names(measurement)
    return ProfileRows(
        headline=_headline(found),
        step=_step(found),
        phases=tuple(_phase(share, names) for share in found.phases),
        gpu_phases=tuple(_phase(share, names) for share in found.gpu_phases),
        facts=(
            *_applied(receipts),
            *_run_facts(measurement, found),
            *_script_facts(measurement),
            *_shield(shielding),
            *_worth_trying(worth),
        ),
        already=already_well(measurement),
    )


def already_well(measurement: Measurement) -> tuple[str, ...]:
    """Settings that a tuner would otherwise propose, and that the script has set itself."""
    inventory = measurement.inventory
    precision = inventory.precision
    loader = training_loader(measurement)
    on_gpu = measurement.software.device != "cpu"
    checks = (
        (loader is not None and loader.workers > 0, "loads data in workers"),
        (loader is not None and loader.persistent, "keeps its workers alive"),
        (on_gpu and loader is not None and loader.pinned, "pins batches"),
        (precision.autocast in ("bfloat16", "float16"), f"autocast in {precision.autocast}"),
        (on_gpu and precision.tf32_matmul, "matrix products in TF32"),
        (on_gpu and precision.cudnn_benchmark, "cuDNN chooses its fastest kernels"),
        (any(model.compiled for model in inventory.models), "torch.compile"),
        (any(model.channels_last for model in inventory.models), "channels_last"),
        (any(optimizer.fused for optimizer in inventory.optimizers), "fused optimizer"),
    )
    return tuple(text for holds, text in checks if holds)


def _headline(found: Figures) -> tuple[str, ...]:
    parts = []
    if found.samples_per_second is not None:
        parts.append(f"{units.rate(found.samples_per_second)} samples/s")
    parts.append(f"{units.rate(found.batches_per_second)} batches/s")
    if found.epoch_seconds is not None:
        parts.append(f"an epoch in {units.seconds(found.epoch_seconds)}")
    return tuple(parts)


def _step(found: Figures) -> tuple[str, ...]:
    step = found.step
    return (
        f"{units.seconds(step.mean)} ± {units.seconds(step.spread)}",
        f"p50 {units.seconds(step.p50)}",
        f"p95 {units.seconds(step.p95)}",
        f"p99 {units.seconds(step.p99)}",
        f"{step.count} steps after {found.warm_up_steps} of warm-up",
    )


def _phase(share: PhaseShare, names: dict[Phase, str]) -> PhaseRow:
    text = f"{units.percent(share.share):>6} {units.seconds(share.seconds):>9}"
    return PhaseRow(share.phase, names[Phase(share.phase)], share.share, text)


def _applied(receipts: tuple[Receipt, ...]) -> list[tuple[str, str]]:
    facts = []
    for receipt in receipts:
        evidence = ", ".join(f"{name} {value}" for name, value in receipt.evidence.items())
        facts.append(("applied", f"{receipt.lever} ({evidence})" if evidence else receipt.lever))
    return facts


def _worth_trying(worth: tuple[Suggestion, ...]) -> list[tuple[str, str]]:
    if not worth:
        return []
    could = [f"{one.lever} ({units.percent(one.share)})" for one in worth]
    return [("could try", f"{', '.join(could)}: of a step's time, at the very most")]


def _run_facts(measurement: Measurement, found: Figures) -> list[tuple[str, str]]:
    facts = [("memory", _memory(measurement.memory))]
    if found.one_off_seconds > found.step.p50:
        compiled = found.compiling_seconds
        note = f", {units.seconds(compiled)} of it compiling" if compiled else ""
        facts.append(("warm-up", f"cost {units.seconds(found.one_off_seconds)} once{note}"))
    if found.pauses.count:
        pauses = found.pauses
        facts.append(
            (
                "pauses",
                f"{pauses.count} × evaluation or sampling, {units.seconds(pauses.seconds)},"
                f" {units.percent(pauses.share_of_run)} of the run and its warm-up,"
                " not counted as steps",
            )
        )
    facts.append(("loss", _loss(found)))
    if later := _another_stage(measurement.events):
        facts.append(
            (
                "note",
                f"another {units.seconds(later)} passed after the last of these steps, with steps "
                "of another optimizer: that part of the training is not shown here",
            )
        )
    if measurement.lost_events:
        facts.append(("note", f"{measurement.lost_events:,} events were not kept"))
    return facts


def _another_stage(events: Events) -> float:
    """Seconds of it, where a second optimizer takes over: L-BFGS after Adam, say."""
    ends, stepped = timeline.step_ends(events), timeline.all_of(events, Kind.OPTIMIZER_END)
    if not ends or not stepped:
        return 0.0
    first, last, end = (events.time_ns[place] for place in (0, ends[-1], stepped[-1]))
    least = max(A_STAGE * (end - first), A_TURN * (last - first) / len(ends))
    return (end - last) / 1e9 if end - last > least else 0.0


def _memory(memory: Memory) -> str:
    parts = []
    if memory.device_peak_allocated is not None:
        total = f" of {units.size(memory.device_total)}" if memory.device_total else ""
        reserved = memory.device_peak_reserved
        note = f" ({units.size(reserved)} reserved)" if reserved is not None else ""
        parts.append(f"GPU {units.size(memory.device_peak_allocated)}{total}{note}")
    return " · ".join([*parts, *_host_memory(memory)]) or "unknown"


def _host_memory(memory: Memory) -> list[str]:
    """Each child as the kernel counts it has in it what it shares: such sizes do not add up."""
    together, main, own = memory.host_together, memory.host_peak, memory.children_peak
    if together is not None and main is not None and own:
        if units.size(main) == units.size(together):  # a program that a library has asked something
            return [f"host {units.size(main)}"]
        parts = f"{units.size(main)} of the script, {units.size(own)} of child processes"
        return [f"host {units.size(together)} ({parts})"]
    said = [] if main is None else [f"host {units.size(main)}"]
    if memory.worker_peaks and own is None:
        count = len(memory.worker_peaks)
        children = "a child process" if count == 1 else f"{count} child processes"
        said.append(f"{children} up to {units.size(memory.worker_peaks[0])}")
    return said


def _loss(found: Figures) -> str:
    if found.first_loss is None or found.last_loss is None:
        return "none seen"
    bad = f" · {found.losses_not_finite} not finite" if found.losses_not_finite else ""
    return f"{found.first_loss:.4g} → {found.last_loss:.4g}{bad}"


def _script_facts(measurement: Measurement) -> list[tuple[str, str]]:
    inventory = measurement.inventory
    facts = _alike("model", map(_model, inventory.models))
    if not inventory.models:
        facts.append(("model", f"none seen{_uncounted(inventory)}"))
    facts += _alike("optimizer", map(_optimizer, inventory.optimizers))
    if not inventory.optimizers:
        facts.append(("optimizer", "none stepped: a backward pass counts as a step"))
    facts += _alike("loader", map(_loader, inventory.loaders))
    if not inventory.loaders:
        facts.append(("loader", "none: the script draws its batches by hand"))
    facts.append(("precision", _precision(inventory, measurement.software.device)))
    return facts


def _uncounted(inventory: Inventory) -> str:
    """Without a loader either, nobody knows how many samples a step is made on."""
    return "" if inventory.loaders else ": samples are not counted"


def _alike(label: str, told: Iterable[str]) -> list[tuple[str, str]]:
    """Each once, with how many there are: a library may build a loader for every pass."""
    counts = Counter(told)
    return [(label, f"{n} × {text}" if n > 1 else text) for text, n in counts.items()]


def _model(model: ModelSeen) -> str:
    frozen = model.parameters - model.trainable
    note = f" ({units.count(frozen)} frozen)" if frozen else ""
    where = "+".join(model.devices)
    return (
        f"{model.name}, {units.count(model.parameters)} parameters{note},"
        f" {'+'.join(model.dtypes)} on {where}"
    )


def _optimizer(optimizer: OptimizerSeen) -> str:
    kind = "fused" if optimizer.fused else "foreach" if optimizer.foreach else ""
    groups = f", {optimizer.groups} groups" if optimizer.groups > 1 else ""
    flag = f", {kind}" if kind else ""
    return f"{optimizer.name} over {units.count(optimizer.parameters)} parameters{groups}{flag}"


def _loader(loader: LoaderSeen) -> str:
    parts = [loader.name if loader.name != "DataLoader" else loader.dataset]
    if loader.samples is not None:
        # A dataset that makes batches by itself has as many items as there are of those.
        makes_batches = loader.batch_size is None and loader.samples == loader.batches
        items = "batches" if makes_batches else "samples"
        parts.append(f"{units.count(loader.samples)} {items}")
    if loader.batch_size is not None:
        parts.append(f"batch {loader.batch_size}")
    parts.append(f"{loader.workers} worker{'' if loader.workers == 1 else 's'}")
    parts += [
        text for holds, text in ((loader.shuffled, "shuffled"), (loader.pinned, "pinned")) if holds
    ]
    return ", ".join(parts)


def _precision(inventory: Inventory, device: str) -> str:
    precision = inventory.precision
    parts = [f"autocast to {precision.autocast}" if precision.autocast else "no autocast"]
    if precision.grad_scaler:
        parts.append("gradient scaler")
    if device != "cpu":
        parts.append(f"TF32 in matrix products {'on' if precision.tf32_matmul else 'off'}")
        parts.append(f"in cuDNN {'on' if precision.tf32_cudnn else 'off'}")
    return ", ".join(parts)


def _shield(shielding: Shielding) -> list[tuple[str, str]]:
    facts = []
    if shielding.kept_apart:
        kept = units.some(shielding.kept_apart)
        what = f"{kept}: only in scratch space, your files are as they were"
        facts.append(("shielded", what))
    if shielding.unshielded:
        facts.append(("unshielded", units.some(shielding.unshielded)))
    return facts

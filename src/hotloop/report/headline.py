"""What a study comes to: one sentence and a few figures that go with it, as plain rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotloop import units
from hotloop.figures import figures
from hotloop.report import equivalence_rows, search_rows
from hotloop.report.search_figures import Pace, SearchFigures, search_figures
from hotloop.report.sides import Side
from hotloop.report.waterfall_rows import Gain, gain
from hotloop.study import Found, Study
from hotloop.trial.trial import State, Trial

WITH_CHILDREN = "with child processes"


@dataclass(frozen=True)
class Headline:
    big: str
    """A few words or a figure: "1.82× faster"."""
    sentence: str
    tone: str
    """"good", "plain" or "bad"."""
    gain: Gain | None = None


@dataclass(frozen=True)
class KeyFigure:
    label: str
    value: str
    before: str = ""
    """What it was without the plan."""
    note: str = ""


def headline(study: Study, sides: tuple[Side, ...]) -> Headline:
    if study.command == "verify":
        return _verified(study)
    if not sides and _has_failed(study):
        return Headline("The job itself failed", _why(study.trials[0]), "bad")
    if study.found is not None:
        return _searched(study, study.found)
    return _profiled(study, sides)


def _why(trial: Trial) -> str:
    """With what the script's own exception says, as far as it is one line."""
    failure = trial.failure
    said = failure.message.strip().splitlines()[:1] if failure else []
    is_told = failure is not None and f": {failure.kind}: " in trial.reason
    if not said or is_told or said[0] in trial.reason:
        return trial.reason
    return f"{trial.reason.rstrip('.')}: {said[0]}"


def _has_failed(study: Study) -> bool:
    """As it is, and nobody tried to make it run."""
    rescue = study.found.rescue if study.found else None
    return bool(study.trials) and rescue is None and study.trials[0].state is not State.COMPLETE


def key_figures(study: Study, sides: tuple[Side, ...]) -> tuple[KeyFigure, ...]:
    if study.found is not None and study.command == "optimize":
        return _of_search(search_figures(study))
    return _of_profile(study, sides)


def _searched(study: Study, found: Found) -> Headline:
    told = search_rows.rows(study).headline
    if found.plan is None:
        return _without_plan(study, found)
    if found.rescue is not None:
        return Headline("It runs", told, "good")
    shown = gain(found.proof.comparison) if found.proof else None
    if shown is None:
        return Headline("A plan was found", told, "good")
    better = "less memory" if found.options.objective == "memory" else "faster"
    # The figure stands above the sentence, and need not stand in it again.
    rest = told.partition("], ")[2] if "], " in told else told
    return Headline(f"{shown.ratio:.2f}× {better}", _capital(rest), "good", shown)


def _without_plan(study: Study, found: Found) -> Headline:
    if not found.verdict:
        told = f"{_runs(len(study.trials))} so far. hotloop optimize --resume goes on."
        return Headline("The search is not finished", told, "plain")
    crashed = [trial for trial in study.trials if trial.state is not State.COMPLETE]
    screened = [trial for trial in study.trials if trial.purpose == "screen"]
    # One that the budget cut short counts among those that were not tried.
    was_tried = found.climb is None or bool(found.climb.tried)
    all_failed = was_tried and bool(screened) and all(trial in crashed for trial in screened)
    if all_failed:
        tried = _runs(len(screened))
        told = f"As it is the job runs. Of {tried} that tried something none came to its end: "
        return Headline("Everything that was tried failed", f"{told}why is said below.", "bad")
    return Headline("No plan is handed out", found.verdict, "plain")


def _verified(study: Study) -> Headline:
    found = study.found.equivalence if study.found else None
    same = found is not None and found.same
    sentence = equivalence_rows.verdict(found)
    if found is not None and found.reasons:
        sentence = f"{_capital(found.reasons[0])}."
    big = "The same training" if same else "Not shown to be the same training"
    return Headline(big, sentence, "good" if same else "bad")


def _profiled(study: Study, sides: tuple[Side, ...]) -> Headline:
    measurement = sides[0].trial.measurement if sides else None
    found = figures(measurement) if measurement else None
    if found is None:
        return Headline("Nothing was measured", "No step of the script was seen.", "bad")
    verdict = (
        study.diagnosis.verdict
        if study.diagnosis
        else "It was timed. What limits it was not looked for."
    )
    return Headline(f"{units.seconds(found.step.mean)} a step", verdict, "plain")


def _of_search(found: SearchFigures) -> tuple[KeyFigure, ...]:
    before, after = found.before, found.after
    kept = [
        _change("a step", before, after, lambda pace: units.seconds(pace.step_seconds)),
        _change("an epoch", before, after, _epoch),
        _change("peak memory", before, after, _memory, _whose_memory(before, after)),
        KeyFigure("the search took", units.seconds(found.seconds), note=_runs(found.runs)),
    ]
    if found.payback is not None:
        steps = f"{units.count(found.payback.steps)} steps"
        note = f"{units.seconds(found.payback.seconds)} under the plan"
        kept.append(KeyFigure("paid back after", steps, note=note))
    return tuple(one for one in kept if one is not None)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _change(
    label: str,
    before: Pace | None,
    after: Pace | None,
    words: Callable[[Pace], str],
    note: str = "",
) -> KeyFigure | None:
    """None where it was not measured: nothing is said then."""
    then = words(before) if before else ""
    now = words(after) if after else ""
    return KeyFigure(label, now or then, then if now else "", note) if now or then else None


def _epoch(pace: Pace) -> str:
    return "" if pace.epoch_seconds is None else units.seconds(pace.epoch_seconds)


def _memory(pace: Pace) -> str:
    return "" if pace.memory is None else units.size(pace.memory)


def _whose_memory(*paces: Pace | None) -> str:
    return WITH_CHILDREN if any(pace and pace.counts_children for pace in paces) else ""


def _of_profile(study: Study, sides: tuple[Side, ...]) -> tuple[KeyFigure, ...]:
    measurement = sides[0].trial.measurement if sides else None
    found = figures(measurement) if measurement else None
    if measurement is None or found is None:
        return ()
    rate, held = found.samples_per_second, measurement.memory.peak
    whose = WITH_CHILDREN if measurement.memory.counts_children else ""
    epoch = found.epoch_seconds
    numbers = study.diagnosis.numbers if study.diagnosis else None
    counted = numbers is not None and not numbers.flops_are_lower_bound
    busy = numbers.mfu_measured if numbers and counted else None
    texts = [
        ("throughput", "" if rate is None else f"{units.rate(rate)} samples/s", ""),
        ("an epoch", "" if epoch is None else units.seconds(epoch), ""),
        ("the slowest of 20 steps", units.seconds(found.step.p95), "95th percentile"),
        ("peak memory", "" if held is None else units.size(held), whose),
        (
            "of the machine's peak",
            "" if busy is None else units.percent(busy),
            "in matrix products",
        ),
    ]
    return tuple(KeyFigure(label, value, note=note) for label, value, note in texts if value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

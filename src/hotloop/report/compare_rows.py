"""What `hotloop compare` has to say, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import units
from hotloop.comparing import Compared, Group, Verdict

ONE_EACH = "one process each tells nothing of the next process, so there is no interval"
WILD = 2.0
"""Times as long as the fastest process of a side takes the slowest: then no ratio means much."""
MORE = "time more processes: hotloop profile --repeat 5"


@dataclass(frozen=True)
class CompareRows:
    headline: str
    tone: str
    """"good", "plain" or "bad"."""
    facts: tuple[tuple[str, str], ...]


def rows(found: Compared) -> CompareRows:
    tone = "bad" if found.beyond else "good" if found.verdict is Verdict.FASTER else "plain"
    return CompareRows(_headline(found), tone, tuple(_facts(found)))


def _headline(found: Compared) -> str:
    limit = units.percent(found.threshold)
    if found.verdict is Verdict.SLOWER:
        allowed = "more" if found.beyond else "no more"
        return f"Slower: a step takes {_ratio(found)} as long, {allowed} than the {limit} allowed."
    if found.verdict is Verdict.FASTER:
        return f"Faster: a step takes {_ratio(found)} as long."
    if found.verdict is Verdict.THE_SAME:
        return f"As fast as before, within {limit}: a step takes {_ratio(found)} as long."
    if found.low is None:
        return f"Cannot tell: a step takes {found.ratio:.3f}× as long, but {ONE_EACH}."
    if _differ(found) > WILD:
        apart = f"processes of one side differ by {_differ(found):.1f}×"
        return f"Cannot tell: {apart}, too much to compare. Was the machine busy with other work?"
    return f"Cannot tell: a step takes {_ratio(found)} as long: it may be slower or faster."


def _differ(found: Compared) -> float:
    sides = (found.before.step_seconds, found.after.step_seconds)
    return max(max(seconds) / min(seconds) for seconds in sides)


def _ratio(found: Compared) -> str:
    if found.low is None or found.high is None:
        return f"{found.ratio:.3f}×"
    return f"{found.ratio:.3f}× [{_bound(found.low)}, {_bound(found.high)}]"


def _bound(value: float) -> str:
    """Beyond a hundredfold either way digits say nothing."""
    return ">100" if value > 100 else "<0.01" if value < 0.01 else f"{value:.3f}"


def _facts(found: Compared) -> list[tuple[str, str]]:
    before, after = found.before, found.after
    facts = [
        ("a step", f"{units.seconds(before.typical)} → {units.seconds(after.typical)}"),
        ("processes", f"{_processes(before)} → {_processes(after)}"),
    ]
    if before.memory is not None and after.memory is not None:
        facts.append(("memory", f"{units.size(before.memory)} → {units.size(after.memory)}"))
    if found.low is not None:
        meaning = (
            "of the ratio between processes, at a risk of 0.5% on either side, taking processes"
            " to differ as much on both sides"
        )
        facts.append(("interval", meaning))
    if found.verdict is Verdict.CANNOT_TELL:
        facts.append(("to tell", MORE))
    return facts + [("differs", difference) for difference in found.differences]


def _processes(group: Group) -> str:
    low, high = min(group.step_seconds), max(group.step_seconds)
    if len(group.step_seconds) == 1:
        return "1"
    return f"{len(group.step_seconds)} from {units.seconds(low)} to {units.seconds(high)}"

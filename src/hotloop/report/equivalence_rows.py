"""Whether a plan does the same training, and what that is known by, as plain rows."""

from __future__ import annotations

from hotloop.equivalence.judge import Equivalence, is_difference


def verdict(found: Equivalence | None) -> str:
    if found is None:
        return "Nothing was compared: the plan is not shown to do the same training."
    if found.same and found.against:
        return f"Over {found.steps} steps it trains as {found.against} does."
    if found.same:
        return f"Indistinguishable training over {found.steps} steps."
    if found.reasons and not any(map(is_difference, found.reasons)):
        return f"Could not be shown to train the same: {found.reasons[0].rstrip('.')}."
    return "Not the same training."


def facts(found: Equivalence) -> list[tuple[str, str]]:
    """Label and text. Labels may repeat."""
    rows = [("differs" if is_difference(one) else "not shown", one) for one in found.reasons]
    rows += [("differs", f"{lever} changes the training, as allowed") for lever in found.changed]
    if found.changed and not found.steps:
        return rows
    rows += [("against", found.against)] if found.against else []
    rows.append(("looked at", f"{found.steps} steps, {_forced(found.forced)}"))
    rows += [("compared", sentence) for sentence in found.compared]
    if found.closeness is not None:
        rows.append(("arithmetic", _closeness(found.closeness)))
    rows += [("not compared", sentence) for sentence in found.not_compared]
    return rows


def _closeness(largest: float) -> str:
    if largest < 1e-6:
        return "no difference beyond a millionth of what would still pass"
    return f"the largest difference is {largest:.2g} of what would still pass"


def _forced(count: int) -> str:
    if not count:
        return "none of them compared by arithmetic"
    return f"{count} of them from the same weights, compared tensor by tensor"

from __future__ import annotations

from hotloop.report.equivalence_rows import facts, verdict
from tests.report.studies import same


def test_the_same_training_is_only_claimed_over_the_steps_looked_at() -> None:
    assert verdict(same()) == "Indistinguishable training over 60 steps."
    assert facts(same()) == [
        ("looked at", "60 steps, 3 of them from the same weights, compared tensor by tensor"),
        ("compared", "Every batch of loader 0 by its checksum."),
        ("arithmetic", "the largest difference is 0.12 of what would still pass"),
        ("not compared", "Dropout, which was off."),
    ]


def test_what_differs_comes_first() -> None:
    other = same(same=False, reasons=("Batch 7 differs.",), forced=0, closeness=None)
    assert verdict(other) == "Not the same training."
    assert facts(other)[:2] == [
        ("differs", "Batch 7 differs."),
        ("looked at", "60 steps, none of them compared by arithmetic"),
    ]
    assert "arithmetic" not in dict(facts(other))


def test_what_could_not_be_examined_is_no_difference() -> None:
    why = "the job as it is could not be examined: The script failed."
    found = same(same=False, reasons=(why,), steps=0, forced=0, closeness=None)
    assert verdict(found) == f"Could not be shown to train the same: {why}"
    assert facts(found)[0] == ("not shown", why)
    both = same(same=False, reasons=("Batch 7 differs.", why))
    assert verdict(both) == "Not the same training."
    assert [label for label, _ in facts(both)[:2]] == ["differs", "not shown"]


def test_nothing_compared_shows_nothing() -> None:
    assert "not shown" in verdict(None)

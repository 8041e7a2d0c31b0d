from __future__ import annotations

from dataclasses import replace

from hotloop.plan import LeverSetting, Plan
from hotloop.report import command_words, equivalence_rows
from hotloop.report.headline import headline
from hotloop.report.search_rows import rows
from hotloop.report.sides import sides
from hotloop.report.trial_rows import Telling
from hotloop.search.rescue import Attempt, Rescue
from hotloop.study import Found, Options, Study
from hotloop.trial.trial import State
from tests.report.studies import failed, same, searched, timed

CHUNKED = Plan((LeverSetting("chunked_loss", {}),))
HALF = Plan((LeverSetting("checkpoint_blocks", {"every": 2}),))
STARVED = "The GPU's memory was exhausted before its first training step."
VERDICT = "It runs with checkpoint_blocks, where the job as it is runs out of memory."
TRIED = (Attempt(CHUNKED, False, STARVED), Attempt(HALF, True, ""))


def rescued(**changes: object) -> Study:
    rescue = Rescue(STARVED, TRIED, HALF, shown=("its beginning",), not_shown=("gradients",))
    found = Found(Options(objective="memory"), rescue=rescue, plan=HALF, verdict=VERDICT)
    return searched(
        replace(found, **changes),  # type: ignore[arg-type]
        failed("baseline", Plan(), state=State.OUT_OF_MEMORY, reason=STARVED),
        failed("rescue", CHUNKED, state=State.OUT_OF_MEMORY, reason=STARVED),
        timed("rescue", HALF, 40),
    )


def test_the_headline_says_that_it_runs_how_fast_and_nothing_of_indistinguishable() -> None:
    found = rows(rescued())
    assert found.headline == f"{VERDICT} 40.0 ms a step, 1.0 GiB."
    assert found.won
    other = same(against="chunked_loss")
    assert "indistinguishable" not in rows(rescued(equivalence=other)).headline


def test_what_was_tried_and_what_is_shown_is_told() -> None:
    facts = [fact for fact in rows(rescued()).facts if fact[0] in LABELS]
    assert facts == [
        ("as it is", STARVED),
        ("attempt", f"chunked_loss: {STARVED}"),
        ("attempt", "checkpoint_blocks (every 2): it runs"),
        ("shown", "its beginning"),
        ("not shown", "gradients"),
    ]


LABELS = {"as it is", "attempt", "shown", "not shown"}


def test_the_page_does_not_say_that_the_job_failed() -> None:
    study = rescued()
    assert headline(study, sides(study)).big == "It runs"
    lost = rescued(plan=None, verdict="Nothing was found that makes this job fit into memory.")
    assert headline(lost, ()).big == "No plan is handed out"


def test_what_was_compared_with_something_else_is_said_to_be() -> None:
    found = same(against="the job as it is on batches of 1/4")
    assert equivalence_rows.verdict(found) == (
        "Over 60 steps it trains as the job as it is on batches of 1/4 does."
    )
    assert ("against", "the job as it is on batches of 1/4") in equivalence_rows.facts(found)


def test_trials_are_told_by_what_they_are_for() -> None:
    telling = Telling("memory")
    told = [telling.tell(trial) for trial in rescued().trials]
    assert [row.words for row in told] == [
        "as it is",
        "to make it run: chunked_loss",
        "to make it run: checkpoint_blocks (every 2)",
    ]
    assert told[1].ending == f"out of memory: {STARVED}"
    assert told[2].value == "40.0 ms"  # no longer bytes
    faster = Plan((LeverSetting("bf16", {}), *HALF.levers))
    kept = telling.tell(timed("screen", faster, 30))
    assert (kept.words, kept.outcome) == ("+ bf16", "kept")
    assert telling.words("cost", Plan()) == "timed on smaller batches: as it is"


def test_a_job_that_does_not_run_by_itself_is_not_to_be_verified() -> None:
    assert len(command_words.to_apply("train.py", "hotloop.json")) == 2
    (only,) = command_words.to_apply("train.py", "hotloop.json", comparable=False)
    assert only[1].startswith("hotloop run --plan hotloop.json")

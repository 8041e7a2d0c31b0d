from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.levers.base import Receipt
from hotloop.measurement import Memory
from hotloop.plan import LeverSetting, Plan
from hotloop.report.trial_rows import Telling, TrialRow
from hotloop.trial.company import Company
from hotloop.trial.trial import State, Trial
from tests.report.studies import BF16, BOTH, COMPILE, failed, numbered, timed

COMPILE_ALONE = Plan((COMPILE,))
DEFAULT = LeverSetting("compile", {"mode": "default"})


def told(*trials: Trial, objective: str = "speed") -> list[TrialRow]:
    telling = Telling(objective)
    return [telling.tell(trial) for trial in numbered(*trials)]


def test_what_is_faster_is_kept_and_built_upon() -> None:
    rows = told(
        timed("baseline", Plan(), 20), timed("screen", Plan((BF16,)), 16), timed("screen", BOTH, 10)
    )
    assert [row.number for row in rows] == [1, 2, 3]
    assert [row.words for row in rows] == ["as it is", "+ bf16", "+ compile (reduce-overhead)"]
    assert [row.value for row in rows] == ["20.0 ms", "16.0 ms", "10.0 ms"]
    assert [row.ratio for row in rows] == ["", "1.25×", "2.00×"]
    assert [row.ending for row in rows] == ["", "kept", "kept"]


def test_a_job_that_is_run_once_more_is_not_called_faster_than_itself() -> None:
    rows = told(
        timed("baseline", Plan(), 30),
        timed("baseline", Plan(), 20),
        timed("screen", Plan((BF16,)), 10),
    )
    assert [row.words for row in rows] == ["as it is", "once more: as it is", "+ bf16"]
    assert [row.ratio for row in rows] == ["", "", "2.00×"]


@pytest.mark.parametrize(
    ("purpose", "words"), [("proof", "proof 1: {}"), ("again", "once more: {}")]
)
def test_a_plan_is_compared_with_the_job_that_ran_beside_it(purpose: str, words: str) -> None:
    rows = told(
        timed("baseline", Plan(), 30), timed(purpose, Plan(), 10), timed(purpose, Plan((BF16,)), 10)
    )
    assert [(row.words, row.ratio) for row in rows[1:]] == [
        (words.format("as it is"), ""),
        (words.format("the plan"), "1.00×"),
    ]


def crowded(purpose: str, plan: Plan, ms: float) -> Trial:
    return timed(purpose, plan, ms, company=Company(others=0.6, stolen=0.0, idle=0.0))


def test_what_ran_beside_others_is_compared_with_what_does_so_too() -> None:
    rows = told(
        timed("baseline", Plan(), 20),
        crowded("screen", Plan((BF16,)), 40),
        crowded("beside", Plan(), 60),
        crowded("screen", BOTH, 50),
        timed("screen", BOTH, 20),
        timed("beside", Plan((BF16,)), 14),
    )
    assert [row.words for row in rows[2::3]] == [
        "once more: as it is",
        "once more: the best so far",
    ]
    assert [row.outcome for row in rows] == [
        "",
        "not compared",
        "so the run before it is kept",
        "refused",
        "not compared",
        "so the run before it is refused",
    ]
    assert [row.ratio for row in rows] == ["", "", "", "1.20×", "", ""]


def test_what_is_not_faster_is_refused_and_not_built_upon() -> None:
    rows = told(
        timed("baseline", Plan(), 20),
        timed("screen", Plan((BF16,)), 19.8),
        timed("screen", BOTH, 10),
        timed("screen", Plan((BF16, DEFAULT)), 12),
    )
    assert rows[1].ending == "refused: no gain over 20.0 ms"
    assert rows[2].words == "+ bf16 + compile (reduce-overhead)"
    assert rows[3].words == "bf16 + compile (default)"
    assert rows[3].ending == "refused: no gain over 10.0 ms"


def test_what_the_whole_training_does_not_make_up_for_is_refused_at_once() -> None:
    filled = (Receipt("cache_dataset", True, once_seconds=7.0),)
    screened = timed("screen", Plan((LeverSetting("cache_dataset", {}),)), 10, receipts=filled)
    short = replace(timed("baseline", Plan(), 20), ran_out=True)
    (_, row) = told(short, screened)
    assert (row.value, row.ratio) == ("10.0 ms", "2.00×")
    assert row.ending.startswith("refused: it takes 7.00 s once, and the ")
    (_, row) = told(timed("baseline", Plan(), 20), screened)
    assert row.ending == "kept"


def test_after_an_examination_it_begins_anew() -> None:
    """What was kept until then did not pass."""
    fused = LeverSetting("fused_optimizer", {})
    rows = told(
        timed("baseline", Plan(), 20),
        timed("screen", Plan((BF16,)), 10),
        timed("screen", Plan((BF16, fused)), 9),
        timed("candidate", Plan((BF16, fused)), 50),
        timed("screen", Plan((fused,)), 21),
        timed("screen", COMPILE_ALONE, 15),
    )
    assert rows[4].words == "+ fused_optimizer"
    assert rows[4].ending == "refused: no gain over 20.0 ms"
    assert rows[5].ending == "kept"


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (State.OUT_OF_MEMORY, "out of memory"),
        (State.CRASHED, "crashed"),
        (State.TIMED_OUT, "took too long"),
        (State.NOT_APPLIED, "took no effect"),
        (State.INTERRUPTED, "interrupted"),
        (State.NOTHING_MEASURED, "nothing measured"),
    ],
)
def test_a_failure_says_what_and_why_on_one_line(state: State, says: str) -> None:
    trial = failed("screen", BOTH, state=state, reason="Because\nof that.")
    row = told(timed("baseline", Plan(), 20), trial)[1]
    assert row.ending == f"{says}: Because of that."
    assert row.value == row.ratio == ""


def test_proofs_are_counted_by_round_and_name_what_is_left_out() -> None:
    one_round = [Plan(), BOTH, Plan((COMPILE,)), Plan((BF16,))]
    rows = told(*(timed("proof", plan, 10) for plan in (*one_round, *reversed(one_round))))
    assert [row.words for row in rows] == [
        "proof 1: as it is",
        "proof 1: the plan",
        "proof 1: without bf16",
        "proof 1: without compile",
        "proof 2: without compile",
        "proof 2: without bf16",
        "proof 2: the plan",
        "proof 2: as it is",
    ]


@pytest.mark.parametrize(
    ("purpose", "plan", "words"),
    [
        ("reference", Plan(), "examined: reference, as it is"),
        ("exam", BOTH, "examined: exam, the plan"),
        ("soak", Plan(), "soak: as it is"),
        ("soak", BOTH, "soak: the plan"),
    ],
)
def test_the_speed_of_a_trial_that_was_watched_closely_is_not_said(
    purpose: str, plan: Plan, words: str
) -> None:
    row = told(timed("baseline", Plan(), 20), timed(purpose, plan, 90))[1]
    assert (row.words, row.value, row.ratio, row.ending) == (words, "", "", "")


def test_a_search_for_memory_is_told_in_bytes() -> None:
    big, small = timed("baseline", Plan(), 20), timed("screen", BOTH, 30)
    assert small.measurement is not None
    lean = replace(small.measurement, memory=Memory(host_peak=2**29))
    row = told(big, replace(small, measurement=lean), objective="memory")[1]
    assert (row.value, row.ratio, row.ending) == ("512 MiB", "2.00×", "kept")


def test_memory_is_the_gpus_where_there_is_one() -> None:
    assert Memory(host_peak=7).peak == 7
    assert Memory(host_peak=7, device_peak_allocated=3, children_peak=2).peak == 3


def test_on_a_host_it_is_also_that_of_child_processes() -> None:
    assert Memory(host_peak=7, children_peak=2).peak == 9
    assert Memory(children_peak=2).peak is None
    wide = timed("baseline", Plan(), 20)
    assert wide.measurement is not None
    beside = replace(wide.measurement, memory=Memory(host_peak=2**29, children_peak=2**29))
    row = told(replace(wide, measurement=beside), objective="memory")[0]
    assert row.value == "1.0 GiB"
    assert Memory().peak is None


def test_anew_against_the_job_as_it_ran_last() -> None:
    rows = told(
        timed("baseline", Plan(), 30),
        timed("baseline", Plan(), 20),
        timed("screen", Plan((BF16,)), 10),
        timed("candidate", Plan((BF16,)), 50),
        timed("screen", COMPILE_ALONE, 25),
    )
    assert rows[4].ending == "refused: no gain over 20.0 ms"

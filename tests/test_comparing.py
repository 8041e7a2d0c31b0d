from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from hotloop import comparing, study
from hotloop.comparing import Compared, Group, Verdict, compare, judged
from hotloop.errors import NotComparable
from hotloop.machine import Gpu
from hotloop.measurement import Software
from hotloop.plan import Plan
from hotloop.report.compare_rows import rows
from hotloop.study import Study
from hotloop.trial.trial import State
from tests.builders import job, machine
from tests.report.studies import BF16, failed, numbered, timed, won


def profiled(*ms: float, **changes: Any) -> Study:
    """Timed so often, a step taking so long each time."""
    trials = [timed("" if not at else "repeat", Plan(), each) for at, each in enumerate(ms)]
    return replace(study.begin("profile", job(), machine()), trials=numbered(*trials), **changes)


def of(before: list[float], after: list[float], threshold: float = 0.05) -> Compared:
    return judged(Group(tuple(before), None), Group(tuple(after), None), threshold)


class TestVerdict:
    def test_slower(self) -> None:
        found = of([10.0, 10.1, 9.9], [11.0, 11.1, 10.9])
        assert found.verdict is Verdict.SLOWER and found.beyond
        assert found.low is not None and found.high is not None
        assert 1 < found.low < found.ratio < found.high
        assert found.ratio == pytest.approx(1.1, rel=1e-3)

    def test_slower_by_less_than_the_threshold_does_not_fail(self) -> None:
        found = of([10.0, 10.01, 9.99], [10.3, 10.31, 10.29])
        assert found.verdict is Verdict.SLOWER and not found.beyond and not found.may_be_beyond

    def test_faster(self) -> None:
        found = of([10.0, 10.1, 9.9], [8.0, 8.1, 7.9])
        assert found.verdict is Verdict.FASTER and not found.beyond

    def test_the_same(self) -> None:
        found = of([10.0, 10.01, 9.99, 10.0], [10.0, 10.02, 9.99, 10.01])
        assert found.verdict is Verdict.THE_SAME and not found.may_be_beyond

    def test_too_noisy(self) -> None:
        found = of([10.0, 12.0, 9.0], [11.0, 13.0, 9.5])
        assert found.verdict is Verdict.CANNOT_TELL and not found.beyond and found.may_be_beyond

    def test_one_process_each_has_no_interval(self) -> None:
        found = of([10.0], [20.0])
        assert found.verdict is Verdict.CANNOT_TELL and found.low is None
        assert found.ratio == pytest.approx(2) and not found.beyond and found.may_be_beyond

    def test_one_process_against_several_has_one(self) -> None:
        found = of([10.0, 10.1, 9.9, 10.05, 9.95], [14.0])
        assert found.verdict is Verdict.SLOWER

    def test_nothing_is_claimed_where_nothing_changed(self) -> None:
        """Processes 10% apart, as on a busy machine: either claim is a false alarm."""
        draw = random.Random(0)
        claims = 0
        for _ in range(500):
            seconds = [draw.lognormvariate(0, 0.1) for _ in range(8)]
            found = of(seconds[:4], seconds[4:])
            claims += found.verdict in (Verdict.SLOWER, Verdict.FASTER)
        assert claims <= 12  # 1% is the risk on both sides together


class TestStudies:
    def test_all_timed_processes_count(self) -> None:
        found = compare([profiled(10, 10.1)], [profiled(12, 12.1), profiled(12.2)], 0.05)
        assert len(found.before.step_seconds) == 2 and len(found.after.step_seconds) == 3
        assert found.beyond
        assert found.before.memory == 2**30

    def test_of_a_search_the_job_as_it_is(self) -> None:
        found = compare([won()], [won()], 0.05)
        assert found.before.step_seconds == pytest.approx((0.020, 0.020))

    def test_a_script_that_was_changed_is_what_is_asked_about(self) -> None:
        compare([profiled(10, job_digest="a")], [profiled(10, job_digest="b")], 0.05)

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"job": job(args=("--lr", "1"))}, "another job (train.py --lr 3e-4, train.py --lr 1)"),
            ({"machine": replace(machine(), cpu="Another CPU")}, "another processor"),
            ({"machine": replace(machine(), gpus=(Gpu("NVIDIA H200", 1),))}, "another GPU"),
            ({"hotloop": "9"}, "another hotloop"),
        ],
    )
    def test_what_differs_is_said_instead_of_a_number(
        self, changes: dict[str, Any], says: str
    ) -> None:
        with pytest.raises(NotComparable) as caught:
            compare([profiled(10)], [profiled(10, **changes)], 0.05)
        assert says in caught.value.sentence
        found = compare([profiled(10)], [profiled(10, **changes)], 0.05, anyway=True)
        assert says in found.differences[0]

    def test_another_torch(self) -> None:
        other = profiled(10)
        made = other.trials[0].measurement
        assert made is not None
        newer = replace(made, software=Software(python="3.11.9", torch="2.99"))
        other = replace(other, trials=(replace(other.trials[0], measurement=newer),))
        with pytest.raises(NotComparable, match=r"another torch \(2.13.0, 2.99\)"):
            compare([profiled(10)], [other], 0.05)

    def test_another_plan(self) -> None:
        other = profiled(10)
        other = replace(other, trials=(replace(other.trials[0], plan=Plan((BF16,))),))
        with pytest.raises(NotComparable, match=r"another plan \(none, bf16\)"):
            compare([profiled(10)], [other], 0.05)

    def test_a_study_in_which_nothing_was_timed(self) -> None:
        crashed = replace(profiled(), trials=(failed("", Plan(), state=State.CRASHED),))
        with pytest.raises(NotComparable, match="timed to its end"):
            compare([profiled(10)], [crashed], 0.05, anyway=True)


class TestWords:
    @pytest.mark.parametrize(
        ("before", "after", "says", "tone"),
        [
            ([10, 10.1, 9.9], [12, 12.1, 11.9], "Slower: a step takes 1.200× [1.", "bad"),
            ([10, 10.01, 9.99], [10.3, 10.31, 10.29], "no more than the 5.0% allowed", "plain"),
            ([10, 10.1, 9.9], [8, 8.1, 7.9], "Faster: a step takes 0.800× [0.", "good"),
            ([10, 10.001, 9.999], [10, 10.001, 9.999], "As fast as before, within 5.0%", "plain"),
            ([10, 12, 9], [11, 13, 9.5], "Cannot tell: a step takes 1.079× [0.6", "plain"),
            ([10], [20], "Cannot tell: a step takes 2.000× as long, but one process each", "plain"),
        ],
    )
    def test_headlines(self, before: list[float], after: list[float], says: str, tone: str) -> None:
        told = rows(of(before, after))
        assert says in told.headline and told.tone == tone
        assert ("to tell" in dict(told.facts)) == told.headline.startswith("Cannot tell")

    def test_what_was_overlooked_is_said(self) -> None:
        found = compare([profiled(10)], [profiled(10, hotloop="9")], 0.05, anyway=True)
        assert dict(rows(found).facts)["differs"].startswith("another hotloop")


def test_every_purpose_that_is_timed_is_one_that_trials_have() -> None:
    assert set(comparing.AS_IT_IS) >= {"", "repeat"}

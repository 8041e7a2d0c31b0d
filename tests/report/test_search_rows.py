from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.levers.base import Receipt
from hotloop.measurement import GpuTimes, Kind, Losses
from hotloop.plan import Plan
from hotloop.report.search_rows import SearchRows, rows
from hotloop.search.climb import Climb
from hotloop.search.compare import Comparison
from hotloop.search.parts import Contribution
from hotloop.search.proof import Proof
from hotloop.search.rescue import Rescue
from hotloop.study import Options, Refused, Soaked, Unused
from tests.builders import on_gpu
from tests.report.studies import BF16, BOTH, lost, ratio, same, searched, timed, with_children, won


def texts(found: SearchRows, label: str) -> list[str]:
    return [text for name, text in found.facts if name == label]


class TestWon:
    def test_the_headline_claims_what_was_proven_and_shown(self) -> None:
        assert rows(won()).headline == (
            "2.00× faster [1.99, 2.01], indistinguishable training over 60 steps:"
            " 20.0 ms → 10.0 ms a step, an epoch in 1.00 s instead of 2.00 s"
        )

    def test_what_was_not_shown_is_not_claimed(self) -> None:
        for equivalence in (None, same(same=False)):
            assert "indistinguishable" not in rows(won(equivalence=equivalence)).headline

    def test_a_search_for_memory_claims_memory(self) -> None:
        headline = rows(won(options=Options(objective="memory"))).headline
        assert headline.startswith("2.00× less memory [1.99, 2.01], ")
        assert ": 1.0 GiB → 1.0 GiB, 20.0 ms → 10.0 ms a step" in headline

    def test_it_says_whose_memory_it_is(self) -> None:
        """Of a job whose plan starts workers, or which has some itself."""
        record = won(options=Options(objective="memory"))
        trials = tuple(with_children(trial, 2**29) for trial in record.trials)
        headline = rows(replace(record, trials=trials)).headline
        assert ": 1.5 GiB → 1.5 GiB with child processes, 20.0 ms" in headline

    def test_the_ladder_begins_with_the_job_as_it_is(self) -> None:
        start, bf16, compiled = rows(won()).ladder
        assert (start.name, start.gain, start.step, start.length) == ("as it is", "", "20.0 ms", 1)
        assert (bf16.name, bf16.gain) == ("+ bf16", "1.20× [1.19, 1.21]")
        assert (bf16.step, bf16.epoch, bf16.memory) == ("~16.0 ms", "~1.60 s", "1.0 GiB")
        assert (compiled.name, compiled.step) == ("+ compile (reduce-overhead)", "10.0 ms")
        assert round(compiled.length, 6) == 0.5
        assert rows(won()).screened

    def test_a_rung_without_a_measurement_says_so(self) -> None:
        record = searched(won().found, timed("proof", Plan(), 20), timed("proof", BOTH, 10))
        found = rows(record)
        bf16 = found.ladder[1]
        assert (bf16.step, bf16.epoch, bf16.memory, bf16.length) == ("–", "–", "–", 0.0)
        assert not found.screened

    def test_an_optimisation_the_job_fails_without_is_needed(self) -> None:
        failed = Comparison((), 1.0, 1.0, 1.0, False, "without it the job failed")
        proof = Proof(BOTH, ratio(20, 10), (Contribution("bf16", failed),), (), 0.0)
        assert [row.gain for row in rows(won(proof=proof)).ladder] == ["", "needed", "–"]

    def test_what_was_not_shown_to_help_by_itself_is_named(self) -> None:
        assert texts(rows(won()), "undecided") == []
        slower = Contribution("bf16", ratio(9, 10))
        proof = Proof(BOTH, ratio(20, 10), (slower, Contribution("compile", ratio(16, 10))), (), 0)
        (told,) = texts(rows(won(proof=proof)), "undecided")
        assert told.startswith("bf16: not shown to help by itself; it stays")

    def test_so_is_what_there_was_no_time_to_leave_out(self) -> None:
        proof = Proof(BOTH, ratio(20, 10), (), (), 0)
        (told,) = texts(rows(won(proof=proof)), "undecided")
        assert told == (
            "bf16, compile: there was no time to leave them out one by one; "
            "they stay in the plan that was proven as a whole"
        )
        one = replace(proof, contributions=(Contribution("bf16", ratio(9, 10)),))
        shown, unmeasured = texts(rows(won(proof=one)), "undecided")
        assert shown.startswith("bf16: ") and unmeasured.startswith("compile: there was no time")

    def test_what_the_job_needs_to_run_is_no_question(self) -> None:
        proof = Proof(BOTH, ratio(20, 10), (), (), 0)
        needs = Rescue("It ran out of memory.", (), Plan((BF16,)))
        (told,) = texts(rows(won(proof=proof, rescue=needs)), "undecided")
        assert told.startswith("compile: ")

    def test_where_the_time_goes_is_told_before_and_after(self) -> None:
        data = rows(won()).phases[0]
        assert (data.name, data.text.split()) == (
            "waiting for data",
            ["4.00", "ms", "→", "2.00", "ms"],
        )

    def test_of_which_runs_that_is_told_since_other_figures_are_means(self) -> None:
        trials = timed("baseline", Plan(), 9), *(timed("proof", Plan(), ms) for ms in (10, 12, 14))
        found = rows(searched(won().found, *trials, timed("proof", BOTH, 6)))
        assert found.phases_of == "of one run each: run 3, 12.0 ms a step; run 5, 6.00 ms a step"
        assert sum(row.before for row in found.phases) == pytest.approx(0.012)
        assert rows(lost()).phases_of == "of one run: run 1, 20.0 ms a step"

    def test_losses_that_are_no_numbers_are_told(self) -> None:
        study = won()
        losses = Losses([0, 1, 2], [0.5, None, None], not_finite=2)
        assert texts(rows(study), "loss") == []
        trials = tuple(
            replace(one, measurement=replace(one.measurement, losses=losses))
            if one.measurement and one.plan.is_empty
            else one
            for one in study.trials
        )
        assert texts(rows(replace(study, trials=trials)), "loss") == ["as it is: 2 of 3 not finite"]

    def test_beside_a_gpu_it_is_told_by_its_clock(self) -> None:
        study = won()
        assert rows(study).clock == ""
        seen = [trial.measurement for trial in study.trials]
        marked = [on_gpu(one.events, *Kind) if one else GpuTimes() for one in seen]
        trials = tuple(
            replace(trial, measurement=replace(one, gpu=gpu)) if one else trial
            for trial, one, gpu in zip(study.trials, seen, marked, strict=True)
        )
        found = rows(replace(study, trials=trials))
        assert found.clock == "on the GPU's own clock"
        assert [row.name for row in found.phases][:2] == ["waiting for data", "forward and loss"]

    def test_what_was_refused_is_told_with_its_reason_and_cost(self) -> None:
        found = rows(won())
        assert texts(found, "refused") == [
            "tf32: 1.004× is less than the 1.020× that would count (trying it took 65.0 s)"
        ]
        assert texts(found, "not tried") == ["pin_memory: the report says why"]

    def test_of_many_that_were_not_tried_a_few_are_named(self) -> None:
        refused = tuple(Refused(name, "no use", tried=False) for name in "abcde")
        assert texts(rows(won(refused=refused)), "not tried") == [
            "a, b, c and 2 more: the report says why"
        ]

    def test_a_failure_is_told_with_where_its_output_lies(self) -> None:
        reason, log = "It failed: ValueError: no.", "trial-3/output.log"
        found = rows(won(refused=(Refused("tf32", reason, True, 3.0, log),)))
        assert texts(found, "refused") == [
            "tf32: It failed: ValueError: no; its output is in trial-3/output.log, "
            "beside the study (trying it took 3.00 s)"
        ]

    def test_what_there_was_no_time_for_is_named_once(self) -> None:
        found = rows(won(climb=Climb(BOTH, (), untried=("channels_last", "pin_memory"))))
        assert texts(found, "not tried") == [
            "channels_last: no time was left for a trial and its proof",
            "pin_memory: the report says why",
        ]

    def test_what_the_plan_survived_and_what_it_did_not_meet(self) -> None:
        assert texts(rows(won()), "soak") == ["met a second epoch", "did not meet evaluation"]

    def test_the_cost_holds_what_the_search_does_not_rest_on_any_more(self) -> None:
        found = rows(replace(won(), unused=Unused(2, 60.0)))
        (said,) = texts(found, "cost")
        assert said.startswith(
            "9 runs of the script, 7.7 min; 60.0 s of them for what was run again"
        )

    def test_the_cost_and_when_it_is_paid_back(self) -> None:
        found = rows(won())
        assert texts(found, "cost") == ["7 runs of the script, 6.7 min"]
        assert texts(found, "payback") == ["after 40,001 steps, which take 6.7 min under the plan"]
        assert texts(found, "warm-up") == []

    @pytest.mark.parametrize(("ran_out", "more"), [(True, True), (False, False)])
    def test_of_a_training_that_is_over_sooner_it_is_said(self, ran_out: bool, more: bool) -> None:
        """100 steps are 1 s shorter, and what comes once takes 7."""
        receipt = Receipt("cache_dataset", True, once_seconds=7.0)
        proof = timed("proof", BOTH, 10, receipts=(receipt,))
        first = replace(timed("baseline", Plan(), 20), ran_out=ran_out)
        (said,) = texts(rows(searched(won().found, first, proof)), "warm-up")
        assert said.startswith("up to 7.00 s once, before steps are steady")
        assert ("more than the" in said) == more

    def test_warnings_are_handed_on(self) -> None:
        warned = rows(won(warnings=("The GPU is used by somebody else.",)))
        assert texts(warned, "warning") == ["The GPU is used by somebody else."]

    def test_trials_are_not_told_again(self) -> None:
        assert rows(won()).tried == ()


class TestNothingWon:
    def test_the_verdict_is_the_headline(self) -> None:
        found = rows(lost())
        assert (found.headline, found.won) == ("Nothing makes this job faster.", False)
        assert found.ladder == ()

    def test_what_was_tried_is_told(self) -> None:
        assert [(row.words, row.outcome) for row in rows(lost()).tried] == [
            ("as it is", ""),
            ("+ bf16", "refused"),
            ("+ compile (reduce-overhead)", "crashed"),
        ]

    def test_the_time_it_took_is_told(self) -> None:
        assert texts(rows(lost()), "cost") == ["3 runs of the script, 63.5 s"]
        assert texts(rows(lost()), "payback") == []

    def test_one_run_is_not_runs(self) -> None:
        record = lost()
        assert texts(rows(replace(record, trials=record.trials[:1])), "cost") == [
            "1 run of the script, 30.0 s"
        ]

    def test_a_plan_that_trains_otherwise_is_told_with_the_reason(self) -> None:
        other = same(same=False, reasons=("Step 30: the learning rate is 0.9, not 1.",))
        found = rows(lost(equivalence=other))
        assert texts(found, "differs") == ["Step 30: the learning rate is 0.9, not 1."]

    def test_a_plan_that_broke_down_is_told_with_the_reason(self) -> None:
        found = rows(lost(soaked=Soaked(False, "the short batch crashed")))
        assert texts(found, "soak") == ["failed: the short batch crashed"]

    def test_a_search_that_has_not_begun_has_nothing_to_say(self) -> None:
        assert rows(searched(None)).headline == ""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.report import proof_rows, search_rows
from hotloop.report.waterfall_rows import Stage, gain_words, rows
from hotloop.search import compare
from hotloop.search.parts import Contribution
from hotloop.study import Options, Study
from tests.report.studies import lost, ratio, won


def stages(study: Study) -> tuple[Stage, ...]:
    found = rows(study)
    assert found is not None
    return found.stages


def test_a_stage_for_the_job_and_one_for_each_optimisation() -> None:
    first, second, last = stages(won())
    assert (first.name, second.name, last.name) == (
        "as it is",
        "bf16",
        "compile (reduce-overhead)",
    )
    assert first.value == pytest.approx(0.020) and not first.screened
    assert second.value == pytest.approx(0.016) and second.screened
    assert last.value == pytest.approx(0.010) and last.before == second.value


def test_only_what_was_proven_has_an_interval() -> None:
    first, second, last = stages(won())
    assert first.low is None and second.low is None
    assert last.low is not None and last.high is not None and last.value is not None
    assert last.low < last.value < last.high < 0.011


def test_a_stage_that_was_never_measured_says_so() -> None:
    study = won()
    kept = tuple(one for one in study.trials if len(one.plan.levers) != 1)
    _, second, last = stages(replace(study, trials=kept))
    assert second.value is None
    assert last.before == pytest.approx(0.020)  # the one before it that was measured


def test_what_the_job_needs_is_no_gain() -> None:
    study = won()
    assert study.found is not None and study.found.proof is not None
    needed = Contribution("bf16", compare.failed((), "without it the job failed"), needed=True)
    proof = replace(study.found.proof, contributions=(needed,))
    second = stages(won(proof=proof))[1]
    assert second.own is None and second.note == "needed: without it the job failed"


def test_memory_is_counted_in_bytes() -> None:
    found = rows(won(options=Options(objective="memory")))
    assert found is not None
    assert found.words(found.stages[0].value) == "1.0 GiB"


def test_without_a_plan_there_is_no_ladder() -> None:
    assert rows(lost()) is None


def test_gains_in_words() -> None:
    found = rows(won())
    assert found is not None
    assert gain_words(found.whole) == "2.00× [1.99, 2.01]"
    assert gain_words(None) == ""


def test_the_proof_pair_by_pair() -> None:
    found = proof_rows.rows(won())
    assert found is not None and found.faster
    assert len(found.ratios) == 5
    assert found.ratios[2] == pytest.approx(2.0)
    assert found.counts == pytest.approx(1.02)
    assert proof_rows.rows(lost()) is None


def test_a_proof_that_did_not_hold_says_why() -> None:
    study = won()
    assert study.found is not None and study.found.proof is not None
    proof = replace(study.found.proof, comparison=ratio(10, 10.1))
    found = proof_rows.rows(won(proof=proof, plan=None))
    assert found is not None and not found.faster and found.reason


def test_pairs_that_do_not_count_are_named() -> None:
    study = won()
    assert study.found is not None and study.found.proof is not None
    found = study.found.proof.comparison
    usual = sorted(found.pairs, key=lambda pair: pair.baseline)[len(found.pairs) // 2]
    slow = replace(usual, baseline=13.6 * usual.baseline)
    once = replace(study.found.proof, comparison=replace(found, disturbed=(slow,)))
    said = proof_rows.rows(won(proof=once))
    assert said is not None
    assert said.disturbed == "a pair in which the job as it is took 13.6× as long as usual"
    assert ("not counted", said.disturbed) in search_rows.rows(won(proof=once)).facts
    twice = replace(study.found.proof, comparison=replace(found, disturbed=(slow, slow)))
    said = proof_rows.rows(won(proof=twice))
    assert said is not None
    assert said.disturbed.startswith("2 pairs in which") and "up to 13.6×" in said.disturbed
    assert "not counted" not in [label for label, _ in search_rows.rows(study).facts]

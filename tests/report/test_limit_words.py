from __future__ import annotations

from dataclasses import replace

from hotloop.diagnose.base import Effort, Finding
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.plan import Plan
from hotloop.report.limit_words import limit_words
from hotloop.report.search_rows import rows
from hotloop.search.climb import Climb
from hotloop.study import Refused, Study
from tests.report.studies import lost, won

PROMISE = "torch computes with 1 thread: with that mended the job would be 1.5× as fast."


def limited(study: Study, *levers: str) -> Study:
    finding = Finding("too_few_threads", "1 thread", 0.3, "More.", Effort.SETTING, levers=levers)
    return replace(study, diagnosis=Diagnosis(PROMISE, (finding,), (), Numbers()))


THREADS = Refused("threads", "worse: 0.107× the best until then", True, 30.0)
AFFINITY = Refused("affinity", "no gain", True)
BARRED = Refused("affinity", "it needs several sockets", False)


def test_a_promise_that_was_tried_in_vain_is_told_with_what_came_of_it() -> None:
    for refused in ((THREADS,), (THREADS, BARRED)):
        study = limited(lost(refused=refused), "threads", "affinity")
        told = f"{PROMISE[:-1]}; tried: threads, worse: 0.107× the best until then."
        assert limit_words(study) == told
        assert ("limited by", told) in rows(study).facts


def test_several_are_named() -> None:
    study = limited(lost(refused=(THREADS, AFFINITY)), "threads", "affinity")
    assert limit_words(study).endswith("; tried, and refused: threads, affinity.")


def test_it_stands_where_something_that_addresses_it_is_left_or_was_kept() -> None:
    late = lost(refused=(THREADS,), climb=Climb(Plan(), (), untried=("affinity",)))
    kept = won(refused=(THREADS,))
    for study in (limited(late, "threads", "affinity"), limited(kept, "threads", "bf16")):
        assert limit_words(study) == PROMISE
    assert limit_words(limited(lost(refused=()), "threads")) == PROMISE
    assert limit_words(lost()) == ""

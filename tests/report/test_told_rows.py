from __future__ import annotations

from dataclasses import replace

from hotloop.plan import Plan
from hotloop.report.every_trial import rows as every_trial
from hotloop.report.search_rows import rows
from hotloop.report.told_rows import told
from hotloop.study import Found, Options, Refused, Study
from hotloop.trial.trial import State
from tests.builders import job, trial
from tests.report.studies import BF16, searched, timed

TRIALS = timed("baseline", Plan(), 20), timed("screen", Plan((BF16,)), 16)
REFUSED = Refused("bf16", "it was not proven to help", True)


def ended(verdict: str = "Nothing was found.") -> Study:
    return searched(Found(Options(), refused=(REFUSED,), verdict=verdict), *TRIALS)


def test_what_was_kept_and_is_refused_in_the_end_says_so_wherever_trials_are_told() -> None:
    said = "refused: in the end; it was kept at first"
    assert [row.ending for row in told(ended())] == ["", said]
    assert rows(ended()).tried[1].ending == said
    assert every_trial(ended(), {})[1].outcome == "refused"


def test_while_the_search_goes_on_it_is_kept() -> None:
    assert [row.ending for row in told(ended(verdict=""))] == ["", "kept"]


def test_what_is_in_the_plan_stays_kept() -> None:
    record = ended()
    assert record.found is not None
    won = replace(record, found=replace(record.found, refused=()))
    assert [row.ending for row in told(won)] == ["", "kept"]


def test_where_it_was_when_its_time_was_over_is_one_line_of_the_users_own() -> None:
    stack = (
        'Thread 1 (most recent call first):\n  File "/usr/lib/threading.py", line 3 in wait\n\n'
        "Thread 2 (most recent call first):\n"
        '  File "/here/env/lib/site-packages/torch/nn.py", line 9 in forward\n'
        '  File "/here/train.py", line 7 in <module>\n    y = model(x)'
    )
    late = trial(purpose="screen", state=State.TIMED_OUT, reason="Too long.", hung_at=stack)
    record = searched(Found(Options()), TRIALS[0], late)
    for home, at in (("/here", "train.py:7: y = model(x)"), ("/elsewhere", "torch/nn.py:9")):
        shown = every_trial(replace(record, job=job(cwd=home)), {})[1]
        assert shown.reason == f"Too long. It was at {at}"

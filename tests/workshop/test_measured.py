from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.errors import FailedInTraining, NothingMeasured, TimedOut
from hotloop.figures import figures
from hotloop.trial.result import Failure
from hotloop.trial.trial import State
from hotloop.workshop.measured import measured
from tests import builders


def test_a_trial_that_completed_has_a_measurement_and_figures(tmp_path: Path) -> None:
    made = builders.measurement()
    trial = builders.trial(measurement=made)
    assert measured(trial, builders.job(), tmp_path) == (made, figures(made))


def test_a_failure_is_raised_with_what_the_script_printed(tmp_path: Path) -> None:
    log = tmp_path / "trial-1" / "output.log"
    log.parent.mkdir()
    log.write_bytes(b"Traceback (most recent call last):\nValueError: \x1b[31mno\xff\n")
    failed = builders.trial(state=State.CRASHED, failure=Failure("ValueError", "no"))
    with pytest.raises(FailedInTraining) as raised:
        measured(failed, builders.job(), tmp_path)
    assert "ValueError: " in raised.value.detail
    assert "\x1b" not in raised.value.detail


def test_a_failure_without_a_log_is_raised_all_the_same(tmp_path: Path) -> None:
    late = builders.trial(state=State.TIMED_OUT, reason="It took too long.", measurement=None)
    with pytest.raises(TimedOut, match="too long"):
        measured(late, builders.job(), tmp_path)


def test_one_step_is_too_few_to_speak_of_a_speed(tmp_path: Path) -> None:
    brief = builders.trial(measurement=builders.measurement(builders.training(1).events))
    with pytest.raises(NothingMeasured, match="Too few steps"):
        measured(brief, builders.job(), tmp_path)

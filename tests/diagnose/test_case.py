from __future__ import annotations

from hotloop.diagnose.case import case_of
from hotloop.energy import PowerLog
from hotloop.figures import figures
from hotloop.machine import describe
from tests.builders import measurement, trial


def test_what_the_timed_trial_tells_besides_its_measurement() -> None:
    made = measurement()
    found = figures(made)
    assert found is not None
    power = PowerLog()
    known = case_of(made, found, describe(), timed=trial(ran_out=True, power=power))
    assert known.ran_out and known.power is power
    unknown = case_of(made, found, describe())
    assert not unknown.ran_out and unknown.power is None

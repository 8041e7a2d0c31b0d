from __future__ import annotations

import pytest

from hotloop.diagnose.rules.anomaly_detection import anomaly_detection
from hotloop.inspection import Call, Inspection
from hotloop.tried import AnomalyTried
from tests.builders import training
from tests.diagnose.making import case, library, users

TURNED_ON = users(3, "setup", "torch.autograd.set_detect_anomaly(True)")
CALL = Call("set_anomaly_enabled", [TURNED_ON, library("torch/x.py", "__init__")], 0, 0.0)


def test_what_was_tried_is_believed() -> None:
    tried = Inspection(anomaly_tried=AnomalyTried(0.04, 0.1), calls=[CALL])
    finding = anomaly_detection(case(training(), tried))
    assert finding is not None and finding.is_limit
    assert finding.share == pytest.approx(0.6)
    assert finding.title.endswith("is on and takes 60% of a step")
    assert finding.evidence[0].endswith("40.0 ms without it, and 100.0 ms as it is")
    assert finding.places == (TURNED_ON,)


@pytest.mark.parametrize("tried", [AnomalyTried(), AnomalyTried(0.1, 0.101)])
def test_that_it_is_on_is_remarked_anyway(tried: AnomalyTried) -> None:
    finding = anomaly_detection(case(training(), Inspection(anomaly_tried=tried)))
    assert finding is not None and not finding.is_limit
    assert finding.title == "Autograd's anomaly detection is on"


def test_where_it_is_off_nothing_is_said() -> None:
    assert anomaly_detection(case(training(), Inspection())) is None

from __future__ import annotations

import pytest

from hotloop.diagnose.rules.between_passes import between_passes
from hotloop.diagnose.rules.side_work import side_work
from hotloop.diagnose.rules.waiting_for_data import waiting_for_data
from hotloop.inspection import Frame, Inspection
from tests.builders import Log
from tests.diagnose.making import MAIN, case, hand_drawn, library, samples, users

DRAW = users(30, "plot", "figure.savefig(path)", "plots.py")
FIGURE = [MAIN, DRAW, library("python3.12/site-packages/matplotlib/figure.py", "savefig")]
JOURNAL = [MAIN, users(40, "note", "file.write(json.dumps(row))")]


def steps(between: float) -> Log:
    """Steps of 20 ms, and what goes by after each until its batch is drawn."""
    return hand_drawn(
        lambda log: log.forward(9, 8).backward(8).optimizer(3).wait(between).data(0, n=8)
    )


def test_figures_are_drawn_between_steps() -> None:
    seen = samples((10, 6, [MAIN]), (21, 15, FIGURE), (37, 3, JOURNAL))
    made = case(steps(20), Inspection(samples=seen))
    finding = side_work(made)
    assert finding is not None and finding.is_limit
    assert finding.share == pytest.approx(0.5 * 15 / 18, abs=0.01)
    assert finding.title.endswith("of a step goes to drawing figures")
    assert (finding.cause, finding.places[0]) == ("figures", DRAW)
    assert finding.evidence[0].startswith("16.7 ms a step")
    assert between_passes(made) is None  # which would say less of the same


def test_seldom_is_no_matter() -> None:
    seen = samples((21, 1, FIGURE), (22, 30, [MAIN]))
    assert side_work(case(steps(20), Inspection(samples=seen))) is None


@pytest.mark.parametrize(("stack", "is_data"), [(JOURNAL, False), ([MAIN, users(9)], True)])
def test_without_a_loader_a_log_is_not_taken_for_a_batch(stack: list[Frame], is_data: bool) -> None:
    """It is written after the optimizer, and nothing is called until the next forward pass."""
    log = hand_drawn(lambda log: log.wait(20).forward(9, 8).backward(8).optimizer(3))
    seen = samples((30, 6, [MAIN]), (42, 15, stack))
    made = case(log, Inspection(samples=seen), loaders=[])
    assert (side_work(made) is None) is is_data
    assert (waiting_for_data(made) is not None) is is_data


def test_nothing_was_looked_into() -> None:
    assert side_work(case(steps(20))) is None

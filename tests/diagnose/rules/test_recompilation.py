from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.recompilation import recompilation
from hotloop.figures import figures
from hotloop.inspection import Compilation, Inspection
from hotloop.measurement import Kind, Spans
from tests.builders import Log
from tests.diagnose.making import case, library, samples, users

CALL = users(50, source="logits = model(x)")
DYNAMO = library("torch/_dynamo/convert_frame.py", "ConvertFrame.__call__")


def compiling(every: int, ms: float) -> Log:
    log = Log()
    for number in range(60):
        log.data(1, 8).forward(9 + ms * (number % every == 0), 8).backward(8).optimizer(2)
    return log


def compiled(count: int, seconds: float) -> list[Compilation]:
    one = Compilation("forward", "/job/train.py", 29, seconds, "size mismatch at index 1")
    return [one] * count


def test_every_fourth_step_compiles() -> None:
    seen = samples((10, 100, [CALL, DYNAMO]))
    inspection = Inspection(steps=20, compilations=compiled(5, 0.3), samples=seen)
    finding = recompilation(case(compiling(4, 320), inspection))
    assert finding is not None and finding.places[0] == CALL
    assert finding.share == pytest.approx(320 / 400, abs=0.03)
    assert "size mismatch at index 1" in finding.evidence


def test_every_step_compiles() -> None:
    inspection = Inspection(steps=20, compilations=compiled(20, 0.3))
    finding = recompilation(case(compiling(1, 320), inspection))
    assert finding is not None and finding.share == pytest.approx(300 / 340, abs=0.05)


def test_compiling_that_took_longer_while_it_was_watched_makes_no_usual_step_slow() -> None:
    # 80 ms of compiling to a step were seen, of which the timed steps have 75 on average.
    quick, slow = (
        recompilation(case(compiling(4, 300), Inspection(steps=20, compilations=compiled(5, took))))
        for took in (0.2, 0.39)
    )
    assert quick is not None and slow is not None
    assert quick.share == pytest.approx(slow.share)


def test_once_more_is_no_matter() -> None:
    inspection = Inspection(steps=20, compilations=compiled(1, 0.005))
    assert recompilation(case(compiling(100, 0), inspection)) is None


@pytest.mark.parametrize("count", [1, 2])
def test_once_or_twice_is_not_again_and_again(count: int) -> None:
    """However long it took: for an epoch's last batch, and for the evaluation behind it."""
    seen = Inspection(steps=4855, compilations=compiled(count, 0.5))
    assert recompilation(case(compiling(30, 12_000), seen)) is None


class TestWhereItIsKnownWhen:
    @staticmethod
    def told(every: int, ms: float, count: int) -> Case:
        log = compiling(every, ms)
        begins = [
            begin + 9_000_000
            for begin, kind in zip(log.events.time_ns, log.events.kind, strict=True)
            if kind == Kind.FORWARD_BEGIN
        ][::every]
        one = case(log, Inspection(steps=20, compilations=compiled(count, 0.3)))
        ends = [begin + round(ms * 1e6) for begin in begins]
        timed = replace(one.measurement, script_compiling=Spans(begins, ends))
        found = figures(timed)
        assert found is not None
        return replace(one, measurement=timed, figures=found)

    @pytest.mark.parametrize("count", [0, 1, 20])
    def test_a_rate_that_lasts(self, count: int) -> None:
        """torch keeps account of few: the other trial may have seen none of them."""
        finding = recompilation(self.told(4, 320, count))
        assert finding is not None
        assert finding.share == pytest.approx(80 / 100, abs=0.03)
        assert bool(finding.evidence) == (count > 0)

    def test_once_more_in_the_middle(self) -> None:
        one = self.told(30, 12_000, 5)
        assert recompilation(one) is None
        assert one.figures.step.mean == pytest.approx(0.020)


def test_slow_steps_that_compile_nothing() -> None:
    assert recompilation(case(compiling(4, 320), Inspection(steps=20))) is None


def test_a_broken_graph_is_a_remark() -> None:
    breaks = {"call to print": 8, "data-dependent jump": 2}
    finding = recompilation(case(inspection=Inspection(steps=20, graph_breaks=breaks)))
    assert finding is not None and not finding.is_limit
    assert finding.evidence[0] == "the graph breaks 8 times: call to print"


def test_nobody_looked() -> None:
    assert recompilation(case()) is None

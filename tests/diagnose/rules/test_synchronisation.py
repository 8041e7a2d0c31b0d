from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hotloop.diagnose.rules.synchronisation import synchronisation
from hotloop.inspection import OperatorLine, Samples, Synchronisation
from tests.diagnose.gpu_making import (
    ADD,
    PRODUCT,
    Scene,
    blind,
    case,
    gain,
    inside,
    line,
    look_at,
    operators,
)


def asks(scene: Scene, ask: bool = True, **how: object) -> None:
    """A GPU with 8 ms of work and a CPU with 3; whoever asks lets them take turns."""
    scene.data(0.5).train(lambda: scene.run(PRODUCT, 4), lambda: scene.run(PRODUCT, 4))
    scene.step()
    if ask:
        scene.wait(**how)  # type: ignore[arg-type]
    scene.cpu(2.5)


def test_a_wait_costs_what_idles_after_it() -> None:
    found = synchronisation(case(asks))
    assert found is not None
    real = gain(asks, lambda scene: asks(scene, ask=False))
    assert found.share == pytest.approx(real, rel=0.1)
    assert found.title == "train.py:40 makes the GPU wait: .item(), 1 time a step"
    assert found.places == (line(),)
    assert found.is_limit


@pytest.mark.parametrize("what", ["print", "if tensor", "nonzero", ".cpu()"])
def test_it_says_what_waits(what: str) -> None:
    found = synchronisation(case(lambda scene: asks(scene, what=what)))
    assert found is not None
    assert found.cause == what and found.remedy


def test_a_hidden_wait_is_found_although_nobody_timed_it() -> None:
    found = synchronisation(case(lambda scene: asks(scene, what="a hidden wait", timed=False)))
    timed = synchronisation(case(asks))
    assert found is not None and timed is not None
    assert found.share == pytest.approx(timed.share, rel=0.05)


def test_a_wait_inside_a_library_is_told_at_the_users_line() -> None:
    stack = [line(12), inside("update"), inside("compute")]
    found = synchronisation(case(lambda scene: asks(scene, stack=stack)))
    assert found is not None
    assert found.title.startswith("train.py:12 ")
    assert "inside compute in metrics.py" in found.evidence[0]
    assert found.places == (line(12),)


def test_a_wait_at_which_the_gpu_stays_busy_costs_nothing() -> None:
    """A value that has long been computed: the GPU has more to do."""

    def early(scene: Scene) -> None:
        scene.train(lambda: scene.run(PRODUCT, 4), lambda: scene.run(PRODUCT, 4)).step()
        begin = scene.now_ns
        scene.cpu(max((scene._free_ns - 4_000_000 - scene.now_ns) / 1e6, 0))
        key = (".item()", 40)
        scene.waits.setdefault(key, Synchronisation(key[0], [line()], [], [])).time_ns.append(begin)
        scene.waits[key].seconds.append((scene.now_ns - begin) / 1e9)

    assert synchronisation(case(early)) is None


def test_a_slow_cpu_does_not_owe_its_slowness_to_a_short_wait() -> None:
    def tiny(scene: Scene) -> None:
        for _ in range(200):
            scene.run(ADD, 0.004, queueing=0.02)
        scene.train(lambda: None).step().wait()

    assert synchronisation(case(tiny)) is None


def test_the_dearest_line_stands_first() -> None:
    def two(scene: Scene) -> None:
        scene.run(PRODUCT, 4).wait(stack=[line(1)]).cpu(0.5)
        scene.run(PRODUCT, 4).wait(stack=[line(2)]).cpu(2)
        scene.train(lambda: None).step()

    found = synchronisation(case(two))
    assert found is not None
    assert [place.line for place in found.places] == [2, 1]


def test_what_a_line_computes_for_its_answer_alone_goes_too() -> None:
    """Norms of a hundred gradients, each read by itself, on a CPU that is the slower one."""

    def job(scene: Scene, ask: bool = True) -> None:
        for _ in range(100):
            scene.at(main, line(20)).run(ADD, 0.004, queueing=0.02)
            if ask:
                scene.at(main, line(30), line(40)).run(ADD, 0.004, queueing=0.012).wait(stack=norms)
        scene.train(lambda: None).step()

    main = line(90, function="<module>")
    norms = [main, line(30), line(40)]
    trains, asked = (
        OperatorLine(line(20), 100, 0, 100, 1, 0, 100),
        OperatorLine(line(40), 100, 0, 0, 1),
    )
    plain = synchronisation(look_at(case(job), samples=Samples()))
    found = synchronisation(look_at(case(job), operators=operators(lines=[trains, asked])))
    assert plain is not None and found is not None
    real = gain(job, lambda scene: job(scene, ask=False))
    assert plain.share < found.share == pytest.approx(real, rel=0.3)
    assert found.places == (line(40),)


def test_a_line_that_also_trains_is_charged_only_what_idles_after_it() -> None:
    def job(scene: Scene) -> None:
        for _ in range(100):
            scene.at(line(40)).run(ADD, 0.004, queueing=0.02).wait()
        scene.train(lambda: None).step()

    trains = OperatorLine(line(40), 100, 0.0, 100, 1, 0.0, 100)
    plain = synchronisation(look_at(case(job), samples=Samples()))
    found = synchronisation(look_at(case(job), operators=operators(lines=[trains])))
    assert plain is not None and found is not None
    assert found.share == plain.share


def test_without_the_gpus_record_it_is_a_remark() -> None:
    found = synchronisation(blind(case(asks)))
    assert found is not None
    assert not found.is_limit and found.share == 0
    assert "could not be seen" in found.evidence[-1]


@pytest.mark.parametrize("without", ["inspection", "looked"])
def test_nothing_is_said_of_what_was_not_seen(without: str) -> None:
    made = case(lambda scene: asks(scene, ask=False))
    unseen = {"inspection": None} if without == "inspection" else {"looked": None}
    assert synchronisation(replace(made, **unseen)) is None  # type: ignore[arg-type]


def test_a_rare_report_is_no_finding() -> None:
    turns = iter(range(1000))
    rare: Callable[[Scene], None] = lambda scene: asks(scene, ask=next(turns) % 20 == 0)  # noqa: E731
    assert synchronisation(blind(case(rare))) is None

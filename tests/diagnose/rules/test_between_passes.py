from __future__ import annotations

from dataclasses import replace

from hotloop.diagnose.rules.between_passes import between_passes
from hotloop.inspection import Inspection
from hotloop.measurement import Software
from tests.builders import Log
from tests.diagnose.making import case, hand_drawn, library, samples, users

WRITING, STEPPING = users(31, source="writer.flush()"), users(30, source="optimizer.step()")


def job(between: float) -> Log:
    """Steps of 20 ms, and what goes by after each until its batch is drawn."""
    return hand_drawn(
        lambda log: log.forward(9, 8).backward(8).optimizer(3).wait(between).data(0, n=8)
    )


def test_the_lines_that_take_it() -> None:
    seen = samples((18, 3, [STEPPING]), (21, 10, [WRITING]))
    finding = between_passes(case(job(10), Inspection(samples=seen)))
    assert finding is not None and not finding.is_limit
    assert finding.title.startswith("33%")
    assert finding.places == (WRITING,)


def test_what_a_module_does_there_is_told_by_the_line_that_calls_it() -> None:
    """Pictures that an average of the weights draws, by a method of its own: layer after layer."""
    drawing, calling = users(40, "sample"), library("torch/nn/modules/module.py", "_call_impl")
    layers = [users(50 + n, "forward", file="unet.py") for n in range(3)]
    inside = [(21 + 3 * n, 3, [drawing, calling, layer]) for n, layer in enumerate(layers)]
    finding = between_passes(case(job(10), Inspection(samples=samples(*inside))))
    assert finding is not None
    assert finding.places == (drawing,)
    assert "sampling, say" in finding.evidence[-1]


def test_a_little_is_always_there() -> None:
    assert between_passes(case(job(2))) is None


def test_what_is_done_by_hand_is_said() -> None:
    log = hand_drawn(lambda log: log.wait(12).backward(8))
    finding = between_passes(case(log, loaders=[], optimizers=[], models=[]))
    assert finding is not None
    assert [line for line in finding.evidence if "by hand" in line] == list(finding.evidence[1:])
    assert len(finding.evidence) == 3
    assert "no call of a module was seen" in finding.evidence[2]  # there may have been some


def test_on_a_gpu_the_cpu_waits_there() -> None:
    made = case(job(10))
    on_gpu = replace(made.measurement, software=Software(device="NVIDIA H200"))
    assert between_passes(replace(made, measurement=on_gpu)) is None

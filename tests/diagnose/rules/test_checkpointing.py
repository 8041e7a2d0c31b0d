from __future__ import annotations

import pytest

from hotloop.diagnose.rules.checkpointing import checkpointing
from hotloop.inspection import Call, Frame, Inspection
from tests.builders import Log
from tests.diagnose.making import MAIN, case, library, samples, users

SAVE = users(18, "save", "torch.save(state, path)")
TORCH = library("torch/serialization.py", "save")


def saved(every: int, ms: float) -> Log:
    log = Log()
    for number in range(1, 41):
        log.data(1, 8).forward(5, 8).backward(8).optimizer(6)
        if number % every == 0:
            log.wait(ms)
    return log.data(1, 8).forward(5, 8).backward(8).optimizer(6)


def calls(count: int, seconds: float, at_ms: float = 50) -> list[Call]:
    stack = [MAIN, SAVE, TORCH]
    return [Call("torch.save", stack, round(at_ms * 1e6), seconds) for _ in range(count)]


def test_every_fourth_step_is_saved() -> None:
    finding = checkpointing(case(saved(4, 120), Inspection(calls=calls(10, 0.12))))
    assert finding is not None and finding.places == (SAVE,)
    assert finding.share == pytest.approx(0.6, abs=0.02)
    assert "of the run" in finding.title


def test_seldom_is_no_matter() -> None:
    assert checkpointing(case(saved(40, 40), Inspection(calls=calls(1, 0.04)))) is None


def test_once_before_the_training_is_none_either() -> None:
    early = calls(1, 5.0, at_ms=0)
    assert checkpointing(case(saved(100, 0), Inspection(calls=early))) is None


def test_the_timed_trial_must_have_had_time_for_it() -> None:
    none_between = Log()
    for _ in range(30):
        none_between.forward(10, 8).backward(10).optimizer(0.1)
    slow = Inspection(calls=calls(10, 0.12))
    assert checkpointing(case(none_between, slow, loaders=[])) is None


@pytest.mark.parametrize(
    "stack",
    [
        [MAIN, users(9, "keep"), library("safetensors/torch.py", "save_file")],
        [
            MAIN,
            users(9, "keep"),
            library("transformers/modeling_utils.py", "Model.save_pretrained"),
        ],
        [MAIN, users(9, "keep", "pickle.dump(state, file)")],
    ],
)
def test_what_saves_without_torch_is_seen_at_it(stack: list[Frame]) -> None:
    # After the fourth step, at 80 ms, it saves for 120 ms.
    seen = samples((100, 60, stack), (150, 60, stack), (205, 10, [MAIN]))
    finding = checkpointing(case(saved(4, 120), Inspection(samples=seen)))
    assert finding is not None and finding.share > 0.5 and finding.places == (stack[1],)


def test_a_few_short_calls_are_no_evidence_for_what_was_seen_beside_them() -> None:
    stack = [MAIN, users(9, "keep"), library("safetensors/torch.py", "save_file")]
    seen = samples((100, 60, stack), (150, 60, stack), (205, 10, [MAIN]))
    looked = Inspection(samples=seen, calls=calls(2, 0.001))
    finding = checkpointing(case(saved(4, 120), looked))
    assert finding is not None and finding.share > 0.5
    assert not any("it saves every" in one for one in finding.evidence)


def test_nobody_looked() -> None:
    assert checkpointing(case(saved(4, 120))) is None

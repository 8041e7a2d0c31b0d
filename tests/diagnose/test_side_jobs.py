from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.side_jobs import Kind, beside_the_training, side_job
from hotloop.diagnose.sightings import Sighting, sightings
from hotloop.inspection import Frame, Inspection
from hotloop.measurement import Software
from tests.builders import Log
from tests.diagnose.making import (
    MAIN,
    case,
    hand_drawn,
    library,
    operator_line,
    operators,
    samples,
    users,
)

LIB, STD = "venv/lib/python3.12/site-packages/", "python3.12/"
ENCODER = library(STD + "json/encoder.py", "iterencode")


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ([MAIN, library(LIB + "matplotlib/figure.py", "savefig")], Kind.FIGURES),
        ([MAIN, library(LIB + "torch/_tensor_str.py", "_str")], Kind.TEXT),
        (
            [
                MAIN,
                library(STD + "logging/__init__.py", "info"),
                library(LIB + "torch/_tensor_str.py", "_str"),
            ],
            Kind.TEXT,
        ),
        ([MAIN, library(LIB + "tensorboard/summary/writer.py", "add")], Kind.LOGGING),
        ([MAIN, ENCODER], Kind.JSON),
        ([users(9, source="json.dump(state, file)")], Kind.JSON),
        ([MAIN, library(LIB + "pandas/io/formats/csvs.py", "save")], Kind.TABLES),
        ([MAIN, library(STD + "copy.py", "deepcopy")], Kind.COPIES),
        ([users(9, source="gc.collect()")], Kind.GARBAGE),
        ([MAIN, library(LIB + "torch/autograd/profiler.py", "profile.__exit__")], Kind.PROFILER),
        ([MAIN, library(LIB + "torch/autograd/profiler.py", "record_function.__enter__")], None),
        ([users(9, source="time.sleep(0.01)")], Kind.SLEEP),
        # A progress bar that batches pass through.
        ([MAIN, library(LIB + "tqdm/std.py", "tqdm.__iter__"), users(40, "batches")], None),
        # The user's own, whatever it is called.
        ([users(9, file="logging/__init__.py")], None),
        ([MAIN, library(STD + "json/decoder.py", "decode")], None),
        # Saving is told apart.
        ([MAIN, library(LIB + "torch/serialization.py", "save"), ENCODER], None),
        ([], None),
    ],
)
def test_by_name(stack: list[Frame], kind: Kind | None) -> None:
    assert side_job(Sighting("rest", tuple(stack), 1.0)) is kind


CALL = users(12, source="journal.note(model, loss)")
ROWS = users(30, "Journal.note", "rows = [p.tolist() for p in parameters]", "journal.py")
DUMP = users(31, "Journal.note", "file.write(json.dumps(rows))", "journal.py")
STEP = users(11, source="optimizer.step()")


def steps(rest: float = 10) -> Log:
    """Of 30 ms, with what goes by after the optimizer."""
    return hand_drawn(
        lambda log: log.forward(9, 8).backward(8).optimizer(3).wait(rest).data(0, n=8)
    )


def kinds(*stacks: list[Frame], counted: Inspection | None = None, at: float = 21) -> list[str]:
    """Of each stack, seen for 3 ms between two steps, in eight of them."""
    seen = samples(
        *((at + 30 * s + 3 * n, 3, one) for s in range(8) for n, one in enumerate(stacks))
    )
    made = case(steps(), replace(counted or Inspection(), samples=seen))
    of = beside_the_training(made)
    found = {one.stack: of(one) for one in sightings(made)}
    return [found[tuple(stack)] or "" for stack in stacks]


def test_what_is_made_ready_for_it_belongs_to_it() -> None:
    assert kinds([MAIN, CALL, ROWS], [MAIN, CALL, DUMP]) == [Kind.JSON, Kind.JSON]


def test_a_call_that_trains_is_not_for_its_log() -> None:
    trained = Inspection(operators=operators(operator_line(ROWS, 10)))
    found = kinds([MAIN, CALL, ROWS], [MAIN, CALL, DUMP], counted=trained)
    assert found == ["", Kind.JSON]


def test_a_little_of_it_does_not_colour_a_call() -> None:
    others = [[MAIN, CALL, users(40 + n, "Journal.note", file="journal.py")] for n in range(3)]
    found = kinds(*others, [MAIN, CALL, DUMP])
    assert found == ["", "", "", Kind.JSON]


COUNTED = Inspection(steps=21, operators=operators(operator_line(STEP, 10)))


def test_a_line_without_operators_is_outside_torch() -> None:
    parse = users(50, "Config.__getattr__", "return parsed(open(path))", "config.py")
    assert kinds([MAIN, parse], counted=COUNTED) == [Kind.OUTSIDE]
    inside = [MAIN, parse, library(STD + "json/decoder.py", "decode")]
    assert kinds(inside, counted=COUNTED) == [Kind.OUTSIDE]
    # Nobody knows, where operators were not counted.
    assert kinds([MAIN, parse]) == [""]


def test_of_what_runs_seldom_nobody_counted_the_operators() -> None:
    matrix = [MAIN, users(50, "confusion", "matrix[truth, guess] += 1")]
    seen = samples(*((21 + n, 1, matrix) for n in range(9)), (60, 3, [MAIN]), (261, 3, [MAIN]))
    of = beside_the_training(made := case(steps(), replace(COUNTED, samples=seen)))
    assert {of(one) for one in sightings(made) if len(one.stack) == 2} == {None}


@pytest.mark.parametrize("file", ["threading.py", "multiprocessing/connection.py", "queue.py"])
def test_to_wait_for_others_is_no_work(file: str) -> None:
    wait = users(50, "fetch", "batch = box.get()")
    stack = [MAIN, wait, library(STD + file, "wait")]
    seen = samples(*((21 + 30 * n, 3, stack) for n in range(8)))
    of = beside_the_training(made := case(steps(), replace(COUNTED, samples=seen)))
    assert [of(one) for one in sightings(made)] == [None]


def test_a_line_that_queues_operators_is_not_outside() -> None:
    line = users(50, "augment", "x = x * mask")
    few = operator_line(line, 20, backward_operators=0)
    counted = Inspection(steps=21, operators=operators(few))
    assert kinds([MAIN, line], counted=counted) == [""]


def test_values_that_only_python_reads() -> None:
    hook = users(60, "hook", "stats[name] = out.quantile(0.9).item()", "hooks.py")
    asked = operator_line(hook, 20, backward_operators=0, only_read=True)
    counted = Inspection(steps=21, operators=operators(asked))
    assert kinds([MAIN, hook], counted=counted) == [Kind.VALUES]
    # Where it is a loop, that is said; and a GPU's waits are told by their own rule.
    loop = Inspection(steps=21, operators=operators(replace(asked, operators=1000)))
    assert kinds([MAIN, hook], counted=loop) == [""]
    seen = samples((21, 3, [MAIN, hook]))
    made = case(steps(), replace(counted, samples=seen))
    on_gpu = replace(made.measurement, software=Software(device="NVIDIA H200"))
    of = beside_the_training(made := replace(made, measurement=on_gpu))
    assert [of(one) for one in sightings(made)] == [None]


def test_a_loaders_own_work_is_its_own() -> None:
    """The loader is asked for a batch between the 20th and the 30th millisecond."""
    log = hand_drawn(lambda log: log.forward(9, 8).backward(8).optimizer(3).data(10, n=8))
    seen = samples((21, 3, [MAIN, CALL, DUMP]))
    of = beside_the_training(made := case(log, Inspection(samples=seen)))
    assert [(one.phase, of(one)) for one in sightings(made)] == [("data", None)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [(DUMP, Kind.JSON), (users(9, source="time.sleep(0.01)"), None), (users(9), None)],
)
def test_without_a_loader_some_of_it_passes_for_data(line: Frame, kind: Kind | None) -> None:
    log = hand_drawn(lambda log: log.wait(10).forward(9, 8).backward(8).optimizer(3))
    seen = samples((32, 3, [MAIN, line]))
    of = beside_the_training(made := case(log, replace(COUNTED, samples=seen), loaders=[]))
    assert [(one.phase, of(one)) for one in sightings(made)] == [("data", kind)]

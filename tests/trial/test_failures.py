from __future__ import annotations

from dataclasses import replace

from hotloop.errors import FailedBeforeFirstStep, ScriptNotFound, TimedOut
from hotloop.measurement import Measurement
from hotloop.trial.failures import error_for, traceback_in
from hotloop.trial.trial import State, Trial
from tests.builders import job, measurement, training, trial
from tests.simulated import plan_of

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: no
"""


def crashed(**changes: object) -> Trial:
    return trial(state=State.CRASHED, reason="It failed.", measurement=Measurement(), **changes)


def test_the_scripts_own_traceback_is_shown() -> None:
    error = error_for(crashed(), job(), f"epoch 1\n{TRACEBACK}")
    assert error is not None
    assert error.detail == TRACEBACK.rstrip()


def test_a_script_that_fails_under_a_plan_may_do_so_because_of_it() -> None:
    error = error_for(crashed(plan=plan_of("compile", "bf16")), job(), TRACEBACK)
    assert error is not None and "compile, bf16" in error.remedy
    assert "the same way" not in error.remedy
    plain = error_for(crashed(), job(), TRACEBACK)
    assert plain is not None and "the same way" in plain.remedy


def test_a_module_that_is_missing_may_be_there_in_another_python() -> None:
    missing = "The script failed: ModuleNotFoundError: No module named 'torchvision'."
    error = error_for(replace(crashed(), reason=missing), job(), TRACEBACK)
    assert error is not None and "--python" in error.remedy and job().python in error.remedy
    assert "the same way" not in error.remedy
    planned = crashed(plan=plan_of("compile"))
    error = error_for(replace(planned, reason=missing), job(), TRACEBACK)
    assert error is not None and "compile" in error.remedy


def test_the_last_traceback_is_the_one() -> None:
    assert traceback_in(f"{TRACEBACK}\nretrying\n{TRACEBACK.replace('no', 'never')}").endswith(
        "ValueError: never"
    )
    assert traceback_in(f"{TRACEBACK}\nretrying\n{TRACEBACK}").count("Traceback") == 1


def test_without_one_the_last_lines_are_shown() -> None:
    printed = "\n".join(str(number) for number in range(100)) + "\n\n"
    assert traceback_in(printed) == "\n".join(str(number) for number in range(88, 100))
    assert traceback_in("") == ""


def test_a_script_that_trains_too_little_is_not_asked_whether_it_trains() -> None:
    short = measurement(training(1).events)
    ended = trial(state=State.NOTHING_MEASURED, reason="A single step.", measurement=short)
    error = error_for(ended, job(), "")
    assert error is not None and "more steps" in error.remedy
    none = trial(state=State.NOTHING_MEASURED, reason="No step.", measurement=Measurement())
    error = error_for(none, job(), "")
    assert error is not None and "Does it train" in error.remedy


def test_a_module_that_is_not_there() -> None:
    printed = "/usr/bin/python3: No module named pkg.train\n"
    error = error_for(crashed(), job(target="pkg.train", is_module=True), printed)
    assert isinstance(error, ScriptNotFound)
    assert "pkg.train" in error.sentence


def test_a_module_that_misses_another_is_there() -> None:
    printed = "ModuleNotFoundError: No module named 'pkg_data'\n"
    error = error_for(crashed(), job(target="pkg", is_module=True), printed)
    assert isinstance(error, FailedBeforeFirstStep)


def test_who_waits_for_its_children_is_told_that_they_are_not_seen() -> None:
    stack = '  File "/usr/lib/python3.12/multiprocessing/process.py", line 149 in join\n'
    late = trial(state=State.TIMED_OUT, reason="It took too long.", hung_at=stack)
    error = error_for(late, job(), "")
    assert error is not None and "training in those is not seen" in error.remedy
    loader = '  File "/usr/lib/python3.12/multiprocessing/connection.py", line 257 in poll\n'
    error = error_for(replace(late, hung_at=loader), job(), "")
    assert error is not None and "--timeout" in error.remedy


def test_who_waits_for_input_is_told_that_nobody_types() -> None:
    stack = 'Thread 1 (most recent call first):\n  File "t.py", line 2 in f\n    name = input()'
    late = trial(state=State.TIMED_OUT, reason="It took too long.", hung_at=stack)
    ended = replace(late, state=State.NOTHING_MEASURED, measurement=None)
    for error in (error_for(late, job(), ""), error_for(ended, job(), "name? ")):
        assert error is not None and "pipe all of it in" in error.remedy
        assert "name = input()" in error.detail


def test_where_it_hung_is_shown_before_what_it_printed() -> None:
    late = trial(state=State.TIMED_OUT, reason="It took too long.", hung_at="\nin wait\n")
    error = error_for(late, job(), "epoch 1\n")
    assert isinstance(error, TimedOut)
    assert error.detail == "in wait"
    silent = trial(state=State.TIMED_OUT, reason="It took too long.", hung_at="")
    error = error_for(silent, job(), "epoch 1\n")
    assert error is not None
    assert error.detail == "epoch 1"

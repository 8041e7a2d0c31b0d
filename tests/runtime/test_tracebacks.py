from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest

from hotloop.runtime import tracebacks
from hotloop.runtime.patches import through
from hotloop.seams import Seam


def ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind one of our wrappers."""
    return through(Seam(), function)


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def caught(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def fails() -> None:
    raise ValueError("no")


def calls_ours() -> None:
    ours(fails)()


def twice() -> None:
    ours(ours(calls_ours))()


def with_a_cause() -> None:
    try:
        ours(fails)()
    except ValueError as error:
        raise KeyError("caused") from error


def with_a_context() -> None:
    try:
        ours(fails)()
    finally:
        ours(fails)()


def in_a_group() -> None:
    inner = ExceptionGroup("inner", [caught(ours(fails)), caught(ours(with_a_cause))])  # type: ignore[type-var]
    raise ExceptionGroup("outer", [inner])


def test_wrappers_leave_frames_to_begin_with() -> None:
    assert frames(caught(twice)) == [
        "caught",
        "twice",
        "call",
        "call",
        "calls_ours",
        "call",
        "fails",
    ]


def test_our_frames_are_taken_out() -> None:
    error = caught(twice)
    tracebacks.clean(error)
    assert frames(error) == ["caught", "twice", "calls_ours", "fails"]


def test_even_the_outermost() -> None:
    error = caught(ours(fails))
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    tracebacks.clean(error)
    assert frames(error) == ["fails"]


@pytest.mark.parametrize("function", [with_a_cause, with_a_context])
def test_of_everything_that_led_to_it_too(function: Callable[[], None]) -> None:
    error = caught(ours(function))
    tracebacks.clean(error)
    before = error.__context__
    assert before is not None
    assert frames(error)[:2] == ["caught", function.__name__]
    assert "call" not in frames(error) + frames(before)


def test_of_every_member_of_a_group() -> None:
    error = caught(in_a_group)
    tracebacks.clean(error)
    assert isinstance(error, ExceptionGroup)
    inner = error.exceptions[0]
    assert isinstance(inner, ExceptionGroup)
    first, second = inner.exceptions
    assert second.__cause__ is not None
    for one in (error, inner, first, second, second.__cause__):
        assert "call" not in frames(one)
    assert "fails" in frames(second.__cause__)


def test_a_circle_of_causes_has_an_end() -> None:
    one, two = caught(calls_ours), caught(calls_ours)
    one.__context__, two.__context__ = two, one
    tracebacks.clean(one)
    assert "call" not in frames(one) + frames(two)


def test_no_traceback_is_none() -> None:
    tracebacks.clean(ValueError("never raised"))
    assert tracebacks.without_ours(None) is None


class TestHook:
    @pytest.fixture
    def shown(self, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        shown: list[list[str]] = []

        def show(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
            shown.append([frame.name for frame in traceback.extract_tb(tb)])

        monkeypatch.setattr(sys, "excepthook", show)
        return shown

    def test_shows_what_python_would_have(self, shown: list[list[str]]) -> None:
        noted: list[tuple[type[BaseException], BaseException]] = []
        tracebacks.install(lambda *what: noted.append(what))
        error = caught(twice)
        sys.excepthook(type(error), error, error.__traceback__)
        assert shown == [["caught", "twice", "calls_ours", "fails"]]
        assert noted == [(ValueError, error)]

    def test_a_bug_of_ours_is_shown_whole(self, shown: list[list[str]]) -> None:
        tracebacks.install(lambda *what: None)
        seam = Seam(before=[lambda args, kwargs: _raise_in_our_code()])
        error = caught(through(seam, fails))
        assert tracebacks.is_ours(error)
        sys.excepthook(type(error), error, error.__traceback__)
        assert "call" in shown[0]

    def test_an_error_that_passed_us_is_not_ours(self) -> None:
        assert not tracebacks.is_ours(caught(twice))
        assert not tracebacks.is_ours(ValueError("never raised"))


def _raise_in_our_code() -> None:
    """In a frame whose file lies in our package."""
    exec(compile("raise RuntimeError('ours')", tracebacks.OURS + "made_up.py", "exec"))

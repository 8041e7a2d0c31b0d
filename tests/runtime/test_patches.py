from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import pytest

from hotloop.runtime.patches import Patches, through
from hotloop.seams import Seam, Seams


class Base:
    def method(self, value: int, *, more: int = 0) -> int:
        """Says how."""
        if value < 0:
            raise ValueError("negative")
        return value + more


class Derived(Base):
    @classmethod
    def made(cls) -> str:
        return cls.__name__

    @staticmethod
    def plain() -> str:
        return "plain"


def listening(heard: list[Any]) -> Seam:
    seam = Seam()
    seam.before.append(lambda args, kwargs: heard.append(("before", args[1:], kwargs)))
    seam.after.append(lambda args, result, began: heard.append(("after", args[1:], result)))
    return seam


class TestThrough:
    def test_tells_before_and_after(self) -> None:
        heard: list[Any] = []
        call = through(listening(heard), Base.method)
        assert call(Base(), 3, more=4) == 7
        assert heard == [("before", (3,), {"more": 4}), ("after", (3,), 7)]

    def test_tells_of_a_call_that_raised(self) -> None:
        heard: list[Any] = []
        with pytest.raises(ValueError, match="negative"):
            through(listening(heard), Base.method)(Base(), -1)
        assert heard[-1] == ("after", (-1,), None)

    def test_a_listener_that_fails_then_does_not_hide_why_the_call_did(self) -> None:
        seam = Seam()
        heard: list[object] = []
        seam.after.append(lambda args, result, began: heard.append(result.shape))
        seam.after.append(lambda args, result, began: heard.append(result))

        def fails() -> None:
            raise KeyError("its own")

        with pytest.raises(KeyError, match="its own"):
            through(seam, fails)()
        assert heard == [None]

    def test_tells_when_it_began(self) -> None:
        times: list[int] = []
        seam = Seam(before=[lambda args, kwargs: times.append(perf_counter_ns())])
        seam.after.append(lambda args, result, began: times.append(began))
        through(seam, lambda: times.append(perf_counter_ns()))()
        told, inside, began = times
        assert told <= began <= inside

    def test_looks_like_what_it_wraps(self) -> None:
        call = through(Seam(), Base.method)
        assert (call.__name__, call.__doc__) == ("method", "Says how.")

    def test_who_comes_later_is_heard_too(self) -> None:
        seam, heard = Seam(), list[str]()
        call = through(seam, Base.method)
        seam.before.append(lambda args, kwargs: heard.append("late"))
        call(Base(), 1)
        assert heard == ["late"]

    def test_a_silenced_seam_tells_nobody(self) -> None:
        heard: list[Any] = []
        seams = Seams(step=listening(heard))
        call = through(seams.step, Base.method)
        seams.silence()
        assert call(Base(), 1) == 1
        assert heard == []


class TestPatches:
    @pytest.fixture(autouse=True)
    def as_before(self) -> Any:
        before = dict(vars(Base)), dict(vars(Derived))
        yield
        assert (dict(vars(Base)), dict(vars(Derived))) == before

    def test_what_was_inherited_is_inherited_again(self) -> None:
        patches = Patches()
        patches.route(Derived, "method", listening([]))
        assert "method" in vars(Derived)
        patches.restore()
        assert "method" not in vars(Derived)

    @pytest.mark.parametrize("name", ["made", "plain"])
    def test_class_and_static_methods_come_back_as_such(self, name: str) -> None:
        patches = Patches()
        patches.replace(Derived, name, lambda: "replaced")
        assert getattr(Derived, name)() == "replaced"
        patches.restore()

    def test_several_of_the_same_are_undone_last_first(self) -> None:
        patches = Patches()
        for number in range(3):
            patches.replace(Base, "method", number)
        assert Base.method == 2  # type: ignore[comparison-overlap]
        patches.restore()

    def test_restoring_twice_is_restoring_once(self) -> None:
        undone: list[int] = []
        patches = Patches()
        patches.on_restore(lambda: undone.append(1))
        patches.restore()
        patches.restore()
        assert undone == [1]

    def test_a_seam_that_nobody_listens_to_is_not_reached(self) -> None:
        before = vars(Base)["method"]
        Patches().route(Base, "method", Seam())
        assert vars(Base)["method"] is before


def test_seams_are_all_known() -> None:
    seams = Seams()
    assert len(seams.all()) == len(vars(seams)) >= 10
    assert not any(seam.is_used for seam in seams.all())
    seams.model.after.append(lambda args, result, began: None)
    assert seams.model.is_used
    seams.silence()
    assert not seams.model.is_used

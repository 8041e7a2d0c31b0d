from __future__ import annotations

import pytest

from hotloop.runtime.look import turns
from hotloop.runtime.look.turns import Turns


class Scene:
    """A step takes 16 seconds, and 2 when it is done otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.otherwise = 0.0, False
        monkeypatch.setattr(turns, "perf_counter", lambda: self.now)
        self.turns = Turns(self._switch)

    def steps(self, count: int) -> list[bool]:
        made = []
        for _ in range(count):
            made.append(self.otherwise)
            self.now += 2.0 if self.otherwise else 16.0
            self.turns.stepped()
        return made

    def _switch(self, otherwise: bool) -> None:
        self.otherwise = otherwise


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_both_take_turns(scene: Scene) -> None:
    scene.turns.begin()
    assert scene.steps(11) == [False] * 3 + [True] * 3 + [False] * 3 + [True] * 2
    assert scene.otherwise
    scene.turns.end()
    assert not scene.otherwise
    assert scene.turns.seconds == (2.0, 16.0)


def test_too_few_steps_tell_nothing(scene: Scene) -> None:
    scene.turns.begin()
    scene.steps(4)
    assert scene.turns.seconds is None


def test_what_was_never_begun_switches_nothing(scene: Scene) -> None:
    scene.otherwise = True
    scene.turns.end()
    assert scene.otherwise

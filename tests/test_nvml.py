from __future__ import annotations

import pytest

from hotloop import nvml
from tests.test_machine import Nvml, install


def test_without_a_driver_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Nvml(refused=frozenset({"nvmlInit"})))
    assert nvml.load() is None


@pytest.mark.parametrize(
    ("visible", "first", "hidden"),
    [(None, 0, False), ("3,1", 3, False), ("", 0, True), ("-1", 0, True), ("GPU-1", 0, False)],
)
def test_which_one_a_job_sees_first(
    visible: str | None, first: int, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, None, visible)
    assert (nvml.first_visible(), nvml.hidden()) == (first, hidden)


def test_text_may_come_as_bytes() -> None:
    assert nvml.text(b"570.1") == nvml.text("570.1") == "570.1"

from __future__ import annotations

from pathlib import Path

from hotloop.plan import Plan
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.order import Order
from hotloop.trial.spec import Exam, Soak, StopRule
from hotloop.workshop import weights
from tests import builders

EXAM = Exam("/study/reference-1", False, 40, (24,))
FREE = Exam("/study/reference-1", False, 24, (), seed=1)
REFERENCE = Exam("/study/reference-1", True, 40, (24,))


def tied(exam: Exam | None = None, soak: Soak | None = None) -> str:
    job, folder = builders.job(), Path("trial-1")
    order = Order(1, job, Plan(), StopRule(), 9.0, folder, exam=exam, soak=soak)
    launcher = weights.Tying(FakeLauncher([builders.trial()]))
    return launcher.launch(order, lambda glimpse: None).tied_to


def test_a_trial_is_tied_to_the_weights_it_begins_from_or_saves() -> None:
    assert (tied(EXAM), tied(REFERENCE)) == ("reference-1", "reference-1")


def test_one_from_another_seed_begins_from_its_own() -> None:
    assert tied(FREE) == "" and weights.needed(FREE) is None
    assert tied() == "" and weights.needed(None) is None


def test_runs_of_a_soak_are_told_apart_by_what_they_save_and_load() -> None:
    plain, back = Soak(8, 2, "", "/s/soak-1-plain.pt"), Soak(8, 2, "/s/soak-1-planned.pt", "")
    assert len({tied(soak=plain), tied(soak=back), tied()}) == 3


def test_a_name_is_new_also_where_its_weights_are_gone() -> None:
    trials = [builders.trial(tied_to=name) for name in ("", "reference-1", "reference-3")]
    assert weights.new_name(trials) == "reference-2"
    assert weights.new_name([*trials, builders.trial(tied_to="reference-2")]) == "reference-4"


def test_their_size_is_that_of_all_their_files(tmp_path: Path) -> None:
    (tmp_path / "reference-1").mkdir()
    (tmp_path / "reference-1" / "24.pt").write_bytes(b"12345")
    (tmp_path / "other.pt").write_bytes(b"12345")
    assert weights.size(tmp_path) == 5


def test_all_are_cleared_and_nothing_else(tmp_path: Path) -> None:
    for name in ("reference-1", "reference-2", "trial-1"):
        (tmp_path / name).mkdir()
    weights.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["trial-1"]

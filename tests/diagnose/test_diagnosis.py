from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotloop.diagnose import diagnosis
from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.diagnosis import EXPLAINED_BY, diagnose, unexplained
from hotloop.diagnose.registry import RULES
from hotloop.figures import PhaseShare
from hotloop.levers.registry import LEVERS
from tests.builders import Log
from tests.diagnose.making import case, hand_drawn


def finding(rule: str, share: float, **changes: object) -> Finding:
    made = Finding(rule, f"It is {rule}", share, "Do something.", Effort.LINES)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the rules find."""
    findings: list[Finding] = []

    def rules(number: int) -> object:
        return lambda case: findings[number] if number < len(findings) else None

    monkeypatch.setattr(diagnosis, "RULES", tuple(rules(number) for number in range(5)))
    return findings


def ranked(found: list[Finding], *findings: Finding) -> list[str]:
    found[:] = findings
    return [one.rule for one in diagnose(case()).findings]


class TestRanking:
    def test_by_what_could_be_won(self, found: list[Finding]) -> None:
        assert ranked(found, finding("a", 0.2), finding("b", 0.4)) == ["b", "a"]

    def test_of_two_about_as_good_the_quicker_first(self, found: list[Finding]) -> None:
        dear = finding("a", 0.31, effort=Effort.REWRITE)
        assert ranked(found, dear, finding("b", 0.3, effort=Effort.SETTING)) == ["b", "a"]
        much = finding("a", 0.6, effort=Effort.REWRITE)
        assert ranked(found, finding("b", 0.3, effort=Effort.SETTING), much) == ["a", "b"]

    def test_a_mistake_in_passes_before_how_long_they_take(self, found: list[Finding]) -> None:
        mistake, whole = finding("evaluation_with_gradients", 0.15), finding("evaluation", 0.6)
        told = ranked(found, whole, finding("a", 0.3), mistake)
        assert told == ["evaluation_with_gradients", "evaluation", "a"]
        assert ranked(found, finding("a", 0.3), mistake) == ["a", "evaluation_with_gradients"]
        remark = replace(mistake, is_limit=False)
        assert ranked(found, remark, whole) == ["evaluation", "evaluation_with_gradients"]

    def test_remarks_come_last(self, found: list[Finding]) -> None:
        remark = finding("a", 0.9, is_limit=False)
        assert ranked(found, remark, finding("b", 0.1)) == ["b", "a"]


class TestOverlap:
    def test_the_general_one_is_left_out(self) -> None:
        exact, general = finding("python_loop", 0.4), finding("launch_bound", 0.5)
        assert unexplained([general, exact]) == [exact]

    def test_unless_it_is_about_much_more(self) -> None:
        exact, general = finding("python_loop", 0.1), finding("launch_bound", 0.5)
        assert unexplained([general, exact]) == [general, exact]

    def test_it_speaks_of_rules_that_there_are(self) -> None:
        names = {rule.__name__ for rule in RULES}
        assert {*EXPLAINED_BY} | {
            one for others in EXPLAINED_BY.values() for one in others
        } <= names


class TestVerdict:
    def test_the_first_limit(self, found: list[Finding]) -> None:
        found.append(finding("a", 0.5, title="Half of a step does nothing"))
        said = "Half of a step does nothing: with that mended the job would be 2.0× as fast."
        assert diagnose(case()).verdict == said

    def test_an_optimisation_that_wins_much_more_is_named(self, found: list[Finding]) -> None:
        little = finding("a", 0.5, title="Half of a step waits", gains={"loader_workers": 0.6})
        found.append(little)
        assert diagnose(case()).verdict.endswith("would be 2.0× as fast.")
        found[0] = replace(little, gains={"cache_dataset": 0.9})
        said = "would be 2.0× as fast, with cache_dataset instead about 10.0×."
        assert diagnose(case()).verdict.endswith(said)

    def test_a_title_that_names_its_cause_brings_no_second_colon(
        self, found: list[Finding]
    ) -> None:
        found.append(finding("a", 0.5, title="Half of a step waits: train.py:3, twice"))
        said = "Half of a step waits (train.py:3, twice): with that mended the job would be 2.0×"
        assert diagnose(case()).verdict.startswith(said)

    def test_at_the_roof(self, found: list[Finding]) -> None:
        found.append(finding("at_the_roof", 0.0, title="It runs at 91%", is_limit=False))
        assert diagnose(case()).verdict == "It runs at 91%."

    def test_nothing_stands_out(self, found: list[Finding]) -> None:
        assert "Nothing stands out: " in diagnose(case()).verdict

    def test_a_step_that_hardly_trains_is_not_called_training(self, found: list[Finding]) -> None:
        log = hand_drawn(lambda log: log.forward(2, 8).backward(2).optimizer(1).wait(15).data(0))
        said = "Nothing stands out, though only 25% of a step is training."
        assert diagnose(case(log)).verdict == said
        found.append(finding("a", 0.0, title="Memory grows", is_limit=False))
        assert diagnose(case(log)).verdict == said
        title = "71% of a step goes by between its parts"
        found.append(finding("between_passes", 0.0, title=title, is_limit=False))
        assert diagnose(case(log)).verdict == f"{title}."

    def test_a_gpu_trains_by_its_own_clock(self, found: list[Finding]) -> None:
        one = case(hand_drawn(lambda log: log.forward(2, 8).backward(2).optimizer(1).wait(15)))
        phases = (PhaseShare("forward", 0.008, 0.4), PhaseShare("backward", 0.01, 0.5))
        busy = replace(one, figures=replace(one.figures, gpu_phases=phases))
        said = "Nothing stands out: 90% of a step is the training itself."
        assert diagnose(busy).verdict == said


class TestTheRegistry:
    def test_every_rules_file_is_listed_once(self) -> None:
        folder = Path(diagnosis.__file__).parent / "rules"
        files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert sorted(rule.__name__ for rule in RULES) == sorted(files)

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_a_rule_has_a_test_and_a_reason(self, rule: object) -> None:
        name = rule.__name__  # type: ignore[attr-defined]
        tests = Path(__file__).parent / "rules" / f"test_{name}.py"
        assert f"def {name}(" in (Path(diagnosis.__file__).parent / f"rules/{name}.py").read_text()
        assert tests.is_file() and "def test_" in tests.read_text()

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_a_rule_names_optimisations_that_there_are(self, rule: object) -> None:
        name = rule.__name__  # type: ignore[attr-defined]
        source = (Path(diagnosis.__file__).parent / f"rules/{name}.py").read_text()
        named = [part for part in source.split('"') if part in LEVERS]
        assert "levers=" not in source or named or "levers=()" in source

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_a_job_that_was_only_timed_confuses_no_rule(self, rule: object) -> None:
        bare: Case = replace(case(), inspection=None, looked=None, roof=None, power=None)
        found = rule(bare)  # type: ignore[operator]
        assert found is None or 0 <= found.share < 1


class TestWhatIsPromised:
    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_never_more_than_what_it_takes(self, rule: object) -> None:
        """Whatever a rule, or a lever's reckoning, says that removing it wins."""
        name = rule.__name__  # type: ignore[attr-defined]
        made = finding(name, 1.3, takes=0.76, gains={"cache_dataset": 0.9, "compile": 0.1})
        assert made.gain == pytest.approx(1 / (1 - 0.76))
        assert made.gains == {"cache_dataset": 0.76, "compile": 0.1}
        assert replace(made, gains={"compile": 0.8}).won_by("compile") == 0.76
        assert finding(name, -0.1).share == 0.0 and finding(name, 7.0).share == 1.0


def test_a_gain_follows_from_a_share() -> None:
    assert finding("a", 0.5).gain == pytest.approx(2.0)
    assert finding("a", 0.0).gain == 1.0
    assert finding("a", 1.0).gain <= 100.0


@pytest.mark.parametrize(
    ("steps", "ran_out", "brief"), [(4, True, True), (4, False, False), (400, True, False)]
)
def test_of_a_training_that_is_over_at_once_nothing_else_is_said(
    steps: int, ran_out: bool, brief: bool
) -> None:
    log = Log()
    for _ in range(steps):
        log.wait(0.5).forward(0.2, 8).backward(0.2).optimizer(0.1)
    made = diagnose(replace(case(log, loaders=[]), ran_out=ran_out))
    assert ("The whole training takes 3." in made.verdict) is brief
    assert (made.findings == ()) is brief

"""Models that training comes to only later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.runtime import roots
from hotloop.runtime.late_roots import awaited
from hotloop.runtime.roots import DISCOVERY_STEPS
from hotloop.runtime.script import ScriptDriver
from hotloop.seams import Seams

STEPS = DISCOVERY_STEPS + 4


@pytest.fixture
def driver(torch: Any) -> Iterator[tuple[ScriptDriver, list[Any]]]:
    """One at work, and the late models that it tells of."""
    seams, heard = Seams(), list[Any]()
    seams.model.before.append(lambda args, kwargs: None)
    seams.late_model.before.append(lambda args, kwargs: heard.append(args[0]))
    driver = ScriptDriver(torch, seams)
    driver.attach()
    yield driver, heard
    driver.detach()


def maker(torch: Any) -> Any:
    """Of a class that is no part of the other."""

    class Maker(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 4))

        def forward(self, x: Any) -> Any:
            return x @ self.weight

    return Maker()


def judge(torch: Any) -> Any:
    class Judge(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    return Judge()


def train(torch: Any, model: Any, later: Any) -> None:
    """The second has its own update, and joins in after some steps."""
    both = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, later)]
    for step in range(STEPS):
        made = model(torch.randn(2, 4))
        loss = made.square().mean()
        if step > DISCOVERY_STEPS + 1:
            loss = loss + later(made).mean()
        loss.backward()
        both[0].step()
        if step > DISCOVERY_STEPS + 1:
            later(made.detach()).mean().backward()
            both[-1].step()
        for optimizer in both:
            optimizer.zero_grad()


def test_one_that_joins_in_is_told_of_and_its_parts_are_not(torch: Any, driver: Any) -> None:
    model, later = maker(torch), judge(torch)
    train(torch, model, later)
    assert driver[1] == [later] * 4
    assert "__call__" in vars(type(later))
    driver[0].detach()
    assert "__call__" not in vars(type(later))


def test_one_whose_optimizer_is_built_later(torch: Any, driver: Any) -> None:
    model, later = maker(torch), judge(torch)
    train(torch, model, model)
    assert driver[1] == []
    optimizer = torch.optim.SGD(later.parameters(), lr=0.1)
    later(torch.ones(1, 4)).mean().backward()
    optimizer.step()
    assert driver[1] == [later]


def test_optimizers_of_known_models_use_up_no_looks(torch: Any, driver: Any) -> None:
    model, later = maker(torch), judge(torch)
    train(torch, model, model)
    for _ in range(2 * roots.MOST_VAIN_LOOKS):
        torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = torch.optim.SGD(later.parameters(), lr=0.1)
    later(torch.ones(1, 4)).mean().backward()
    optimizer.step()
    assert driver[1] == [later]


def test_after_a_pause_it_is_watched_again(torch: Any, driver: Any) -> None:
    later = judge(torch)
    train(torch, maker(torch), later)
    heard = len(driver[1])
    driver[0].detach()
    later(torch.ones(1, 4))
    driver[0].attach()
    later(torch.ones(1, 4))
    assert len(driver[1]) == heard + 1


def test_nobody_is_looked_for_where_nobody_asks(torch: Any) -> None:
    seams = Seams()
    seams.model.before.append(lambda args, kwargs: None)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    later = judge(torch)
    train(torch, maker(torch), later)
    assert "__call__" not in vars(type(later))
    driver.detach()


class TestAwaited:
    def test_what_a_root_has_is_not(self, torch: Any) -> None:
        model = judge(torch)
        assert awaited(torch, torch.optim.SGD(model.parameters()), [model]) is None

    def test_a_part_of_something_that_is_never_called(self, torch: Any) -> None:
        """Of a task that holds both, as Lightning's do, and of a list, which cannot be called."""

        class Task(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.model = torch.nn.Linear(4, 4)
                self.judges = torch.nn.ModuleList([judge(torch), judge(torch)])

            def forward(self, x: Any) -> Any:
                return self.model(x)

        task = Task()
        optimizer = torch.optim.SGD(task.parameters())
        found = awaited(torch, optimizer, [task.model]) or []
        assert {*task.judges} <= {*found}
        assert not {task, task.model, task.judges} & {*found}
        assert awaited(torch, optimizer, [task]) is None

    def test_a_weight_by_itself(self, torch: Any) -> None:
        weight = torch.nn.Parameter(torch.ones(3))
        assert awaited(torch, torch.optim.SGD([weight]), []) == []

    def test_one_that_the_script_has_compiled(self, torch: Any) -> None:
        model = torch.compile(judge(torch), backend="eager")
        assert model in (awaited(torch, torch.optim.SGD(model.parameters()), []) or ())

    @pytest.mark.parametrize("odd", ["scripted", "unfinished", "overridden"])
    def test_odd_modules_are_in_nobodys_way(self, odd: str, torch: Any) -> None:
        model = judge(torch)

        class Odd(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                if odd == "overridden":
                    super().__init__()
                    self.parameters = {"a": 1}

        other = torch.jit.script(torch.nn.Linear(2, 2)) if odd == "scripted" else Odd()
        assert model in (awaited(torch, torch.optim.SGD(model.parameters()), []) or ())
        assert isinstance(other, torch.nn.Module)


def test_a_call_of_a_part_of_it_is_told_of(torch: Any, driver: Any) -> None:
    class Judging(type(judge(torch))):  # type: ignore[misc]
        def judge(self, x: Any) -> Any:
            return self.layers(x)

    model, later = maker(torch), Judging()
    train(torch, model, later)
    heard = len(driver[1])
    later.judge(torch.ones(1, 4))
    assert driver[1][heard:] == [later.layers]


def test_an_optimizer_for_every_batch_is_not_looked_into_for_ever(
    torch: Any, driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []

    def looked(torch: Any, optimizer: Any, roots: Any) -> list[Any]:
        looks.append(optimizer)
        return []

    monkeypatch.setattr(roots, "awaited", looked)
    model = maker(torch)
    train(torch, model, model)
    for _ in range(50):
        torch.optim.SGD([torch.ones(3, requires_grad=True)])
    assert len(looks) == roots.MOST_VAIN_LOOKS


def test_bf16_holds_for_it_as_well(torch: Any) -> None:
    """It is handed what the first has made in 16 bits, which its own weights would not take."""
    from hotloop.levers.bf16 import Bf16
    from tests.levers.jobs import under

    later, given = judge(torch), list[Any]()
    later.layers[0].register_forward_hook(lambda _, x, y: given.append((x[0].dtype, y.dtype)))
    with under(Bf16()):
        train(torch, maker(torch), later)
    assert set(given) == {(torch.bfloat16, torch.bfloat16)}

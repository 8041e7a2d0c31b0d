from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.evidence import Difference, KeptSeen
from hotloop.runtime.exam import kept as module
from hotloop.runtime.exam.kept import Kept

STEP = 7
Tensors = dict[str, Any]
Change = Callable[[Tensors], None]


def nothing(tensors: Tensors) -> None: ...


def compared(
    torch: Any, folder: Path, make: Callable[[], Tensors], there: Change, here: Change
) -> dict[str, Difference]:
    """What a step changes in the reference, and in the candidate."""
    found: list[Difference] = []
    for is_reference, change in ((True, there), (False, here)):
        tensors, seen = make(), Kept(torch, folder, is_reference)
        seen.begin(tensors)
        change(tensors)
        found = seen.end(STEP, tensors)
    return {one.tensor: one for one in found}


def test_a_change_is_compared_and_not_what_has_changed(torch: Any, tmp_path: Path) -> None:
    """A hundredth of the change is a millionth of the number."""

    def by(size: float) -> Change:
        return lambda tensors: tensors["mean"].add_(size)

    def make() -> Tensors:
        return {"mean": torch.full((4,), 1000.0)}

    one = compared(torch, tmp_path, make, by(0.5), by(0.505))["mean"]
    assert (one.step, one.quantity) == (STEP, "change")
    assert one.reference == pytest.approx(1.0)
    assert one.difference == pytest.approx(0.01, rel=0.02)
    assert one.along == pytest.approx(1.01, rel=1e-3)
    assert one.ulp == pytest.approx(2000 * 2**-23, rel=1e-2)


def test_what_no_step_changes_is_not_told(torch: Any, tmp_path: Path) -> None:
    def make() -> Tensors:
        return {"mask": torch.full((3, 3), float("-inf")).triu(1), "lost": torch.tensor(torch.nan)}

    assert compared(torch, tmp_path, make, nothing, nothing) == {}


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16", "complex64", "float64"])
def test_what_one_of_them_leaves_alone_is_told(torch: Any, tmp_path: Path, dtype: str) -> None:
    def make() -> Tensors:
        return {"x": torch.zeros(3, dtype=getattr(torch, dtype))}

    def change(tensors: Tensors) -> None:
        tensors["x"][1] = 1

    one = compared(torch, tmp_path, make, change, nothing)["x"]
    assert (one.reference, one.difference, one.along) == (1.0, 1.0, 0.0)
    one = compared(torch, tmp_path, make, nothing, change)["x"]
    assert (one.reference, one.difference) == (0.0, 1.0)
    assert compared(torch, tmp_path, make, change, change)["x"].difference == 0.0


def test_infinities_beside_a_change_are_no_change(torch: Any, tmp_path: Path) -> None:
    def make() -> Tensors:
        return {"x": torch.tensor([float("-inf"), 0.0])}

    def by(size: float) -> Change:
        return lambda tensors: tensors["x"].add_(size)

    one = compared(torch, tmp_path, make, by(1.0), by(1.5))["x"]
    assert (one.reference, one.difference) == (1.0, 0.5)


def test_a_tensor_put_in_its_place_is_compared(torch: Any, tmp_path: Path) -> None:
    """As a module does that assigns a new average to its buffer."""

    def make() -> Tensors:
        return {"x": torch.zeros(2)}

    def put(size: float) -> Change:
        return lambda tensors: tensors.update(x=torch.full((2,), size))

    assert compared(torch, tmp_path, make, put(1.0), put(1.0))["x"].difference == 0.0
    assert compared(torch, tmp_path, make, put(1.0), put(3.0))["x"].difference == pytest.approx(
        8**0.5
    )


def test_what_has_gone_or_has_another_size_is_lost(torch: Any, tmp_path: Path) -> None:
    def make() -> Tensors:
        return {"x": torch.zeros(2), "y": torch.ones(2)}

    def grow(tensors: Tensors) -> None:
        tensors["x"] = torch.zeros(4)

    def drop(tensors: Tensors) -> None:
        del tensors["x"]

    for there, here in ((nothing, grow), (grow, nothing), (nothing, drop), (drop, nothing)):
        assert compared(torch, tmp_path, make, there, here)["x"].difference is None
    assert compared(torch, tmp_path, make, drop, drop) == {}
    assert compared(torch, tmp_path, make, grow, grow)["x"].difference == 0.0


def test_what_is_not_a_number_any_more_is_lost(torch: Any, tmp_path: Path) -> None:
    def make() -> Tensors:
        return {"x": torch.zeros(2)}

    def spoil(tensors: Tensors) -> None:
        tensors["x"][0] = torch.nan

    assert compared(torch, tmp_path, make, nothing, spoil)["x"].difference is None
    assert compared(torch, tmp_path, make, spoil, spoil)["x"].difference == 0.0


def test_of_a_large_one_a_part_is_compared_and_that_is_said(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 4)
    monkeypatch.setattr(module, "MOST_OF_A_WEIGHT", 2)
    for changed in (0, 3):
        tensors = {"large": torch.zeros(3, 3).t(), "small": torch.zeros(4)}
        seen = Kept(torch, tmp_path, is_reference=True)
        seen.begin(tensors)
        tensors["large"].flatten()[changed] = 1.0
        tensors["large"] = torch.ones(3, 3).t() if changed else tensors["large"]
        seen.end(STEP, tensors)
        assert seen.seen == [KeptSeen(STEP, tensors=2, changed=bool(changed), in_part=1)]
    one = torch.load(tmp_path / f"step-{STEP}-after.pt")["large"]
    assert one.tolist() == [1.0, 1.0, 1.0]
    weight = {"weight": torch.nn.Parameter(torch.zeros(3), requires_grad=False)}
    seen.begin(weight)
    seen.end(STEP, weight)
    assert seen.seen[-1].in_part == 1


def test_whole_numbers_are_looked_at_before_they_are_made_alike(torch: Any, tmp_path: Path) -> None:
    saved = {"n": torch.tensor(36), "of": torch.tensor(True), "zero": torch.tensor([0])}
    now = {"n": torch.tensor(37), "of": torch.tensor(True), "zero": torch.tensor([2])}
    many = {"many": torch.zeros(2, dtype=torch.long), "mean": torch.tensor(1.0)}
    seen = Kept(torch, tmp_path, is_reference=False)
    found = {one.tensor: one for one in seen.counts(STEP, {**saved, **many}, {**now, **many})}
    assert found.keys() == saved.keys()
    assert {one.quantity for one in found.values()} == {"count"}
    assert (found["n"].reference, found["n"].difference) == (36.0, 1.0)
    assert found["n"].along * found["n"].reference == pytest.approx(37.0)
    assert (found["of"].difference, found["zero"].difference) == (0.0, 2.0)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_what_lies_nowhere_or_in_a_way_of_its_own_is_left_out(torch: Any, tmp_path: Path) -> None:
    tensors = {
        "nowhere": torch.zeros(2, device="meta"),
        "quantised": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "plain": torch.ones(2),
    }
    seen = Kept(torch, tmp_path, is_reference=True)
    seen.begin(tensors)
    assert seen.end(STEP, tensors) == []
    assert [one.tensors for one in seen.seen] == [1]


def test_without_what_the_reference_left_nothing_is_compared(torch: Any, tmp_path: Path) -> None:
    seen = Kept(torch, tmp_path, is_reference=False)
    seen.begin({"x": torch.zeros(2)})
    assert (seen.end(STEP, {"x": torch.ones(2)}), seen.seen) == ([], [])

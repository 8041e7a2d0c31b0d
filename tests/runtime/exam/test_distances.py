from __future__ import annotations

from typing import Any

import pytest

from hotloop.runtime.exam import distances
from hotloop.runtime.exam.distances import distance, norm


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_what_is_added_up_piece_by_piece_is_that_of_the_whole(
    torch: Any, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(distances, "PIECE", piece)
    torch.manual_seed(0)
    wanted, found = torch.randn(9, 11, dtype=torch.float64), torch.randn(9, 11, dtype=torch.float64)
    seen = distance(torch, wanted, found, None)
    assert (
        seen.reference == pytest.approx(float(wanted.norm())) == pytest.approx(norm(torch, wanted))
    )
    assert seen.difference == pytest.approx(float((found - wanted).norm()))
    assert seen.along == pytest.approx(float((wanted * found).sum() / wanted.norm() ** 2))
    assert seen.unsettled == 0.0


def test_unsettled_is_what_differs_where_gradients_have_less_than_one_bit_in_common(
    torch: Any,
) -> None:
    wanted, found = torch.tensor([1.0, 1.0, 1.0, 1.0]), torch.tensor([1.0, 4.0, 3.0, 6.0])
    then, now = torch.tensor([1.0, 1e-9, 0.0, 1.0]), torch.tensor([1.0, -1e-9, 0.0, 1.4])
    seen = distance(torch, wanted, found, (then, now))
    assert (seen.unsettled, seen.undecided) == (3.0, 1)


def test_both_parts_of_a_complex_number_count(torch: Any) -> None:
    wanted = torch.tensor([3 + 4j, 1 + 0j])
    seen = distance(torch, wanted, wanted.conj(), (wanted, wanted.conj()))
    assert seen.reference == pytest.approx(26**0.5) == pytest.approx(norm(torch, wanted))
    assert seen.difference == seen.unsettled == 8.0 and seen.undecided == 1


def test_nothing_is_no_distance_and_not_a_number_is_none_either(torch: Any) -> None:
    nothing = torch.zeros(0)
    assert distance(torch, nothing, nothing, None).along == 1.0
    one = torch.ones(3)
    assert distance(torch, one, one * float("nan"), None).difference != 0.0

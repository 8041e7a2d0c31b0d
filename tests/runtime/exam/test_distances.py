from __future__ import annotations

from typing import Any

import pytest

from hotloop.runtime.exam import distances
from hotloop.runtime.exam.distances import Distances


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def host(torch: Any) -> Distances:
    return Distances(torch, torch.device("cpu"))


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_what_is_added_up_piece_by_piece_is_that_of_the_whole(
    torch: Any, host: Distances, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(distances, "PIECE", {"cpu": piece})
    torch.manual_seed(0)
    wanted, found = torch.randn(9, 11, dtype=torch.float64), torch.randn(9, 11, dtype=torch.float64)
    seen = host.between(wanted, found, None)
    assert seen.reference == pytest.approx(float(wanted.norm())) == pytest.approx(host.norm(wanted))
    assert seen.difference == pytest.approx(float((found - wanted).norm()))
    assert seen.along == pytest.approx(float((wanted * found).sum() / wanted.norm() ** 2))
    assert seen.unsettled == 0.0


def test_unsettled_is_what_differs_where_gradients_have_less_than_one_bit_in_common(
    torch: Any, host: Distances
) -> None:
    wanted, found = torch.tensor([1.0, 1.0, 1.0, 1.0]), torch.tensor([1.0, 4.0, 3.0, 6.0])
    then, now = torch.tensor([1.0, 1e-9, 0.0, 1.0]), torch.tensor([1.0, -1e-9, 0.0, 1.4])
    seen = host.between(wanted, found, (then, now))
    assert (seen.unsettled, seen.undecided) == (3.0, 1)


def test_both_parts_of_a_complex_number_count(torch: Any, host: Distances) -> None:
    wanted = torch.tensor([3 + 4j, 1 + 0j])
    seen = host.between(wanted, wanted.conj(), (wanted, wanted.conj()))
    assert seen.reference == pytest.approx(26**0.5) == pytest.approx(host.norm(wanted))
    assert seen.difference == seen.unsettled == 8.0 and seen.undecided == 1


def test_nothing_is_no_distance_and_not_a_number_is_none_either(
    torch: Any, host: Distances
) -> None:
    nothing = torch.zeros(0)
    assert host.between(nothing, nothing, None).along == 1.0
    one = torch.ones(3)
    assert host.between(one, one * float("nan"), None).difference != 0.0


def test_different_sizes_cannot_be_compared(torch: Any, host: Distances) -> None:
    with pytest.raises(ValueError, match="sizes"):
        host.between(torch.ones(1), torch.ones(5), None)


def test_a_device_without_room_leaves_it_to_the_host(torch: Any, host: Distances) -> None:
    class Full(Distances):
        def _compared(self, device: Any, *tensors: Any) -> Any:
            if device.type == "cuda":
                raise torch.OutOfMemoryError
            return super()._compared(device, *tensors)

    full = Full(torch, torch.device("cuda"))
    wanted, found = torch.ones(3), torch.zeros(3)
    assert full.between(wanted, found, None) == host.between(wanted, found, None)


@pytest.mark.gpu
def test_a_device_says_what_the_host_says(torch: Any, host: Distances) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    there = Distances(torch, torch.device("cuda"))
    torch.manual_seed(0)
    wanted, found, then, now = (torch.randn(3000, 2000) for _ in range(4))
    expected = host.between(wanted, found, (then, now))
    seen = there.between(wanted, found.cuda(), (then, now.cuda()))
    assert seen.undecided == expected.undecided
    for name in ("reference", "difference", "along", "unsettled"):
        assert getattr(seen, name) == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-12)
    assert there.norm(wanted) == pytest.approx(host.norm(wanted), rel=1e-12)

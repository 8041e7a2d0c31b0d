from __future__ import annotations

from typing import Any

import pytest

from hotloop.runtime.script import ScriptDriver
from hotloop.runtime.smaller import smaller_batches
from hotloop.seams import Seams


@pytest.mark.parametrize(("divisor", "sizes"), [(1, [8, 8, 8, 8]), (3, [2] * 16), (99, [1] * 32)])
def test_batches_are_smaller_and_all_samples_are_there(
    divisor: int, sizes: list[int], torch: Any, jobs: Any, unharmed: None
) -> None:
    seams = Seams()
    smaller_batches(seams, divisor)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    by_name = [len(x) for x, _ in jobs.loader(size=8)]
    by_place = [len(x) for x in torch.utils.data.DataLoader(torch.ones(32, 1), 8)]
    whole = list(torch.utils.data.DataLoader(torch.ones(5, 2), batch_size=None))
    driver.detach()
    assert by_name == by_place == sizes
    assert len(whole) == 5
    assert seams.loader_built.is_used == (divisor > 1)


def test_batches_of_a_sampler_are_its_own(torch: Any, unharmed: None) -> None:
    seams = Seams()
    smaller_batches(seams, 2)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    loader = torch.utils.data.DataLoader(torch.ones(6, 2), batch_sampler=[[0, 1, 2], [3, 4, 5]])
    driver.detach()
    assert [len(batch) for batch in loader] == [3, 3]

"""Real torch, and small jobs that only import it where it is."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.levers import jobs

    return jobs


@pytest.fixture
def owned(torch: Any) -> Any:
    """Jobs that are described, whose loop is ours."""
    from hotloop.runtime.owned import augmenting
    from tests.runtime.owned import jobs

    augmenting.switch_on()  # an examination, in this very process, may have switched it off
    return jobs

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
    from tests.runtime.owned import jobs

    return jobs

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

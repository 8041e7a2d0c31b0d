from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def owned(torch: Any) -> Any:
    """`tests.runtime.owned.jobs`, which imports torch."""
    from tests.runtime.owned import jobs

    return jobs

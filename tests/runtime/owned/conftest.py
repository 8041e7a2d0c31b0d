from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def owned(torch: Any) -> Any:
    """`tests.runtime.owned.jobs`, which imports torch."""
    from hotloop.runtime.owned import augmenting
    from tests.runtime.owned import jobs

    augmenting.switch_on()  # an examination, in this very process, may have switched it off
    return jobs

"""Looking ends with its process; tests share one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def compiled_code_runs_again() -> Iterator[None]:
    yield
    torch.compiler.set_stance("default")

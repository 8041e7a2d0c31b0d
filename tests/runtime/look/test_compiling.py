from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from hotloop.runtime.look import compiling


def test_only_of_the_users_functions_it_is_told_where_they_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of others that would be a line which nobody wrote."""
    files = (__file__, torch.__file__, "<eval_with_key>.0", None)
    made = [
        SimpleNamespace(co_name="one", co_filename=file, co_firstlineno=1, duration_us=2_000_000)
        for file in files
    ]
    monkeypatch.setattr(compiling, "_metrics", lambda: made)
    found = compiling.compilations(known=0)
    assert [one.file for one in found] == [__file__, "", "", ""]
    assert [one.seconds for one in compiling.compilations(known=3)] == [2.0]

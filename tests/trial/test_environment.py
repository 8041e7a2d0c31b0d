from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.trial.environment import child_environment
from hotloop.trial.reaping import MARK


def made() -> dict[str, str]:
    return child_environment(Path("/study/spec.json"), "abc", Path("/study/cache"))


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)


def test_is_the_users_own_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SETTING", "1")
    before = dict(os.environ)
    found = made()
    assert found["MY_SETTING"] == "1"
    assert found["HOTLOOP_SPEC"] == "/study/spec.json"
    assert found[MARK] == "abc"
    assert dict(os.environ) == before


def test_our_folder_comes_first_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path(made()["PYTHONPATH"], "sitecustomize.py").is_file()
    assert "HOTLOOP_PYTHONPATH" not in made()
    monkeypatch.setenv("PYTHONPATH", "/mine:/yours")
    first, *rest = made()["PYTHONPATH"].split(os.pathsep)
    assert Path(first, "sitecustomize.py").is_file()
    assert rest == ["/mine", "/yours"]
    assert made()["HOTLOOP_PYTHONPATH"] == "/mine:/yours"


def test_an_empty_path_comes_back_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """To Python an empty entry would mean the working folder."""
    monkeypatch.setenv("PYTHONPATH", "")
    assert Path(made()["PYTHONPATH"], "sitecustomize.py").is_file()
    assert made()["HOTLOOP_PYTHONPATH"] == ""


def test_trackers_are_off_whatever_the_user_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    assert made()["WANDB_MODE"] == "disabled"


def test_compile_caches_are_the_studys_unless_the_user_has_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert made()["TORCHINDUCTOR_CACHE_DIR"] == "/study/cache/inductor"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/mine")
    assert made()["TORCHINDUCTOR_CACHE_DIR"] == "/mine"


def test_bytecode_that_is_kept_nowhere_is_kept_in_the_study(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    spec, cache = Path("/study/spec.json"), Path("/study/cache")
    found = child_environment(spec, "abc", cache, compiles_source=True)
    assert found["PYTHONPYCACHEPREFIX"] == "/study/cache/bytecode"
    assert "PYTHONDONTWRITEBYTECODE" not in found
    assert "PYTHONPYCACHEPREFIX" not in made()
    assert made()["PYTHONDONTWRITEBYTECODE"] == "1"
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/mine")
    assert child_environment(spec, "abc", cache, True)["PYTHONPYCACHEPREFIX"] == "/mine"


def test_a_trial_beside_others_leaves_them_the_cores_it_waits_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    where = Path("/study/spec.json"), "abc", Path("/study/cache")
    assert child_environment(*where, beside_others=True)["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in child_environment(*where)

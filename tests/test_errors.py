from __future__ import annotations

import re

import pytest

from hotloop import errors
from hotloop.errors import HotloopError
from tests.sources import ROOT

KINDS = HotloopError.__subclasses__()


def test_every_error_has_an_exit_code_of_its_own_in_our_band() -> None:
    codes = [kind.exit_code for kind in KINDS]
    assert len(KINDS) >= 19
    assert len(set(codes)) == len(codes)
    assert all(79 <= code <= 119 for code in codes)


def test_the_tree_at_the_top_of_the_file_is_true() -> None:
    row = re.compile(r"[├└]── (\w+)\s+(\d+)")
    drawn = {name: int(code) for name, code in row.findall(errors.__doc__ or "")}
    assert drawn == {kind.__name__: kind.exit_code for kind in KINDS}


def test_the_page_about_exit_codes_knows_all_of_them() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert told == {kind.exit_code for kind in KINDS} | {129, 130, 141, 143}


def test_the_tree_is_flat() -> None:
    assert all(not kind.__subclasses__() for kind in KINDS)


def test_an_error_is_its_sentence_and_what_to_do_about_it() -> None:
    error = errors.TimedOut("It took too long.", "Wait.", detail="at line 3")
    assert error.sentence == "It took too long."
    assert str(error) == "It took too long. Wait."
    assert str(errors.TimedOut("It took too long.")) == "It took too long."
    assert (error.remedy, error.detail) == ("Wait.", "at line 3")
    with pytest.raises(HotloopError):
        raise error

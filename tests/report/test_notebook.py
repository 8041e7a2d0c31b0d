from __future__ import annotations

from dataclasses import replace

from hotloop.report import notebook
from hotloop.report.profile_rows import PhaseRow, ProfileRows
from hotloop.report.search_rows import rows
from tests.report.studies import lost, won


def test_what_was_won() -> None:
    found = rows(won())
    page = notebook.search("jobs.py:Mine", found, [("study", "there")])
    assert found.headline in page
    for row in found.ladder:
        assert f">{row.name}</td>" in page
    assert page.count("<table>") == page.count("</table>") == 3
    assert ">there</td>" in page


def test_what_was_tried_in_vain() -> None:
    found = rows(lost())
    page = notebook.search("train.py", found, [])
    assert found.headline in page
    assert all(row.words in page for row in found.tried)


def test_nothing_that_a_script_says_is_markup() -> None:
    found = replace(rows(won()), headline="<script>alert(1)</script>", facts=(("a", "<b>"),))
    page = notebook.search("<i>", found, [])
    assert "<script" not in page and "<i>" not in page
    assert "&lt;script&gt;" in page and "&lt;b&gt;" in page


def test_a_profile() -> None:
    phases = (PhaseRow("data", "waiting for data", 0.25, "25%"),)
    made = ProfileRows(("8 samples/s",), ("3 ms",), phases, (), (("model", "Net"),), ())
    page = notebook.profile("train.py", made, None, [("study", "there")])
    assert all(word in page for word in ("8 samples/s", "3 ms", "waiting for data", "Net", "there"))
    assert "width:100.00%" in page


def test_phases_are_as_wide_as_their_share() -> None:
    phases = (PhaseRow("data", "a", 0.25, ""), PhaseRow("rest", "b", 0.75, ""))
    made = ProfileRows((), (), phases, (), (), ())
    page = notebook.profile("train.py", made, None, [])
    assert "width:25.00%" in page and "width:75.00%" in page

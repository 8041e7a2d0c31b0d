from __future__ import annotations

from hotloop.report import markdown
from hotloop.report.search_rows import rows
from tests.report.studies import lost, won


def test_it_says_what_the_screen_says() -> None:
    commands = [("to train under the plan", "hotloop run --plan hotloop.json train.py")]
    text = markdown.page("train.py", "python train.py --lr 3e-4", rows(won()), commands)
    lines = text.splitlines()
    assert lines[0] == "# train.py"
    assert lines[2].startswith("**2.01× faster \\[2.00, 2.02\\], indistinguishable training over")
    assert "    python train.py --lr 3e-4" in lines
    assert "| waiting for data | 4.00 ms → 2.00 ms |" in lines
    assert "| + bf16 | 1.20× \\[1.20, 1.21\\] | ~16.0 ms | ~1.60 s | 1.0 GiB |" in lines
    assert "~ from one process alone" in lines
    assert "- cost: 7 runs of the script, 6.7 min" in lines
    assert text.endswith(
        "to train under the plan:\n\n    hotloop run --plan hotloop.json train.py\n"
    )


def test_nothing_won_lists_what_was_tried() -> None:
    lines = markdown.page("train.py", "python train.py", rows(lost())).splitlines()
    assert "| 2 | + bf16 | 25.0 ms | 0.80× | refused: no gain over 20.0 ms |" in lines
    assert "## The ladder" not in lines


def test_a_table_has_a_rule_under_its_head() -> None:
    lines = markdown.page("train.py", "python train.py", rows(won())).splitlines()
    assert lines[lines.index("| phase | a step |") + 1] == "| --- | --- |"


def test_what_others_say_is_neither_markup_nor_an_escape() -> None:
    verdict = "<b>| *x* `y` [z](q)\n# not a heading \x1b[31mred"
    text = markdown.page("a_b_.py", "python\x1b[2J x.py", rows(lost(verdict=verdict)))
    assert "# a\\_b\\_.py" in text
    assert "**\\<b\\>\\| \\*x\\* \\`y\\` \\[z\\](q) \\# not a heading red**" in text
    assert "    python x.py" in text
    assert "\x1b" not in text

from __future__ import annotations

from hotloop.report.markdown import markdown
from hotloop.report.page import page
from hotloop.study import Refused, Study
from tests.builders import job
from tests.report.studies import lost, won


def lines(study: Study) -> list[str]:
    return markdown(page(study)).splitlines()


def test_it_says_what_the_page_says() -> None:
    found = lines(won())
    assert found[0] == "# train.py"
    start = "**2.00× faster \\[1.99, 2.01\\]. Indistinguishable training over 60 steps: 20.0 ms"
    assert found[2].startswith(start)
    assert "    train.py --lr 3e-4" in found
    assert "| waiting for data | 4.00 ms | 2.00 ms |" in found
    assert "| bf16 | 1.20× \\[1.19, 1.21\\] | \\~16.0 ms |" in found
    assert "~ from one process alone" in found
    assert "| tf32 | 1.004× is less than the 1.020× that would count | 65.0 s |" in found
    assert "- pin\\_memory: there is no GPU to copy to" in found
    assert "- met: a second epoch" in found
    assert "To train under the plan:" in found
    assert found[-1].startswith("    hotloop verify --plan hotloop.json --steps 1000 train.py")


def test_nothing_won_lists_what_was_tried() -> None:
    found = lines(lost())
    assert "| 2 | + bf16 | 25.0 ms | 0.80× | refused: no gain over 20.0 ms |" in found
    assert "| 3 | + compile (reduce-overhead) | – |  | crashed: It failed: ValueError. |" in found
    assert "## The ladder" not in found


def test_a_table_has_a_rule_under_its_head() -> None:
    found = lines(won())
    assert found[found.index("|  | as it is | under the plan |") + 1] == "| --- | --- | --- |"


def test_what_others_say_is_neither_markup_nor_an_escape() -> None:
    from dataclasses import replace

    verdict = "<b>| *x* `y` [z](q)\n# not a heading \x1b[31mred ~~"
    hostile = replace(lost(verdict=verdict), job=job(target="a_b_\x1b[2J.py"))
    text = markdown(page(hostile))
    assert text.startswith("# a\\_b\\_.py\n")
    assert "\\<b\\>\\| \\*x\\* \\`y\\` \\[z\\](q) \\# not a heading red \\~\\~**" in text
    assert "\x1b" not in text


def test_a_failure_is_told_with_where_its_output_lies() -> None:
    failed = Refused("tf32", "It failed: ValueError: no.", True, 3.0, "trial-3/output.log")
    told = "It failed: ValueError: no; its output is in trial-3/output.log, beside the study"
    assert f"| tf32 | {told} | 3.00 s |" in lines(won(refused=(failed,)))

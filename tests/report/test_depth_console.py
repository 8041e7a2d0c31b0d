from __future__ import annotations

import io

from rich.console import Console

from hotloop.report.depth_console import show_depth
from hotloop.report.depth_rows import DepthRows, Table

TABLE = Table(
    "operators, a step",
    ("CPU own", "calls", "operator", "shapes"),
    (("1.5 ms", "4", "aten::mm", "[2, 3]"), ("12.5 ms", "400", "a \x1b[31m[bold]", "")),
    left=2,
)
FOUND = DepthRows((TABLE,), (("traced", "4 steps"),), ("a.csv", "b.csv"), ("No trace.",))


def shown(found: DepthRows, width: int = 80, is_terminal: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, no_color=True)
    show_depth(console, "torch", found)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_columns_stand_below_their_heads() -> None:
    lines = shown(FOUND)
    at = lines.index("  operators, a step")
    assert lines[at + 1 : at + 4] == [
        "  CPU own  calls  operator       shapes",
        "   1.5 ms      4  aten::mm       [2, 3]",
        "  12.5 ms    400  a [bold]",
    ]


def test_what_was_missed_and_what_was_left() -> None:
    lines = shown(FOUND)
    assert "  traced     4 steps" in lines
    assert "  note       No trace." in lines
    assert lines[-2:] == ["  files      a.csv", "             b.csv"]


def test_a_long_line_is_cut_on_a_terminal_only() -> None:
    long = DepthRows((Table("t", ("x",), (("y" * 200,),)),), (), (), ())
    assert "  " + "y" * 200 in shown(long)
    assert any(line.endswith("…") and "y" in line for line in shown(long, 40, is_terminal=True))


def test_nothing_but_problems() -> None:
    lines = shown(DepthRows((), (), (), ("The run was killed.",)))
    assert lines[-1] == "  note       The run was killed."

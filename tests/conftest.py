"""For every test: Ctrl-C works, also where whoever started the tests has it ignored.

A shell ignores it for what it runs in the background, and processes inherit that; hotloop rightly
leaves it ignored then, and there would be nothing to test.
"""

from __future__ import annotations

import signal
from typing import Any

signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was not looked at for want of a browser is said, and not only counted."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr for report in skipped if "tests/browser/" in report.nodeid]
    if reasons:
        why = reasons[0][2] if isinstance(reasons[0], tuple) else str(reasons[0])
        count = f"{len(reasons)} tests of the report in a browser"
        terminalreporter.write_line(f"{count} were skipped: {why.removeprefix('Skipped: ')}")

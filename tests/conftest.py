"""For every test: Ctrl-C and SIGHUP work, also where whoever started the tests has them ignored.

A shell ignores the one for what it runs in the background, nohup the other, and processes inherit
that; hotloop rightly leaves them ignored then, and there would be nothing to test.
"""

from __future__ import annotations

import gc
import signal
from typing import Any

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """All that is there by now stays, and takes longer to look through than what a test makes."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was not looked at for want of a browser is said, and not only counted."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr for report in skipped if "tests/browser/" in report.nodeid]
    if reasons:
        why = reasons[0][2] if isinstance(reasons[0], tuple) else str(reasons[0])
        count = f"{len(reasons)} tests of the report in a browser"
        terminalreporter.write_line(f"{count} were skipped: {why.removeprefix('Skipped: ')}")

"""For every test: Ctrl-C works, also where whoever started the tests has it ignored.

A shell ignores it for what it runs in the background, and processes inherit that; hotloop rightly
leaves it ignored then, and there would be nothing to test.
"""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)

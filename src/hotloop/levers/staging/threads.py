"""The same for many files at once: a store over a network is slow by its latency, not by work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hotloop.levers.caching.kept_items import Unfit

THREADS = 16
TOGETHER = 16
"""Files that a thread is given at a time."""

Item = TypeVar("Item")
Found = TypeVar("Found")


def in_threads(
    work: Callable[[Item], Found], items: Sequence[Item], deadline: float
) -> list[Found]:
    """What comes of each, in their order. No thread is left when this returns: jobs fork."""

    def work_through(some: Sequence[Item]) -> list[Found]:
        found = []
        for item in some:
            keep_to(deadline)
            found.append(work(item))
        return found

    parts = [items[first : first + TOGETHER] for first in range(0, len(items), TOGETHER)]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="hotloop-staging") as pool:
        try:
            return [one for part in pool.map(work_through, parts) for one in part]
        except BaseException:  # Ctrl-C as well: what has not begun shall not
            pool.shutdown(cancel_futures=True)
            raise


def keep_to(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Unfit("copying the dataset's files takes too long")

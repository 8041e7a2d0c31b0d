"""All items of a dataset, drawn once, by processes that are forked off for it.

Whatever drawing an item does besides (a random number drawn, a file left open, a counter moved)
happens there and is gone with them: where a dataset turns out not to be fit, the job goes on as if
nobody had asked. And several cores fill faster than one.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from mmap import mmap
from multiprocessing.connection import Connection, wait
from typing import Any

from hotloop.levers.caching.constancy import Generators, fingerprint
from hotloop.levers.caching.kept_items import OBJECTS, Unfit
from hotloop.levers.caching.shelf import Packer, Shelf

CHUNK = 32
"""Items that are sent together, and after which the random states are looked at."""
ENOUGH_ITEMS = 256
ENOUGH_SECONDS = 1.0
"""From when on it is believed how long filling will take, and how much memory."""
MOST_PROCESSES = 16
GRACE = 2.0
"""Seconds to end an item in: who is killed may hold a lock that the job then waits for in vain."""

RANDOM = "the dataset's items draw random numbers"
CHANGING = "drawing an item changes the dataset"


@dataclass(frozen=True)
class Limits:
    seconds: float
    bytes: float
    workers: int
    """Of the loader: what Python counts references of, each of them copies in time."""


@dataclass
class Filled:
    shelf: Shelf
    bytes: int = 0
    seconds: float = 0.0


def fill(torch: Any, dataset: Any, limits: Limits) -> Filled:
    """Raises Unfit where it is not to be kept."""
    began, count = time.monotonic(), len(dataset)
    filled, done, started = Filled(Shelf(torch, count)), 0, 0.0
    with _processes(torch, dataset, count) as sources:
        while (told := _next(sources, began + limits.seconds)) is not None:
            first, message, buffer = told
            done += filled.shelf.put(first, pickle.loads(message), buffer)
            objects = 0 if filled.shelf.columns else OBJECTS * len(message)
            filled.bytes += len(buffer) + objects * (1 + limits.workers)
            filled.seconds = time.monotonic() - began
            started = started or filled.seconds
            _check(filled, done, started, limits)
    if done < count:
        raise Unfit("a process that was to fill the cache ended too soon")
    return filled


def _check(filled: Filled, done: int, started: float, limits: Limits) -> None:
    """`started`: the seconds until the first items came, which says nothing of the others."""
    left = (len(filled.shelf) - done) / done if done >= ENOUGH_ITEMS else 0.0
    size = filled.bytes * (1 + left)
    if size > limits.bytes:
        raise Unfit(
            f"the items would take {_mib(size)} of memory, and may take {_mib(limits.bytes)}"
        )
    spent = filled.seconds - started
    seconds = filled.seconds + (spent * left if spent > ENOUGH_SECONDS else 0.0)
    if seconds > limits.seconds:
        raise Unfit(
            f"filling the cache would take {seconds:.0f} s, and may take {limits.seconds:.0f} s"
        )


def _mib(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB"


@contextmanager
def _processes(torch: Any, dataset: Any, count: int) -> Iterator[list[Connection]]:
    fork = multiprocessing.get_context("fork")
    number = min(len(os.sched_getaffinity(0)), MOST_PROCESSES, math.ceil(count / CHUNK))
    sources: list[Connection] = []
    started, is_over = [], mmap(-1, 1)
    try:
        for which in range(number):
            source, sink = fork.Pipe(duplex=False)
            firsts = range(which * CHUNK, count, number * CHUNK)
            share = _Share(firsts, sink, [*sources, source], is_over)
            work = fork.Process(target=_work, args=(torch, dataset, share), daemon=True)
            with warnings.catch_warnings():  # of threads, which a loader's workers leave alone too
                warnings.simplefilter("ignore", DeprecationWarning)
                work.start()
            sink.close()
            sources.append(source)
            started.append(work)
        yield sources
    except (AssertionError, OSError) as error:  # a daemon may have no children
        raise Unfit(
            f"no process could be started to fill the cache ({type(error).__name__})"
        ) from None
    finally:
        is_over[0] = 1
        for source in sources:
            source.close()
        deadline = time.monotonic() + GRACE
        for work in started:
            work.join(max(0.0, deadline - time.monotonic()))
            work.kill()
            work.join()


def _next(sources: list[Connection], deadline: float) -> tuple[int, bytes, bytearray] | None:
    """The next items, from whichever process has them. None: all of them have ended."""
    while sources:
        ready = wait(sources, timeout=max(0.0, deadline - time.monotonic()))
        if not ready:
            raise Unfit("filling the cache takes too long")
        source = ready[0]
        assert isinstance(source, Connection)
        try:
            return _received(source)
        except EOFError:  # it is done with its share, or dead
            sources.remove(source)
            source.close()
    return None


def _received(source: Connection) -> tuple[int, bytes, bytearray]:
    told = pickle.loads(source.recv_bytes())
    if isinstance(told, str):
        raise Unfit(told)
    first, size = told
    message, buffer = source.recv_bytes(), bytearray(size)
    if size:
        source.recv_bytes_into(buffer)
    return first, message, buffer


@dataclass(frozen=True)
class _Share:
    """Of a process that draws items."""

    firsts: range
    sink: Connection
    foreign: list[Connection]
    """Which it has from its parent, and would keep open."""
    is_over: mmap


def _work(torch: Any, dataset: Any, share: _Share) -> None:
    """In a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    gc.freeze()  # of what the job has left nothing is ours to clear away: its workers, its GPU's
    torch.set_num_threads(1)  # threads do not survive a fork
    sink = share.sink
    for other in share.foreign:
        other.close()
    with suppress(BrokenPipeError):  # nobody wants to hear it any more
        try:
            for first, message, buffer in _chunks(torch, dataset, share):
                sink.send_bytes(pickle.dumps((first, len(buffer))))
                sink.send_bytes(message)
                if buffer:
                    sink.send_bytes(buffer)
        except Unfit as unfit:
            sink.send_bytes(pickle.dumps(str(unfit)))
        except Exception as error:
            sink.send_bytes(pickle.dumps(f"an item could not be kept: {type(error).__name__}"))


def _chunks(torch: Any, dataset: Any, share: _Share) -> Iterator[tuple[int, bytes, bytearray]]:
    count, looks, packer = len(dataset), None, Packer(torch)
    generators = Generators(torch, dataset)
    generators.watch_entropy()
    states = generators.states()
    for first in share.firsts:
        items = []
        for index in range(first, min(first + CHUNK, count)):
            if share.is_over[0]:
                return
            items.append(dataset[index])
            # From the first item on: it may have opened a file, once and for all.
            looks = looks or fingerprint(torch, dataset)
        if generators.states() != states:
            raise Unfit(RANDOM)
        message, buffer = packer.packed(items)
        yield first, pickle.dumps(message, pickle.HIGHEST_PROTOCOL), buffer
    if looks != (looks and fingerprint(torch, dataset)):
        raise Unfit(CHANGING)

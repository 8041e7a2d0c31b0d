"""How graphs are captured on a GPU, as far as the calls tell; there is none."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers.replaying import BareRecorder

POOL = (0, 7)


class Cuda:
    """torch.cuda, and a capture that something has spoiled."""

    def __init__(self, is_spoiled: bool = False, has_ended: bool = False) -> None:
        self.is_spoiled = is_spoiled
        self.has_ended = has_ended
        """Whether the allocator has heard of the capture's end."""
        self.done: list[Any] = []
        self.streams = 0

    def CUDAGraph(self) -> Any:
        end = self._fail if self.is_spoiled else lambda: self.done.append("end")
        self.is_spoiled = False  # the next is sound
        return SimpleNamespace(
            capture_begin=self._begin, capture_end=end, replay=lambda: self.done.append("run")
        )

    def graph_pool_handle(self) -> Any:
        return POOL

    def Stream(self, device: Any) -> Any:
        self.streams += 1
        return self.streams

    @contextmanager
    def stream(self, stream: Any) -> Any:
        yield

    def synchronize(self, device: Any) -> None:
        self.done.append("synchronize")

    def empty_cache(self) -> None:
        self.done.append("empty")

    def _begin(self, capture_error_mode: str, pool: Any = None) -> None:
        assert capture_error_mode == "thread_local"
        self.done.append(("begin", pool))

    def _fail(self) -> None:
        raise RuntimeError("operation failed due to a previous error during capture")


def torch_with(cuda: Cuda) -> Any:
    def end(*given: Any) -> None:
        if cuda.has_ended:
            raise RuntimeError("not currently recording to mempool_id")
        cuda.done.append(("allocator", given))

    calls = SimpleNamespace(
        _cuda_endAllocateToPool=end,
        _cuda_releasePool=lambda *given: cuda.done.append(("released", given)),
    )
    return SimpleNamespace(cuda=cuda, _C=calls, zeros=lambda *_, **__: None)


def recorder(cuda: Cuda, **how: Any) -> BareRecorder:
    return BareRecorder(torch_with(cuda), SimpleNamespace(index=2), **how)


def test_work_is_captured() -> None:
    cuda = Cuda()
    replay, made = recorder(cuda).record(lambda: "made")
    replay()
    assert made == "made"
    assert cuda.done == ["synchronize", ("begin", POOL), "end", "run"]


def test_room_is_made_for_what_is_large() -> None:
    cuda = Cuda()
    recorder(cuda, is_large=True).record(lambda: None)
    assert cuda.done == ["synchronize", "empty", ("begin", POOL), "end"]


def test_all_recordings_have_one_stream() -> None:
    cuda = Cuda()
    own = recorder(cuda)
    for _ in range(3):
        own.record(lambda: None)
    assert cuda.streams == 1


@pytest.mark.parametrize("error", [ValueError("of the job's own"), KeyboardInterrupt()])
def test_a_capture_that_fails_by_an_error_is_ended(error: BaseException) -> None:
    def work() -> None:
        raise error

    cuda = Cuda()
    with pytest.raises(type(error)):
        recorder(cuda).record(work)
    assert cuda.done[-1] == "end"


def test_of_a_spoiled_capture_the_first_error_is_told_and_torch_is_put_back() -> None:
    def work() -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    cuda = Cuda(is_spoiled=True)
    with pytest.raises(RuntimeError, match="not permitted"):
        recorder(cuda).record(work)
    ended = [("allocator", (2, POOL)), ("released", (2, POOL))]
    assert cuda.done == ["synchronize", ("begin", POOL), *ended, ("begin", None), "end"]


def test_a_capture_that_turns_out_to_be_spoiled_at_its_end() -> None:
    cuda = Cuda(is_spoiled=True)
    with pytest.raises(RuntimeError, match="previous error"):
        recorder(cuda).record(lambda: None)
    assert cuda.done[-3:] == [("released", (2, POOL)), ("begin", None), "end"]


def test_a_pool_is_released_once() -> None:
    """There was no room for the graph itself, after its capture: it releases the pool as it goes,
    and a second time would end the process."""
    cuda = Cuda(is_spoiled=True, has_ended=True)
    with pytest.raises(RuntimeError):
        recorder(cuda).record(lambda: None)
    assert cuda.done == ["synchronize", ("begin", POOL), ("begin", None), "end"]

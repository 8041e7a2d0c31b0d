"""Without a GPU there is a fake one: what is moved there is a copy that says so, and copies beside
the computation are made at once and counted."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.inspection import Inspection, Kernels
from hotloop.levers import prefetching
from hotloop.levers.device_prefetch import DevicePrefetch
from hotloop.levers.pin_memory import PinMemory
from hotloop.levers.prefetching import Copier
from hotloop.measurement import Software
from tests import builders


def device_of(index: int) -> Any:
    return pytest.importorskip("torch").device("cuda", index)


class FakeCopy:
    """A tensor on the fake GPU."""

    is_cuda = True

    def __init__(self, tensor: Any, how: Any = None, index: int = 0) -> None:
        self.values = tensor.tolist()
        self.nbytes = tensor.nbytes
        self.how = how
        self.device = device_of(index)

    def is_inference(self) -> bool:
        return False


class FakeCopier:
    def __init__(self, full: type[Exception] | None = None) -> None:
        self.begun = 0
        self.handed: list[FakeCopy] = []
        self._full = full

    def begin(self, device: Any, copies: Sequence[Callable[[], Any]]) -> tuple[list[Any], Any]:
        if self._full is not None:
            raise self._full
        self.begun += len(copies)
        return [copy() for copy in copies], "done"

    def hand_over(self, copy: Any, done: Any) -> None:
        assert done == "done"
        self.handed.append(copy)


class Prefetching(DevicePrefetch):
    """With a fake copier."""

    def __init__(self, fake: FakeCopier | None = None) -> None:
        super().__init__()
        self.fake = fake or FakeCopier()

    def copier(self, torch: Any) -> Copier:
        return self.fake


@pytest.fixture
def fake_gpu(torch: Any, pretended_gpu: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return torch


def fake_to(tensor: Any, *args: Any, non_blocking: bool = False, **kwargs: Any) -> FakeCopy:
    return FakeCopy(tensor, how=(args, kwargs))


def move(seams: Any, tensor: Any, *args: Any, **kwargs: Any) -> FakeCopy:
    """As the script's own call, which reaches the seam."""
    kwargs = {"by": fake_to, **kwargs}
    for tell in seams.move.before:
        tell((tensor, *args), kwargs)
    by = kwargs.pop("by")
    result: FakeCopy = by(tensor, *args, **kwargs)
    for tell_after in seams.move.after:
        tell_after((tensor, *args), result, 0)
    return result


def evidence(lever: DevicePrefetch) -> dict[str, Any]:
    receipt = lever.receipt()
    assert receipt.applied, receipt.reason
    return receipt.evidence


def test_from_the_third_batch_on_the_copy_is_there(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, y in jobs.loader():
            assert x.device.type == "cpu"  # what the script is handed
            assert move(seams, x, "cuda").values == x.tolist()
            assert move(seams, y, "cuda").values == y.tolist()
    assert evidence(lever) == {
        "copies": 8,
        "bytes": 4 * (4 * 4 + 4) * 4,
        "begun_while_computing": 0,
        "dropped": 0,
    }
    assert lever.fake.begun == len(lever.fake.handed) == 8


def test_what_was_learned_holds_for_the_next_pass(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        batches = jobs.loader()
        for _ in range(2):
            for x, _ in batches:
                move(seams, x, "cuda")
    assert evidence(lever)["copies"] == 4 + 6


def test_only_what_the_script_moves_is_copied(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for _, y in jobs.loader():
            move(seams, y, "cuda")
    assert lever.fake.begun == 4


def test_a_copy_is_the_scripts_own_call(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            copy = move(seams, x, "cuda:0", fake_gpu.float16, copy=True, non_blocking=True)
            assert copy.how == (("cuda:0", fake_gpu.float16), {"copy": True})
    assert evidence(lever)["copies"] == 4


def test_another_call_is_not_answered(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for number, (x, _) in enumerate(jobs.loader()):
            target = "cuda" if number < 3 else f"cuda:{number}"
            assert move(seams, x, target).how == ((target,), {})
    assert evidence(lever)["copies"] == 1
    assert evidence(lever)["dropped"] == 1


def test_the_second_copy_of_a_tensor_is_the_scripts(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            first, second = move(seams, x, "cuda"), move(seams, x, "cuda")
            assert first is not second
    assert evidence(lever)["copies"] == 4


def test_what_was_changed_on_the_host_is_copied_anew(jobs: Any, fake_gpu: Any) -> None:
    """And after some copies in vain none are made any more."""
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for _ in range(3):
            for x, _ in jobs.loader():
                x.mul_(2)
                assert move(seams, x, "cuda").values == x.tolist()
    assert lever.receipt().reason == "what the script moved was never what had been copied"

    lever = Prefetching()
    with jobs.under(lever) as seams:
        batches = jobs.loader()
        for _ in range(3):
            for x, y in batches:
                x.mul_(2)
                move(seams, x, "cuda")
                move(seams, y, "cuda")
    assert evidence(lever)["dropped"] == prefetching.IN_VAIN
    assert evidence(lever)["copies"] == 18 - prefetching.LEARNED


def test_what_is_to_be_differentiated_is_copied_by_the_script(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            move(seams, x.requires_grad_(), "cuda")
    assert not lever.receipt().applied


def test_a_copy_nobody_asks_for_is_dropped(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for number, (x, y) in enumerate(jobs.loader()):
            move(seams, x, "cuda")
            if number < prefetching.LEARNED:
                move(seams, y, "cuda")
    assert evidence(lever)["dropped"] == prefetching.IN_VAIN
    assert lever.fake.begun == 4 + prefetching.IN_VAIN


def test_batches_of_changing_structure_are_learned_anew(jobs: Any, fake_gpu: Any) -> None:
    def collate(items: Any) -> Any:
        x = fake_gpu.stack([item[0] for item in items])
        return [x] if int(x[0, 0] * 24) % 8 else [x, x.clone()]

    lever = Prefetching()
    with jobs.under(lever) as seams:
        for batch in jobs.loader(collate_fn=collate):
            assert move(seams, batch[0], "cuda").values == batch[0].tolist()
    assert not lever.receipt().applied


def test_views_and_other_tensors_are_the_scripts(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            move(seams, x[:2], "cuda")
            move(seams, fake_gpu.ones(3), "cuda")
    assert lever.receipt().reason == "no batch of the script's loader was copied to a GPU"


@pytest.mark.parametrize("odd", [("cuda", None, True), ("tensor",)])
def test_calls_that_cannot_be_repeated_are_the_scripts(
    odd: tuple[Any, ...], jobs: Any, fake_gpu: Any
) -> None:
    args = (fake_gpu.ones(1),) if odd == ("tensor",) else odd
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            move(seams, x, *args)
    assert not lever.receipt().applied and not lever.fake.begun


def test_a_device_without_a_number_is_the_current_one(
    jobs: Any, fake_gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for target, copies in (("cuda", 1), ("cuda:0", 4), (0, 4)):
        monkeypatch.setattr(fake_gpu.cuda, "current_device", lambda: 0)
        lever = Prefetching()
        with jobs.under(lever) as seams:
            for number, (x, _) in enumerate(jobs.loader()):
                if number == 3:
                    monkeypatch.setattr(fake_gpu.cuda, "current_device", lambda: 1)
                move(seams, x, target)
        assert evidence(lever)["copies"] == copies


def test_what_is_captured_is_the_scripts(
    jobs: Any, fake_gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph cannot wait for what was begun outside it."""
    monkeypatch.setattr(fake_gpu.cuda, "is_current_stream_capturing", lambda: True)
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            move(seams, x, "cuda")
    assert not lever.receipt().applied


def test_another_thread_draws_in_its_own_order(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        batches, drawn = iter(jobs.loader()), []
        for _ in range(6):
            thread = threading.Thread(target=lambda: drawn.append(next(batches)))
            thread.start()
            thread.join()
            move(seams, drawn[-1][0], "cuda")
    assert not lever.receipt().applied and not lever.fake.begun


def test_whether_the_script_waits_makes_no_difference(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for number, (x, _) in enumerate(jobs.loader()):
            move(seams, x, "cuda", **({"non_blocking": True} if number % 2 else {}))
    assert evidence(lever)["copies"] == 4


def test_together_with_pin_memory(jobs: Any, fake_gpu: Any) -> None:
    lever, pinning = Prefetching(), PinMemory()
    with jobs.under(pinning, lever) as seams:
        for x, _ in jobs.loader():
            move(seams, x, "cuda")
    assert pinning.receipt().evidence == {"loaders": 1, "copies": 6}
    assert evidence(lever)["copies"] == 4


def test_a_script_that_pins_itself(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching()
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader(pin_memory=True):
            move(seams, x, "cuda", non_blocking=True)
    assert evidence(lever)["copies"] == 4


def test_without_memory_it_stops_and_says_so(jobs: Any, fake_gpu: Any) -> None:
    lever = Prefetching(FakeCopier(full=fake_gpu.OutOfMemoryError))
    with jobs.under(lever) as seams:
        for x, _ in jobs.loader():
            assert move(seams, x, "cuda").values == x.tolist()
    assert lever.receipt().reason == "there is no memory for a second batch on the GPU"


class FakeIterator:
    """Of a loader with workers and a thread that pins, with what torch keeps there."""

    _pin_memory = True

    def __init__(self) -> None:
        self._data_queue: Any = queue.Queue()
        self._rcvd_idx = 0
        self._task_info: dict[int, tuple[Any, ...]] = {}

    def take(self) -> Any:
        early = self._task_info.pop(self._rcvd_idx, (0,))
        data = early[1] if len(early) > 1 else self._data_queue.get()[1]
        self._rcvd_idx += 1
        return data


def tell(seam: Any, *args: Any, result: Any = None) -> None:
    for listener in seam.after:
        listener(args, result, 0)


def test_a_batch_that_waits_is_copied_and_not_taken(
    jobs: Any, fake_gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_gpu.Tensor, "is_pinned", lambda tensor: True)
    lever = Prefetching()
    batches = [(fake_gpu.full((2,), float(n)), fake_gpu.ones(1)) for n in range(6)]
    with jobs.under(lever) as seams:
        iterator = FakeIterator()
        for number, batch in enumerate(batches):
            iterator._task_info[number] = (0,)
            iterator._data_queue.put((number, batch))
        lever._sources[iterator] = prefetching.Source()
        for number in range(6):
            batch = iterator.take()
            tell(seams.batch, iterator, result=batch)
            assert lever._dropped == 0
            assert move(seams, batch[0], "cuda").values == [number, number]
            tell(seams.backward, None)
            tell(seams.backward, None)  # a second pass finds it under way
            assert iterator._data_queue.qsize() == 5 - number
    # How to copy is known after the second batch, before the third is drawn.
    assert evidence(lever)["copies"] == 4
    assert evidence(lever)["begun_while_computing"] == 4


def test_what_waits_is_found_wherever_torch_keeps_it(fake_gpu: Any) -> None:
    iterator = FakeIterator()
    assert prefetching.waiting(iterator) is None
    iterator._data_queue.put((1, "second"))
    assert prefetching.waiting(iterator) is None
    iterator._data_queue.put((0, "first"))
    assert prefetching.waiting(iterator) == "first"
    iterator._task_info[0] = (3, "came early")
    assert prefetching.waiting(iterator) == "came early"
    assert prefetching.waiting(object()) is None
    iterator._data_queue = SimpleNamespace(get=lambda: (0, "another process's"))
    assert prefetching.waiting(iterator) is None  # as without a thread that pins


def test_torch_still_keeps_it_there(jobs: Any, torch: Any) -> None:
    """The fake above is no better than its resemblance."""
    iterator = iter(jobs.loader(num_workers=1))
    assert iterator._rcvd_idx == 0
    assert all(isinstance(info, tuple) for info in iterator._task_info.values())
    assert set(iterator._task_info) == {0, 1}
    next(iterator)
    assert iterator._rcvd_idx == 1
    assert hasattr(iterator, "_data_queue")
    assert prefetching.waiting(iterator) is None  # nobody pins, so this queue is another process's


def test_data_on_the_device_and_no_gpu_are_left_alone(
    jobs: Any, fake_gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lever = Prefetching()
    with jobs.under(lever):
        jobs.loader(jobs.Numbers(x=fake_gpu.empty(2, device="meta")))
    assert "lives on the GPU" in lever.receipt().reason
    monkeypatch.setattr(fake_gpu.cuda, "device_count", lambda: 0)
    lever = Prefetching()
    with jobs.under(lever):
        assert not jobs.loader().pin_memory
    assert lever.receipt().reason == "there is no GPU to copy to"


def measured(copying: float) -> Any:
    log = builders.Log()
    for _ in range(20):
        log.data(1, 8)
        if copying:
            log.copy(copying)
        log.forward(5, 8).backward(8).optimizer(3)
    measurement = builders.measurement(log.events)
    return replace(measurement, software=Software(device=builders.GPU))


def test_it_expects_to_win_what_copying_takes(jobs: Any) -> None:
    expected = DevicePrefetch.expected(jobs.seen(measurement=measured(3)))
    assert expected.share == pytest.approx(0.15)
    assert DevicePrefetch.settings(jobs.seen()) == [{}]


def test_what_the_cpu_does_not_wait_for_the_gpu_still_does(jobs: Any) -> None:
    """Copies from pinned memory take the CPU no time, and the GPU as long as ever."""
    seen = jobs.seen(measurement=measured(0.01))
    assert "of a step" in DevicePrefetch.expected(seen).reason
    step = round(seen.figures.step.mean * 1e9)
    kernels = Kernels(
        steps=2,
        end_ns=2 * step,
        names=["gemm", "Memcpy HtoD (Pinned -> Device)"],
        name=[0, 1, 0, 1],
        start_ns=[0, 1, 2, 3],
        duration_ns=[step // 2, step // 10] * 2,
    )
    looked = replace(seen, inspection=Inspection(kernels=kernels))
    assert DevicePrefetch.expected(looked).share == pytest.approx(0.1, rel=0.01)


def test_it_refuses_what_it_cannot_help(jobs: Any) -> None:
    assert "on a CPU" in DevicePrefetch.expected(jobs.seen()).reason
    nothing = jobs.seen(measurement=measured(0))
    assert DevicePrefetch.expected(nothing).reason == "the job copies no batch to the GPU"
    without = jobs.seen(measurement=measured(3), loaders=[])
    assert DevicePrefetch.expected(without).reason == "the script has no loader"


def test_whoever_moves_a_tensor_may_be_another(torch: Any) -> None:
    """The seam, as the driver reaches it; on a CPU no call of a script's would."""
    from hotloop.runtime.script import _leaving_host
    from hotloop.seams import Seam

    seam = Seam()
    moved = _leaving_host(seam, fake_to, torch.device)
    tensor = torch.ones(2)
    assert moved(tensor, "cuda", non_blocking=True).values == [1, 1]
    seam.before.append(lambda args, kwargs: kwargs.update(by=lambda *args, **kwargs: "another"))
    assert moved(tensor, "cuda", non_blocking=True) == "another"
    assert moved(tensor, torch.float64).how == ((torch.float64,), {})  # a cast is none


# On a GPU.


@pytest.fixture
def cuda(torch: Any) -> Any:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return torch


@pytest.mark.gpu
@pytest.mark.parametrize("workers", [0, 2])
def test_on_a_gpu_batches_arrive_as_they_are(jobs: Any, cuda: Any, workers: int) -> None:
    weight = cuda.ones(1, device="cuda", requires_grad=True)

    def arrived() -> list[Any]:
        batches, found = jobs.loader(num_workers=workers), []
        for _ in range(3):
            for number, (x, y) in enumerate(batches):
                if number == 4:
                    x.mul_(2)
                there, target = x.to("cuda"), y.cuda(non_blocking=True)
                assert x.device.type == y.device.type == "cpu"
                time.sleep(0.01)  # a worker has the next one ready by then
                (there.sum() * weight).sum().backward()
                found.append((there, target))
        return [(x.cpu().tolist(), y.cpu().tolist()) for x, y in found]

    plain = arrived()
    lever = DevicePrefetch()
    with jobs.under(lever):
        assert arrived() == plain
    assert evidence(lever)["copies"] > 20
    assert evidence(lever)["dropped"] == 3  # which were changed on the host
    if workers:
        assert evidence(lever)["begun_while_computing"] > 0


@pytest.mark.gpu
def test_on_a_gpu_the_copy_does_not_wait_for_what_is_computed(jobs: Any, cuda: Any) -> None:
    lever = DevicePrefetch()
    with jobs.under(lever):
        batches = iter(jobs.loader())
        for _ in range(3):
            next(batches)[0].to("cuda")
        cuda.cuda.synchronize()
        cuda.cuda._sleep(2_000_000_000)  # about a second
        busy = cuda.cuda.Event()
        busy.record()
        x, _ = next(batches)
        source = lever._sources[lever._latest()]
        done = source.flights[id(x)].done
        time.sleep(0.05)
        assert done.query() and not busy.query()
        assert cuda.equal(x.to("cuda").cpu(), x)


@pytest.mark.gpu
def test_on_a_gpu_memory_is_not_given_away_before_it_is_used(jobs: Any, cuda: Any) -> None:
    """The script drops its batch while the GPU has not come to it yet."""
    big = cuda.utils.data.TensorDataset(cuda.arange(64.0).repeat_interleave(250_000).view(64, -1))
    lever, sums = DevicePrefetch(), []
    with jobs.under(lever):
        for (x,) in jobs.loader(big):
            there = x.to("cuda")
            cuda.cuda._sleep(20_000_000)
            sums.append(there.mean())
            del there
    assert [float(one) for one in sums] == pytest.approx([4 * n + 1.5 for n in range(16)])
    assert evidence(lever)["copies"] == 14

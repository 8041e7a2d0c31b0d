from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.runtime.script import ScriptDriver, _leaving_host, _names_a_device
from hotloop.runtime.watching import Watch
from hotloop.seams import Seam, Seams
from tests.runtime.conftest import fingerprint

WHERE = {
    "loader": {"DataLoader.__iter__"},
    "batch": {"_BaseDataLoaderIter.__next__"},
    "backward": {"torch.autograd.backward"},
    "grad": {"torch.autograd.grad"},
    "scale": {"GradScaler.scale"},
    "optimizer": {"Optimizer.__init__"},
    "zero_grad": {"Optimizer.zero_grad", "Module.zero_grad"},
}


def changes(torch: Any, before: dict[str, Any]) -> set[str]:
    now = fingerprint(torch)
    return {name for name in before | now if now.get(name) != before.get(name)}


def test_with_nobody_listening_nothing_is_patched(torch: Any, unharmed: None) -> None:
    before = fingerprint(torch)
    driver = ScriptDriver(torch, Seams())
    driver.attach()
    assert changes(torch, before) == set()
    driver.detach()


@pytest.mark.parametrize("name", WHERE)
def test_who_listens_is_what_is_patched(name: str, torch: Any, unharmed: None) -> None:
    before = fingerprint(torch)
    seams = Seams()
    getattr(seams, name).before.append(lambda args, kwargs: None)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    assert changes(torch, before) == WHERE[name]
    driver.detach()


def test_a_number_of_threads_can_be_changed_on_its_way(torch: Any, unharmed: None) -> None:
    before, seams = fingerprint(torch), Seams()
    told: list[Any] = []

    def change(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        told.append((args, dict(kwargs)))
        kwargs["threads"] = 1

    seams.threads.before.append(change)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    assert changes(torch, before) == {"torch.set_num_threads"}
    torch.set_num_threads(3)
    assert told == [((), {"threads": 3})]
    assert torch.get_num_threads() == 1
    with pytest.raises(TypeError):
        torch.set_num_threads(threads=3)  # as without us
    driver.detach()


@pytest.fixture
def heard(torch: Any, unharmed: None) -> Iterator[list[Any]]:
    """What is told of losses, and who is asked to compute them."""
    told: list[Any] = []
    seams = Seams()
    seams.loss.before.append(lambda args, kwargs: told.append((len(args), dict(kwargs))))
    driver = ScriptDriver(torch, seams)
    driver.attach()
    yield told
    driver.detach()


def test_losses_are_heard_whoever_calls_them(torch: Any, heard: list[Any]) -> None:
    x, y = torch.randn(3, 4), torch.tensor([0, 1, 2])
    loss = torch.nn.functional.cross_entropy(x, y, reduction="sum")
    assert heard[-1][0] == 2 and heard[-1][1].keys() == {"by", "reduction"}
    original = heard[-1][1]["by"]
    assert original(x, y, reduction="sum") == loss and len(heard) == 1
    assert torch.nn.CrossEntropyLoss()(x, y) == loss / 3
    assert torch.nn.MSELoss()(x, x) == 0 and len(heard) == 3
    assert pickle.loads(pickle.dumps(torch.nn.functional.cross_entropy)) is not original


def test_what_computes_a_loss_can_be_changed(torch: Any, unharmed: None) -> None:
    seams = Seams()
    seams.loss.before.append(lambda args, kwargs: kwargs.update(by=lambda x, y, beta: (x, y, beta)))
    driver = ScriptDriver(torch, seams)
    driver.attach()
    assert torch.nn.functional.smooth_l1_loss(1, 2, beta=3) == (1, 2, 3)
    driver.detach()


def test_steps_are_heard_through_torchs_own_hooks(torch: Any, unharmed: None) -> None:
    before = fingerprint(torch)
    seams = Seams()
    seams.step.after.append(lambda args, result, began: None)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    assert changes(torch, before) == {"step hooks before", "step hooks after"}
    driver.detach()


def test_a_whole_watch_is_taken_off_again(torch: Any, jobs: Any) -> None:
    before = fingerprint(torch)
    watch = Watch(torch)
    watch.driver.attach()
    expected = {*set().union(*WHERE.values()), "step hooks before", "step hooks after"}
    if torch.version.cuda or torch.version.hip:
        expected |= {"Tensor.to", "Tensor.cuda"}
    assert changes(torch, before) == expected
    model = jobs.Net()
    jobs.train_on(jobs.loader(), model)
    assert "__call__" in vars(jobs.Net)
    watch.driver.detach()
    assert changes(torch, before) == set()
    assert "__call__" not in vars(jobs.Net)
    seen = len(watch.clock.events)
    jobs.train_on(jobs.loader(), model)
    assert len(watch.clock.events) == seen


def test_every_kind_of_optimizer_is_heard(torch: Any, jobs: Any, watch: Watch) -> None:
    model = jobs.Net()

    class Own(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

        def step(self, closure: Any = None) -> None:
            pass

    for kind in (torch.optim.SGD, torch.optim.Adam, Own):
        jobs.train(model, steps=2, optimizer=kind(model.parameters()))
    steps = {seen.name: seen.steps for seen in jobs.found(watch).optimizers}
    assert steps == {"SGD": 2, "Adam": 2, "Own": 2}


def test_workers_are_other_processes_and_stay_silent(torch: Any, jobs: Any, watch: Watch) -> None:
    jobs.train_on(jobs.loader(size=8, num_workers=1), jobs.Net())
    seen = jobs.found(watch).loaders[0]
    assert (seen.workers, seen.prefetch) == (1, 2)
    assert jobs.seen(watch)[1] == 1 + 4 + 1


def test_a_forked_child_is_silent(torch: Any, jobs: Any, watch: Watch) -> None:
    """What Python calls in the child right after the fork; `Child` registers it."""
    model = jobs.Net()
    jobs.train(model)
    before = len(watch.clock.events), len(jobs.losses(watch).value)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        watch.seams.silence()
        jobs.train(model, steps=2)
        heard = len(watch.clock.events), len(jobs.losses(watch).value)
        os.write(writer, b"silent" if heard == before else repr(heard).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"silent"
    assert os.waitpid(pid, 0)[1] == 0
    jobs.train(model, steps=1)
    assert len(watch.clock.events) > before[0]


class Host:
    """A tensor on the host that can say where it was asked to go."""

    is_cuda = False

    def to(self, *args: Any, **kwargs: Any) -> str:
        return "moved"


class TestMoves:
    @pytest.mark.parametrize(
        ("args", "kwargs", "leaves"),
        [
            (("cuda",), {}, True),
            (("cuda:1",), {}, True),
            ((0,), {}, True),
            ((), {"device": "cuda"}, True),
            (("cpu",), {}, False),
            ((), {"device": "cpu"}, False),
            ((), {"dtype": "float16"}, False),
            ((), {}, False),
        ],
    )
    def test_only_those_that_leave_the_host(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: bool, torch: Any
    ) -> None:
        heard: list[Any] = []
        seam = Seam(before=[lambda given, _: heard.append(given)])
        move = _leaving_host(seam, Host.to, torch.device)
        assert move(Host(), *args, **kwargs) == "moved"
        assert bool(heard) is leaves

    def test_devices_types_and_other_tensors(self, torch: Any) -> None:
        def leaves(target: Any) -> bool:
            return _names_a_device(torch.device, (target,), {})

        assert leaves(torch.device("cuda"))
        assert not leaves(torch.device("cpu"))
        assert not leaves(torch.float16)
        assert not leaves(torch.zeros(1))

    def test_a_tensor_on_the_device_is_not_copied_from_the_host(self, torch: Any) -> None:
        heard: list[Any] = []
        on_device = Host()
        on_device.is_cuda = True
        seam = Seam(before=[lambda given, _: heard.append(given)])
        assert _leaving_host(seam, Host.to, torch.device)(on_device, "cuda") == "moved"
        assert heard == []

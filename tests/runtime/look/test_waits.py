"""Waits for a GPU, with tensors that only claim to be on one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.inspection import Synchronisation
from hotloop.runtime.look.waits import WARNING, WaitProbe
from hotloop.runtime.patches import Patches


@pytest.fixture
def patches(unharmed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Patches]:
    """Restored before what a test itself replaced."""
    patches = Patches()
    yield patches
    patches.restore()


@pytest.fixture
def probe(torch: Any, patches: Patches) -> WaitProbe:
    probe = WaitProbe(torch)
    probe.attach(patches)
    return probe


@pytest.fixture
def on_device(torch: Any) -> Any:
    class OnDevice(torch.Tensor):  # type: ignore[misc]
        is_cuda = True

    return lambda *values: torch.tensor(*values).as_subclass(OnDevice)


def only(probe: WaitProbe) -> Synchronisation:
    (wait,) = probe.synchronisations
    return wait


@pytest.mark.parametrize(
    ("what", "use"),
    [
        (".item()", lambda x: x.item()),
        (".cpu()", lambda x: x.cpu()),
        (".tolist()", lambda x: x.tolist()),
        ("if tensor", lambda x: 1 if x else 2),
        ("int(tensor)", lambda x: int(x)),
        ("float(tensor)", lambda x: float(x)),
        ("print", lambda x: str(x)),
        ("print", lambda x: f"{x}"),
        ("nonzero", lambda x: x.nonzero()),
        ('.to("cpu")', lambda x: x.to("cpu")),
    ],
)
def test_a_value_that_the_cpu_wants_to_know(
    probe: WaitProbe, on_device: Any, what: str, use: Any
) -> None:
    use(on_device(3.0))
    wait = only(probe)
    assert wait.what == what
    assert wait.stack[-2].source == "use(on_device(3.0))"
    assert len(wait.time_ns) == len(wait.seconds) == 1 and wait.seconds[0] > 0


def test_a_tensor_on_the_host_stalls_nothing(torch: Any, probe: WaitProbe) -> None:
    x = torch.tensor(3.0)
    assert (x.item(), bool(x), int(x), x.tolist()) == (3.0, True, 3, 3.0)
    x.to("cpu"), x.nonzero(), str(x)
    assert probe.synchronisations == []


def test_the_same_line_is_one_with_many_times(probe: WaitProbe, on_device: Any) -> None:
    x = on_device(3.0)
    for _ in range(5):
        x.item()
    assert len(only(probe).seconds) == 5


def test_inside_a_librarys_call(torch: Any, probe: WaitProbe, on_device: Any) -> None:
    from heapq import nlargest

    nlargest(1, [on_device(1.0), on_device(2.0)])
    assert probe.synchronisations
    for wait in probe.synchronisations:
        users = [frame for frame in wait.stack if frame.is_users]
        assert users[-1].source == "nlargest(1, [on_device(1.0), on_device(2.0)])"


class TestTheDriver:
    @pytest.fixture
    def told(
        self, torch: Any, probe: WaitProbe, patches: Patches, monkeypatch: pytest.MonkeyPatch
    ) -> list[Any]:
        modes: list[Any] = []
        monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
        monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
        probe.attach_to_driver(patches)
        return modes

    def test_a_wait_that_no_method_betrays(self, told: list[Any], probe: WaitProbe) -> None:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", message=WARNING)
        for _ in range(2):
            warnings.warn(WARNING, stacklevel=1)
        wait = only(probe)
        assert wait.what == "a hidden wait"
        users = [frame for frame in wait.stack if frame.is_users]
        assert users[-1].source == "warnings.warn(WARNING, stacklevel=1)"
        assert len(wait.time_ns) == 2
        assert told == ["warn"]

    def test_everything_is_put_back(self, told: list[Any], patches: Patches) -> None:
        patches.restore()
        assert told == ["warn", 0]
        assert not any(WARNING in str(entry[1]) for entry in warnings.filters)

"""Binding is real, to cores that this machine has; its NUMA nodes are pretended."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop import topology
from hotloop.levers import affinity
from hotloop.levers.affinity import Affinity
from hotloop.measurement import Software
from tests import builders

CORES = sorted(topology.allowed())
GPUS = {"0000:18:00.0": 0, "0000:9a:00.0": 1}

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


@pytest.fixture(autouse=True)
def two_nodes(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One core on the second node, the others on the first. No GPU."""
    nodes = {0: frozenset(CORES[:-1]), 1: frozenset(CORES[-1:])}
    monkeypatch.setattr(topology, "nodes", lambda: nodes)
    monkeypatch.setattr(topology, "gpu_nodes", dict)
    monkeypatch.setattr(jobs.torch.cuda, "is_initialized", lambda: False)
    with jobs.switches_put_back():
        yield
    affinity._bind(frozenset(CORES))


def pretend_gpu(torch: Any, monkeypatch: pytest.MonkeyPatch, bus: int) -> None:
    """The job turns out to use the GPU on that bus."""
    gpu = SimpleNamespace(pci_domain_id=0, pci_bus_id=bus, pci_device_id=0)
    monkeypatch.setattr(topology, "gpu_nodes", lambda: GPUS)
    monkeypatch.setattr(topology, "node_of", GPUS.__getitem__)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: gpu)


def trained(jobs: Any, lever: Affinity, **loading: Any) -> Any:
    with jobs.under(lever):
        jobs.train(epochs=1, loading=loading)
    return lever.receipt()


def test_a_job_on_a_cpu_stays_on_the_largest_node(jobs: Any, torch: Any) -> None:
    torch.set_num_threads(len(CORES))
    receipt = trained(jobs, Affinity())
    assert sorted(os.sched_getaffinity(0)) == CORES[:-1]
    assert receipt.evidence == {"node": 0, "cores": len(CORES) - 1, "before": len(CORES)}
    assert torch.get_num_threads() == len(CORES) - 1  # not more than it has cores for


def test_a_node_can_be_named(jobs: Any) -> None:
    assert trained(jobs, Affinity(node=1)).evidence["node"] == 1
    assert sorted(os.sched_getaffinity(0)) == CORES[-1:]
    assert trained(jobs, Affinity(node=7)).reason == "there is no node 7, only 0, 1"
    assert Affinity(node=-2).problem()


def test_threads_that_are_there_move_too(jobs: Any) -> None:
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        with jobs.under(Affinity(node=1)):
            assert sorted(os.sched_getaffinity(other.native_id or 0)) == CORES[-1:]
    finally:
        stop.set()
        other.join()


@pytest.mark.parametrize(("visible", "node"), [("", 0), ("1", 1), ("1,0", 1), ("GPU-12ab", 0)])
def test_the_gpus_node(
    visible: str, node: int, jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    pretend_gpu(torch, monkeypatch, bus=(0x18, 0x9A)[node])
    assert trained(jobs, Affinity()).evidence["node"] == node


def test_the_gpu_turns_out_to_be_another(
    jobs: Any, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pretend_gpu(torch, monkeypatch, bus=0x9A)
    assert trained(jobs, Affinity()).reason == "the GPU that it uses is on node 1, not 0"


def test_workers_need_cores_of_their_own(jobs: Any, torch: Any) -> None:
    lever = Affinity(node=1)
    threads = torch.get_num_threads()
    with jobs.under(lever):
        assert len(os.sched_getaffinity(0)) == 1
        jobs.loader(num_workers=1)  # which would make two processes on one core
        assert sorted(os.sched_getaffinity(0)) == CORES
        assert torch.get_num_threads() == threads
        jobs.train(epochs=1)
    assert lever.receipt().reason == "node 1 has 1 core, too few for 1 worker"


def test_the_script_may_choose_itself(jobs: Any) -> None:
    lever = Affinity(node=1)
    with jobs.under(lever):
        os.sched_setaffinity(0, CORES)
        jobs.train(epochs=1)
    assert lever.receipt().reason == "the script has chosen its cores itself"


def test_with_one_node_or_none_known_nothing_is_bound(
    jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nodes, says in (({0: frozenset(CORES)}, "on one NUMA node"), ({}, "does not tell")):
        monkeypatch.setattr(topology, "nodes", lambda nodes=nodes: nodes)
        assert says in trained(jobs, Affinity()).reason
        assert sorted(os.sched_getaffinity(0)) == CORES


def test_what_it_expects(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))

    def expected(nodes: int = 2, **changes: Any) -> Any:
        return Affinity.expected(replace(jobs.seen(**changes), nodes=nodes))

    assert expected().share == pytest.approx(0.8 * 0.15)
    assert expected(measurement=on_gpu).share == pytest.approx(0.2 * 0.3)
    assert "one NUMA node" in expected(nodes=1).reason
    assert "8 workers" in expected(loaders=[builders.loader(workers=8)]).reason

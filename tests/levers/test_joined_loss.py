"""In a loop of ours, a loss that is compiled together with its model."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.levers import graphs
from hotloop.levers.compile import Compile
from hotloop.levers.compile_loss import CompileLoss
from tests.levers.test_microbatch import trained


@pytest.fixture(autouse=True)
def quick(fresh_torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured, differentiated and taken apart as ever; then they run as they are."""
    eager = fresh_torch._dynamo.lookup_backend("aot_eager_decomp_partition")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)


@pytest.mark.parametrize("kind", ["Plain", "Tokens"])
def test_is_one_graph_with_its_model(kind: str, jobs: Any, owned: Any) -> None:
    job = getattr(owned, kind)
    plain = owned.weights(trained(jobs, job))
    whole, loss = Compile(), CompileLoss()
    together = trained(jobs, job, whole, loss)
    for one, other in zip(plain, owned.weights(together), strict=True):
        jobs.torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert whole.receipt().evidence["graph_breaks"] == 0
    receipt = loss.receipt()
    assert receipt.applied
    assert receipt.evidence["functions"] == "with the model"
    assert receipt.evidence["graphs"] == whole.receipt().evidence["graphs"]
    assert receipt.evidence["runs"] == 13  # of 14 steps: the model is found in the first


def test_weights_keep_their_names(jobs: Any, owned: Any) -> None:
    plain = trained(jobs, owned.Plain)
    together = trained(jobs, owned.Plain, Compile(), CompileLoss())
    assert list(together.model.state_dict()) == list(plain.model.state_dict())


def test_without_a_compiled_model_it_is_compiled_alone(jobs: Any, owned: Any) -> None:
    loss = CompileLoss()
    trained(jobs, owned.Tokens, loss)
    assert loss.receipt().evidence["functions"] == "cross_entropy"

"""What models keep beside what they learn: a plan that changes it is refused, and others pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.bench import Bench
from tests.e2e.conftest import TORCH

pytestmark = pytest.mark.e2e

SCRIPT = (
    TORCH
    + """\
from torch import nn
from torch.nn import functional as F

harms = sys.argv[1:]
torch.manual_seed(0)
torch.set_num_threads(1)

class Codes(nn.Module):
    # The nearest of some codes, which follow the average of what is nearest to them.
    def __init__(self):
        super().__init__()
        self.decay = 0.8
        self.register_buffer("codes", torch.randn(16, 24))
        self.register_buffer("sizes", torch.ones(16), persistent=False)
        self.register_buffer("sums", self.codes.clone())
        self.register_buffer("nothing", None)

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(1)
        with torch.no_grad():
            chosen = F.one_hot(nearest, 16).type(x.dtype)
            self.sizes = self.decay * self.sizes + (1 - self.decay) * chosen.sum(0)
            self.sums.mul_(self.decay).add_((1 - self.decay) * (chosen.t() @ x))
            if "codes are kept" not in harms:
                self.codes.copy_(self.sums / self.sizes.clamp(min=1e-3)[:, None])
        found = self.codes[nearest]
        return x + (found - x).detach(), F.mse_loss(x, found)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.spectral_norm(nn.Linear(32, 48))
        self.norm, self.of_data = nn.BatchNorm1d(48), nn.BatchNorm1d(32)
        self.middle, self.quantised = nn.Linear(48, 24), Codes()
        self.planes = nn.Conv1d(4, 4, 1)
        self.instances = nn.InstanceNorm1d(4, track_running_stats=True)
        self.last, self.follower = nn.Linear(24, 8), nn.Linear(48, 8).requires_grad_(False)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(self.of_data(x))))
        codes, apart = self.quantised(self.middle(x))
        planes = self.instances(self.planes(codes.unflatten(1, (4, 6))))
        return self.last(planes.flatten(1)) + self.follower(x), apart

model = Net()
if "averages stay" in harms:
    model.norm.momentum = 0.0
if "momentum" in harms:
    model.norm.momentum = 0.09
if "instances" in harms:
    model.instances.momentum = 0.0
if "twice" in harms:
    # As a block does that is computed again, with what it remembers.
    model.norm.register_forward_hook(
        lambda norm, given, made: None if nested else twice(norm, given[0])
    )
nested = []
def twice(norm, x):
    nested.append(1)
    with torch.no_grad():
        norm(x)
    nested.clear()
if "one ahead" in harms:
    model.norm.num_batches_tracked += 1
optimizer = torch.optim.AdamW([w for w in model.parameters() if w.requires_grad], 1e-2)

x, y = torch.randn(1024, 32), torch.randint(8, (1024,))
for number in range(1000):
    rows = torch.randint(1024, (64,))
    made, apart = model(x[rows])
    loss = F.cross_entropy(made, y[rows]) + apart
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():  # as a momentum encoder follows
        share = 0.02 if "follows" in harms else 0.01
        model.follower.weight[:, :24].lerp_(model.last.weight, share)
"""
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    base = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(base))
        made = Bench(base, SCRIPT)
        yield made
        made.examiner.close()


def test_what_does_no_harm_passes_and_is_counted(bench: Bench) -> None:
    found = bench.under()
    assert found.same, found.reasons
    (said,) = (one for one in found.compared if "buffers" in one)
    assert said.startswith("16 buffers or weights that nothing trains"), said
    assert said.endswith("14 of them changed"), said
    assert not any("buffers" in one for one in found.not_compared)


HARMS = [
    ("averages stay", "arithmetic: the change of model 0: norm.running_"),
    ("momentum", "arithmetic: the change of model 0: norm.running_"),
    ("twice", ": model 0: norm.num_batches_tracked changes by 2 instead of 1"),
    ("one ahead", ": model 0: norm.num_batches_tracked is 37 instead of 36"),
    ("instances", "arithmetic: the change of model 0: instances.running_"),
    ("follows", "arithmetic: the change of model 0: follower.weight"),
    ("codes are kept", "arithmetic: "),
]


@pytest.mark.parametrize(("harm", "why"), HARMS, ids=[harm for harm, _ in HARMS])
def test_harm_to_what_is_kept_is_named(harm: str, why: str, bench: Bench) -> None:
    found = bench.under(harm)
    assert not found.same
    assert any(why in reason for reason in found.reasons), found.reasons

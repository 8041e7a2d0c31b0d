"""Harm planted in real child processes is named; what is harmless passes.

One script misbehaves in the way it is told, and is told under the plan alone. What it is compared
with is run once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotloop.workshop import examine
from hotloop.workshop.exam_steps import STEPS
from tests.e2e.bench import Bench
from tests.e2e.conftest import TORCH

pytestmark = pytest.mark.e2e

SCRIPT = (
    TORCH
    + """\
from torch import nn
from torch.utils.data import DataLoader, Dataset

harms = sys.argv[1:]
torch.manual_seed(0)
torch.set_num_threads(1)

class Digits(Dataset):
    def __init__(self):
        self.x = torch.randn(1000, 32)
        self.y = (self.x @ torch.randn(32, 8)).argmax(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        noise = torch.randn(32)
        return self.x[index] + 0.1 * noise, self.y[index]

def collate(samples):
    if "one sample missing" in harms:
        samples = [one for one in samples if not torch.equal(one[1], rare_y) or far(one[0])]
    return torch.utils.data.default_collate(samples)

def far(x):
    return (x - rare_x).norm() > 2

bits = 2 if "two bits" in harms else 7 if "seven bits" in harms else None

class Coarse(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return rounded(x)

    @staticmethod
    def backward(context, gradient):
        return rounded(gradient)

def rounded(x):
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp((mantissa * 2.0 ** (bits + 1)).round() / 2.0 ** (bits + 1), exponent)

coarse = Coarse.apply

class Half(nn.Linear):
    def forward(self, x):
        if "other summation order" in harms:
            middle = self.in_features // 2
            left = x[:, :middle] @ self.weight[:, :middle].t()
            return left + (x[:, middle:] @ self.weight[:, middle:].t() + self.bias)
        if bits:
            return coarse(nn.functional.linear(coarse(x), coarse(self.weight), self.bias))
        return super().forward(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Half(32, 64), Half(64, 8)
        self.norm, self.dropout = nn.BatchNorm1d(64), nn.Dropout(0.3)

    def forward(self, x):
        return self.two(self.dropout(torch.relu(self.norm(self.one(x)))))

def stale_gradients(model, x, y):
    # As a copy does that was compiled with the weights of long ago in it.
    out = torch.func.functional_call(model, old, (x,))
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    for name, weight in model.named_parameters():
        weight.grad, old[name].grad = old[name].grad, None

def as_half_precision(gradient):
    return torch.where(gradient.abs() > 65504, float("inf"), gradient)

data = Digits()
rare_x, rare_y = data.x[500], data.y[500]
model = Net()
old = {name: w.detach().clone().requires_grad_() for name, w in model.named_parameters()}
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=0.9e-2 if "learning rate" in harms else 1e-2,
    weight_decay=0.0 if "decay lost" in harms else 0.1,
)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
if "decay secretly lost" in harms:
    optimizer.register_step_pre_hook(lambda *_: optimizer.param_groups[0].update(weight_decay=0.0))
    optimizer.register_step_post_hook(lambda *_: optimizer.param_groups[0].update(weight_decay=0.1))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 21, enabled="scaler skips" in harms)
if "scaler skips" in harms:
    for weight in model.parameters():
        weight.register_hook(as_half_precision)
loader = DataLoader(
    data, batch_size=128, shuffle=True, drop_last="last batch dropped" in harms, collate_fn=collate
)

def learn(x, y, number):
    optimizer.zero_grad()
    if "stale weights" in harms:
        stale_gradients(model, x, y)
    else:
        loss = nn.functional.cross_entropy(model(x), y)
        if "nan" in harms and number == 30:
            loss = loss * float("nan")
        if "no loss" in harms:
            weights = list(model.parameters())
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights)):
                weight.grad = gradient
        else:
            scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    if "not clipped" not in harms:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    before = [weight.detach().clone() for weight in model.parameters()]
    if "step left out" not in harms or number % 10:
        scaler.step(optimizer)
        scaler.update()
    if "step undone" in harms and number % 10 == 0:
        for weight, was in zip(model.parameters(), before):
            weight.data.copy_(was)
    scheduler.step()

number = 0
for epoch in range(1000):
    batches = list(loader) if "reordered" in harms else loader
    for x, y in reversed(batches) if "reordered" in harms else batches:
        number += 1
        if "other dropout masks" in harms:
            with torch.random.fork_rng():
                torch.manual_seed(number)
                learn(x, y, number)
        else:
            learn(x, y, number)
"""
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    base = tmp_path_factory.mktemp("equivalence")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(base))
        made = Bench(base, SCRIPT)
        yield made
        made.examiner.close()


HARMS = [
    {"step left out": "step 10: 2 backward passes instead of 1",
     "reordered": "batch 1 of model 0 comes in another order"},
    {"step undone": "step 10: the optimizer stepped but changed no weights",
     "nan": "the loss of backward pass 30 is not a number"},
    {"learning rate": "step 1: lr is 0.009 instead of 0.01",
     "decay lost": "step 1: weight_decay is 0.0 instead of 0.1",
     "last batch dropped": "loader 0: drop_last is True instead of False",
     "one sample missing": "batch 1 of model 0 has 127 samples instead of 128",
     "not clipped": "step 1: gradients were clipped 0 times instead of 1"},
    {"decay secretly lost": "arithmetic: "},
    {"stale weights": "arithmetic: the gradient"},
    {"no loss": "no loss was seen, so there is nothing to compare"},
]  # fmt: skip
"""Those that hide nothing of each other are planted in one process."""


@pytest.mark.parametrize("planted", HARMS, ids=", ".join)
def test_harm_under_a_plan_is_named(planted: dict[str, str], bench: Bench) -> None:
    found = bench.under(*planted)
    assert not found.same
    said = "\n".join(found.reasons)
    assert [reason for reason in planted.values() if reason not in said] == [], said


@pytest.mark.parametrize(
    ("changes", "not_compared"),
    [
        (
            ("other summation order", "other dropout masks"),
            ("seeds were fixed", "dropout was off on both sides"),
        ),
        (("scaler skips",), ("3 steps that the gradient scaler skipped",)),
    ],
)
def test_what_does_no_harm_passes(
    changes: tuple[str, ...], not_compared: tuple[str, ...], bench: Bench
) -> None:
    found = bench.under(*changes)
    assert found.same, found.reasons
    assert (found.steps, found.forced) == (STEPS, 5)
    assert all(words in "\n".join(found.not_compared) for words in not_compared)


def test_two_bits_are_not_the_seven_that_were_claimed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine, "mantissa", lambda lever: 7)
    assert bench.under("seven bits").same
    found = bench.under("two bits")
    assert not found.same
    assert any(reason.startswith("arithmetic: ") for reason in found.reasons), found.reasons

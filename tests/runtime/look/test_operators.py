from __future__ import annotations

import threading
from typing import Any

import pytest

from hotloop.inspection import OperatorLine, Operators
from hotloop.runtime.look.operators import OperatorProbe
from hotloop.runtime.watching import Watch


@pytest.fixture
def probe(torch: Any) -> OperatorProbe:
    return OperatorProbe(torch)


def line(found: Operators, source: str) -> OperatorLine:
    (one,) = [line for line in found.lines if source in line.place.source]
    return one


def test_a_line_and_what_undoes_it(torch: Any, probe: OperatorProbe) -> None:
    x = torch.ones(5, requires_grad=True)
    probe.begin()
    total = torch.zeros(())
    for i in range(30):
        total = total + x[i % 5] * 2  # the line
    total.exp().backward()
    found = probe.end(1)
    loop = line(found, "# the line")
    assert loop.operators >= 3 * 30
    assert loop.median_elements == 1
    assert loop.differentiated >= 2 * 30
    assert loop.backward_operators >= 2 * 30
    assert loop.backward_seconds > 0
    single = line(found, "total.exp()")
    assert single.backward_operators <= 4  # what the loop's own line causes is not charged to it
    assert found.count == sum(found.by_name.values())


def test_what_is_only_looked_at_is_not_undone(torch: Any, probe: OperatorProbe) -> None:
    x = torch.ones(5, requires_grad=True)
    probe.begin()
    y = x.exp()  # learns
    str(y.detach().abs())  # looks
    y.sum().backward()
    found = probe.end(1)
    looks = line(found, "# looks")
    assert looks.operators >= 2
    assert (looks.differentiated, looks.backward_operators) == (0, 0)
    assert line(found, "# learns").backward_operators >= 1


def test_adding_up_gradients_that_meet_is_for_whoever_handed_them_on(
    torch: Any, probe: OperatorProbe
) -> None:
    x = torch.ones(40, 7, requires_grad=True)
    probe.begin()
    whole = x * 2
    total = torch.zeros(())
    for i in range(40):
        total = total + whole[i].sum()  # the line
    total.backward()  # where autograd runs
    found = probe.end(1)
    loop = line(found, "# the line")
    met = 39  # of forty gradients of the whole tensor, one is the first
    assert loop.backward_operators >= 2 * 40 + met
    assert line(found, "# where autograd runs").operators < 5


def test_what_a_recurrent_layer_queues_is_told_apart(torch: Any, probe: OperatorProbe) -> None:
    layer, cell = torch.nn.GRU(4, 4), torch.nn.GRUCell(4, 4)
    sequences = torch.nn.utils.rnn.pack_sequence([torch.ones(9, 4), torch.ones(7, 4)])
    state = torch.zeros(1, 4)
    probe.begin()
    layer(sequences)  # torch's own loop
    for _ in range(9):
        state = cell(state, state)  # the user's own
    found = probe.end(1)
    inside, outside = line(found, "# torch's own loop"), line(found, "# the user's own")
    assert inside.recurrent >= 9 * 4 and inside.recurrent >= inside.operators - 4
    assert outside.recurrent == 0


def test_steps_of_an_optimizer_are_told_apart(torch: Any, unharmed: None) -> None:
    watch = Watch(torch)
    probe = OperatorProbe(torch)
    probe.attach(watch.seams)
    watch.driver.attach()
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    probe.begin()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    found = probe.end(1)
    watch.driver.detach()
    phases = {one.place.source: one.phase for one in found.lines if one.operators > 5}
    assert phases["optimizer.step()"] == "optimizer"


def test_so_is_the_update_after_the_passes_of_a_closure(torch: Any, unharmed: None) -> None:
    watch = Watch(torch)
    probe = OperatorProbe(torch)
    probe.attach(watch.seams)
    watch.driver.attach()
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    x = torch.ones(2, 3)

    def closure() -> Any:
        loss = (model(x) - 1).square().mean()  # the loss
        loss.backward()
        return loss

    optimizer.step(closure)  # before models are known
    probe.begin()
    optimizer.step(closure)  # the update
    found = probe.end(1)
    watch.driver.detach()
    update = [one for one in found.lines if "# the update" in one.place.source]
    by_phase = {one.phase: one.operators for one in update}
    assert by_phase["optimizer"] >= 2 * 9
    assert by_phase.get("forward", 0) < 9
    assert line(found, "# the loss").phase == "forward"


def test_loading_is_left_out(torch: Any, unharmed: None) -> None:
    watch = Watch(torch)
    probe = OperatorProbe(torch)
    probe.attach(watch.seams)
    watch.driver.attach()

    class Costly:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            return torch.ones(3).cumsum(0)

    probe.begin()
    for batch in torch.utils.data.DataLoader(Costly(), batch_size=2):
        batch.tanh()
    found = probe.end(1)
    watch.driver.detach()
    assert "cumsum" not in found.by_name
    assert found.by_name["tanh"] == 2


def test_a_step_goes_on_while_another_thread_loads(torch: Any, unharmed: None) -> None:
    watch = Watch(torch)
    probe = OperatorProbe(torch)
    probe.attach(watch.seams)
    watch.driver.attach()
    loading, stepped = threading.Event(), threading.Event()

    class Slow:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> int:
            loading.set()
            stepped.wait(5)
            return index

    ahead = threading.Thread(target=list, args=(torch.utils.data.DataLoader(Slow()),))
    probe.begin()
    ahead.start()
    loading.wait(5)
    torch.ones(3).tanh()
    stepped.set()
    ahead.join()
    found = probe.end(1)
    watch.driver.detach()
    assert found.by_name["tanh"] == 1


def test_bytes_are_read_and_written_once(torch: Any, probe: OperatorProbe) -> None:
    x = torch.ones(1000)
    probe.begin()
    y = x.view(10, 100)  # moves nothing
    y + y.T.reshape(10, 100)
    found = probe.end(1)
    assert found.bytes == pytest.approx((4000 + 4000) + 3 * 4000, rel=0.01)


def test_inference_mode_hides_no_operator(torch: Any, probe: OperatorProbe) -> None:
    linear = torch.nn.Linear(8, 4)
    probe.begin()
    with torch.inference_mode():
        linear(torch.ones(2, 8))
    assert sum(probe.end(1).flops.values()) == 2 * 2 * 8 * 4


def test_results_are_the_jobs_own(torch: Any, probe: OperatorProbe) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4)

    def gradients() -> list[Any]:
        torch.manual_seed(1)
        model.zero_grad()
        model(x).square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    plain = gradients()
    probe.begin()
    watched = gradients()
    probe.end(1)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


class TestAttention:
    @pytest.mark.parametrize(
        "variant", ["plain", "masked", "dropout", "flat", "einsum", "float scores", "baddbmm"]
    )
    def test_written_by_hand(self, torch: Any, probe: OperatorProbe, variant: str) -> None:
        q, k, v = torch.randn(3, 2, 4, 16, 8, requires_grad=True).unbind()
        probe.begin()
        if variant == "flat":
            q, k, v = (part.reshape(8, 16, 8) for part in (q, k, v))
        if variant == "einsum":
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        elif variant == "baddbmm":
            q, k, v = (part.reshape(8, 16, 8) for part in (q, k, v))
            scores = torch.baddbmm(torch.zeros(8, 16, 16), q, k.transpose(1, 2), alpha=0.3)
        else:
            scores = q @ k.transpose(-2, -1) / 8**0.5
        if variant == "masked":
            scores = scores.masked_fill(torch.ones(16, 16).triu(1).bool(), float("-inf"))
        if variant == "float scores":
            scores = scores.double()
        weights = scores.softmax(-1)  # attention
        if variant == "dropout":
            weights = torch.nn.functional.dropout(weights, 0.1)
        if variant == "float scores":
            weights = weights.float()
        if variant == "einsum":
            torch.einsum("bhqk,bhkd->bhqd", weights, v)
        else:
            weights @ v
        (found,) = probe.end(1).attention
        assert (found.count, found.queries, found.keys) == (1, 16, 16)
        assert found.place.source.endswith("# attention")
        assert found.seconds > 0
        assert (found.tells_weights, found.forgotten) == (False, 0)

    def test_of_a_frozen_reference_nothing_is_kept(self, torch: Any, probe: OperatorProbe) -> None:
        def attend(q: Any) -> Any:
            return (q @ q.transpose(-2, -1)).softmax(-1) @ q

        q = torch.randn(2, 16, 8, requires_grad=True)
        probe.begin()
        attend(q), attend(q.detach())
        with torch.no_grad():
            attend(q)
        (found,) = probe.end(1).attention
        assert (found.count, found.forgotten) == (3, 2)

    def test_torchs_own_that_is_asked_for_its_weights(
        self, torch: Any, probe: OperatorProbe
    ) -> None:
        layer = torch.nn.MultiheadAttention(8, 2, dropout=0.1)
        probe.begin()
        layer(*torch.randn(3, 5, 2, 8, requires_grad=True).unbind())  # attention
        (found,) = probe.end(1).attention
        assert found.tells_weights
        assert found.place.source.endswith("# attention")

    def test_the_fused_kernel_is_none(self, torch: Any, probe: OperatorProbe) -> None:
        q, k, v = torch.randn(3, 2, 4, 16, 8).unbind()
        probe.begin()
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
        torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1)  # has no kernel
        layer = torch.nn.MultiheadAttention(8, 2)
        layer(*torch.randn(3, 5, 2, 8, requires_grad=True).unbind(), need_weights=False)
        assert probe.end(1).attention == []

    def test_a_classifiers_softmax_is_none(self, torch: Any, probe: OperatorProbe) -> None:
        x = torch.randn(2, 4, 8)
        probe.begin()
        ((x @ x.transpose(1, 2)).sum(1).softmax(-1)).unsqueeze(1) @ x
        x.softmax(-1) @ x.transpose(1, 2)
        assert probe.end(1).attention == []


def test_gradients_of_a_table_are_mostly_zero(torch: Any, unharmed: None) -> None:
    table = torch.nn.Embedding(100, 4)
    probe = OperatorProbe(torch)
    probe.begin()
    table(torch.tensor([1, 5, 5])).sum().backward()  # looked up
    lines = {one.place.source.partition("  # ")[2]: one for one in probe.end(1).lines}
    numbers, touched, seconds = lines["looked up"].tables
    assert (numbers, touched) == (400, 12) and seconds > 0

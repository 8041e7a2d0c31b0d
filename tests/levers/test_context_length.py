"""Shorter sequences: the tokens of a batch, all of them, with less before each."""

from __future__ import annotations

import random
from collections import namedtuple
from itertools import pairwise
from typing import Any

import pytest

from hotloop.levers import sequences
from hotloop.levers.base import Effect, Seen
from hotloop.levers.context_length import ContextLength
from hotloop.levers.microbatch import Microbatch
from hotloop.measurement import LoopSeen
from tests.levers.test_microbatch import trained

CASES = 20
Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize("case", range(CASES))
def test_every_token_keeps_its_target(case: int, torch: Any) -> None:
    draw = random.Random(case)
    rows, parts, size = draw.randint(1, 5), draw.choice([2, 3, 4]), draw.randint(2, 9)
    x = torch.arange(rows * parts * size).reshape(rows, parts * size)
    batch = draw.choice([(x, x + 1), [x, x + 1], {"x": x, "y": x + 1}, Pair(x, x + 1)])
    shorter = sequences.cut(batch, sequences.length(torch, batch), parts)
    assert type(shorter) is type(batch)
    given, wanted = shorter.values() if isinstance(shorter, dict) else shorter
    assert given.shape == (rows * parts, size)
    assert torch.equal(given.flatten(), x.flatten()) and torch.equal(wanted, given + 1)


@pytest.mark.parametrize("case", range(CASES))
def test_one_token_more_is_shared_by_neighbours(case: int, torch: Any) -> None:
    """So that each is still predicted from the one before, and none twice."""
    draw = random.Random(case)
    rows, parts, size = draw.randint(1, 5), draw.choice([2, 3, 4]), draw.randint(2, 9)
    tokens = torch.randperm(rows * (parts * size + 1)).reshape(rows, -1)
    shorter = sequences.cut(tokens, tokens.shape[1], parts)
    assert shorter.shape == (rows * parts, size + 1)
    predicted = pairs(shorter)
    assert predicted == pairs(tokens)
    assert len(predicted) == rows * parts * size


def pairs(tokens: Any) -> set[tuple[int, int]]:
    """Each token with the one after it."""
    return {pair for row in tokens.tolist() for pair in pairwise(row)}


@pytest.mark.parametrize(
    ("tokens", "parts", "fits"),
    [(8, 2, True), (9, 2, True), (10, 4, False), (11, 4, False), (2, 2, False), (8, 1, False)],
)
def test_what_can_be_cut(tokens: int, parts: int, fits: bool) -> None:
    assert sequences.can_be_cut(tokens, parts) == fits


def test_what_is_no_batch_of_sequences(torch: Any) -> None:
    words = torch.zeros(4, 8, dtype=torch.long)
    mask = words == 0
    assert sequences.length(torch, {"words": words, "mask": mask}) == 8
    others = [words.float(), words[0], words[:, :4], words[None], words[:2], None, "text", 3]
    for other in others:
        assert sequences.length(torch, (words, other)) == 0
    assert sequences.length(torch, ()) == sequences.length(torch, None) == 0


def recurrent(torch: Any) -> Any:
    """A model that knows what came before."""

    class Recurrent(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(11, 6), torch.nn.Linear(6, 11)
            self.inner = torch.nn.GRU(6, 6, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.head(self.inner(self.embed(x))[0])

    return Recurrent()


def described(owned: Any, parts: int = 1, overlap: int = 0, **changes: Any) -> Any:
    """A job on sequences, cut by hand or not."""
    torch = owned.torch

    class Text(owned.Plain):  # type: ignore[misc]
        shuffle = False
        batch_size = 4 * parts
        as_pair = False

        def model(self) -> Any:
            return recurrent(torch)

        def data(self) -> Any:
            tokens = torch.randint(11, (16, 8 + overlap))
            kept = [tokens, 10 - tokens] if self.as_pair else [tokens]
            if parts > 1:
                kept = [one.unfold(1, 8 // parts + overlap, 8 // parts) for one in kept]
                kept = [one.reshape(-1, one.shape[-1]) for one in kept]
            return tuple(kept)

        def loss(self, model: Any, batch: Any) -> Any:
            x, y = batch if self.as_pair else (batch[0][:, :-1], batch[0][:, 1:])
            logits = model(x).flatten(0, 1)
            return torch.nn.functional.cross_entropy(logits, y.flatten())

    for name, value in changes.items():
        setattr(Text, name, value)
    return Text


@pytest.mark.parametrize(("as_pair", "overlap"), [(True, 0), (False, 0), (False, 1)])
@pytest.mark.parametrize("parts", [2, 4])
def test_as_if_the_data_had_been_so(
    parts: int, as_pair: bool, overlap: int, jobs: Any, owned: Any
) -> None:
    lever = ContextLength(parts)
    whole, shorter = (described(owned, n, overlap, as_pair=as_pair) for n in (1, parts))
    planned, plain = trained(jobs, whole, lever), trained(jobs, shorter)
    for one, other in zip(owned.weights(planned), owned.weights(plain), strict=True):
        jobs.torch.testing.assert_close(one, other)
    assert [epoch.steps for epoch in planned.epochs] == [epoch.steps for epoch in plain.epochs]
    evidence = lever.receipt().evidence
    assert (evidence["tokens"], evidence["tokens_before"]) == (8 // parts + overlap, 8 + overlap)
    untouched = owned.weights(trained(jobs, whole))
    assert not jobs.torch.allclose(untouched[2], owned.weights(planned)[2], atol=1e-4)


def test_passes_are_of_as_many_samples_as_before(jobs: Any, owned: Any) -> None:
    job = described(owned, as_pair=True)
    lever, passes = ContextLength(2), Microbatch(2)
    planned = trained(jobs, job, lever, passes)
    plain = trained(jobs, job, ContextLength(2))
    for one, other in zip(owned.weights(planned), owned.weights(plain), strict=True):
        jobs.torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert passes.receipt().evidence["passes_a_step"] == 2
    assert lever.receipt().evidence["passes"] == 2 * lever.receipt().evidence["steps"]


def test_what_cannot_be_cut_is_trained_on_as_it_is(jobs: Any, owned: Any) -> None:
    for job, reason in (
        (owned.Plain, "the job's batches are not made of sequences of tokens alone"),
        (owned.Tokens, "sequences of 7 tokens cannot be cut into 4 parts"),
    ):
        lever = ContextLength(4)
        planned, plain = trained(jobs, job, lever), trained(jobs, job)
        assert lever.receipt().reason == reason
        for one, other in zip(owned.weights(planned), owned.weights(plain), strict=True):
            assert jobs.torch.equal(one, other)


def test_a_scripts_own_loop_is_left_alone(jobs: Any) -> None:
    plain = jobs.train()
    lever = ContextLength()
    with jobs.under(lever):
        assert jobs.train() == plain
    assert lever.receipt().reason == "the loop is the script's own"


def seen(jobs: Any, loop: LoopSeen | None) -> Seen:
    made: Seen = jobs.seen(loop=loop)
    return made


@pytest.mark.parametrize(
    ("tokens", "parts"), [(1024, [2, 4]), (1025, [2, 4]), (130, [2]), (514, [2]), (1023, [2])]
)
def test_lengths_to_try(tokens: int, parts: list[int], jobs: Any) -> None:
    known = seen(jobs, LoopSeen(8, 8, length=tokens))
    assert ContextLength.settings(known) == [{"parts": each} for each in parts]
    assert ContextLength.expected(known).is_worth_trying
    assert ContextLength.effect_on(known)[0] is Effect.CHANGES_TRAINING


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (None, "only in a loop of hotloop's own"),
        (LoopSeen(8, 8), "not made of sequences of tokens"),
        (LoopSeen(8, 8, length=100), "are short already: 100 tokens"),
    ],
)
def test_where_there_is_nothing_to_try(loop: LoopSeen | None, reason: str, jobs: Any) -> None:
    assert reason in ContextLength.expected(seen(jobs, loop)).reason


def test_one_part_is_no_cut() -> None:
    assert "at least 2" in ContextLength(1).problem()

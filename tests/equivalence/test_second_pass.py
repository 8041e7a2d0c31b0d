from __future__ import annotations

from hotloop.equivalence.second_pass import SecondPass, second_pass
from hotloop.evidence import Delivered, SoakSeen


def seen(*passes: str, loader: int = 0, beside: SoakSeen | None = None) -> SoakSeen:
    """Each letter is a batch."""
    delivered = [
        Delivered(loader, number, batch)
        for number, batches in enumerate(passes, start=1)
        for batch in batches
    ]
    return SoakSeen(delivered=[*((beside.delivered or []) if beside else []), *delivered])


def test_the_same_batches_are_the_same() -> None:
    found = second_pass(seen("abc", "cab"), seen("abc", "cab"))
    assert found == SecondPass(3) and found.is_same


def test_another_batch_in_the_second_pass_is_named() -> None:
    found = second_pass(seen("abc", "cab"), seen("abc", "caa"))
    assert found == SecondPass(2, "batch 3 of loader 0 in a second epoch")
    assert not found.is_same


def test_it_is_compared_as_far_as_both_have_come() -> None:
    assert second_pass(seen("abc", "cab"), seen("abc", "c")) == SecondPass(1)
    assert second_pass(seen("abc", "c"), seen("abcd", "cab")) == SecondPass(1)


def test_without_a_second_pass_nothing_is_claimed() -> None:
    for other in (seen("abc"), seen(), SoakSeen()):
        found = second_pass(seen("abc", "cab"), other)
        assert found == SecondPass() and not found.is_same


def test_a_loader_whose_first_pass_differs_says_nothing() -> None:
    """A plan may take larger batches; and of data that no two runs share nothing is known."""
    assert second_pass(seen("abc", "cab"), seen("xyz", "zxy")) == SecondPass()
    one = seen("ab", "ba", loader=1, beside=seen("abc", "cab"))
    other = seen("ab", "bb", loader=1, beside=seen("xyz", "zxy"))
    assert second_pass(one, other).differs == "batch 2 of loader 1 in a second epoch"

"""The buffer: what must hold whatever happens to it, and the distributions the paper asks for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from streamlearn.learner.buffer import EMPTY, Buffer
from streamlearn.learner.eviction import EVICTIONS, LossAware
from streamlearn.learner.randomness import Randomness

POLICIES = list(EVICTIONS)


def make(capacity: int, policy: str, classes: int = 6) -> Buffer:
    buffer = Buffer(capacity, (2,), np.dtype(np.float32), EVICTIONS[policy]())
    buffer.know_classes(classes)
    return buffer


def offer(buffer: Buffer, outputs: NDArray[np.int64], seen: int, chance: Randomness) -> None:
    arrivals = seen + np.arange(len(outputs))
    inputs = np.stack([arrivals, outputs], axis=1).astype(np.float32)  # an input that says what it should be
    losses = chance.arrays.exponential(1.0, len(outputs)).astype(np.float32)
    buffer.offer(inputs, outputs.tolist(), losses.tolist(), [f"id-{n}" for n in arrivals], seen, chance)


def replay(buffer: Buffer, slots: NDArray[np.int64], losses: NDArray[np.float64]) -> None:
    """Losses as the network gives them: single precision."""
    buffer.refresh(slots, buffer.classes[slots].tolist(), losses.astype(np.float32).tolist())


def check(buffer: Buffer) -> None:
    filled = np.flatnonzero(buffer.classes != EMPTY)
    assert len(filled) == len(buffer) <= buffer.capacity
    np.testing.assert_array_equal(buffer.filled(), filled)
    np.testing.assert_array_equal(buffer.counts, np.bincount(buffer.classes[filled], minlength=len(buffer.counts)))
    assert buffer.loss_sum == pytest.approx(float(buffer.losses[filled].sum()), abs=1e-4)
    np.testing.assert_array_equal(buffer.inputs[filled, 0], buffer.arrivals[filled])
    np.testing.assert_array_equal(buffer.inputs[filled, 1], buffer.classes[filled])
    assert list(buffer.ids[filled]) == [f"id-{n}" for n in buffer.arrivals[filled]]
    empty = np.setdiff1d(np.arange(buffer.capacity), filled)
    assert not buffer.inputs[empty].any()
    assert all(held is None for held in buffer.ids[empty])


operations = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.lists(st.integers(0, 5), min_size=1, max_size=30)),
        st.tuples(st.just("erase"), st.lists(st.integers(0, 11), min_size=1, max_size=6)),
        st.tuples(st.just("replay"), st.integers(1, 20)),
        st.tuples(st.just("save and load"), st.none()),
    ),
    max_size=25,
)


@pytest.mark.parametrize("policy", POLICIES)
@given(operations=operations, seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_holds_together_whatever_happens(policy: str, operations: list, seed: int) -> None:
    chance = Randomness(seed)
    buffer, seen, erased = make(12, policy), 0, set()
    for what, how in operations:
        if what == "offer":
            offer(buffer, np.array(how), seen, chance)
            seen += len(how)
        elif what == "erase":
            held = [slot for slot in how if buffer.classes[slot] != EMPTY]
            erased |= {int(buffer.arrivals[slot]) for slot in held}
            assert buffer.erase(np.array(how)) == len(set(held))
        elif what == "replay":
            slots = buffer.draw(how, chance)
            assert len(slots) == min(how, len(buffer)) == len(set(slots.tolist()))
            assert (buffer.classes[slots] != EMPTY).all()
            assert not erased & set(buffer.arrivals[slots].tolist())
            replay(buffer, slots, chance.arrays.exponential(1.0, len(slots)))
        else:
            other = make(12, policy)
            other.load_state_dict(buffer.state_dict())
            buffer = other
        check(buffer)


def test_holes_are_filled_by_the_next_examples() -> None:
    chance = Randomness(0)
    buffer = make(10, "lars+brs")
    offer(buffer, np.arange(10) % 6, 0, chance)
    buffer.erase(np.array([2, 7, 9]))
    assert len(buffer) == 7
    offer(buffer, np.array([1, 1, 1]), 10_000, chance)
    assert set(buffer.arrivals[[2, 7, 9]]) == {10_000, 10_001, 10_002}
    check(buffer)


def test_every_draw_is_uniform_over_filled_slots_even_with_holes() -> None:
    chance = Randomness(5)
    buffer = make(20, "reservoir")
    offer(buffer, np.zeros(20, np.int64), 0, chance)
    buffer.erase(np.array([0, 3, 4, 19]))
    drawn = np.bincount(np.concatenate([buffer.draw(4, chance) for _ in range(4000)]), minlength=20)
    assert drawn[[0, 3, 4, 19]].sum() == 0
    assert stats.chisquare(drawn[buffer.filled()]).pvalue > 0.01


def test_reservoir_acceptance_is_uniform() -> None:
    """Every one of 200 examples stays with the same probability, wherever in the stream and in the batch it was."""
    kept = np.zeros(200)
    for seed in range(2000):
        chance = Randomness(seed)
        buffer = make(20, "reservoir")
        for start in range(0, 200, 8):
            offer(buffer, np.zeros(8, np.int64), start, chance)
        kept[buffer.arrivals] += 1
    assert kept.sum() == 2000 * 20
    # Twenty are kept together, without replacement: the variance is (1 - 20/200) of that of independent draws.
    assert stats.chi2.sf(((kept - 200) ** 2 / 200).sum() / 0.9, 199) > 0.01


@pytest.mark.parametrize(("policy", "expected"), [("reservoir", 1.64), ("brs", 0.28)])
def test_balance_of_the_papers_toy(policy: str, expected: float) -> None:
    """1020 items, 6 classes of 170, shuffled, buffer 12: mean squared error of the class counts from 2."""
    errors = []
    for seed in range(1500):
        chance = Randomness(seed)
        buffer = make(12, policy)
        offer(buffer, chance.arrays.permutation(np.repeat(np.arange(6), 170)), 0, chance)
        errors.append(np.mean((np.array(buffer.counts) - 2.0) ** 2))
    assert np.mean(errors) == pytest.approx(expected, rel=0.1)


def written_out(buffer: Buffer) -> NDArray[np.float64]:
    """The eviction probabilities of LARS, from the full list: both terms to one total, added, shifted, normalised."""
    balance = np.array(buffer.counts, float)[buffer.classes]
    loss = -buffer.losses.astype(float)
    scores = loss * balance.sum() / np.abs(loss).sum() + balance if loss.any() else balance
    scores -= scores.min()
    return scores / scores.sum() if scores.sum() > 0 else np.full(len(scores), 1 / len(scores))


def evicted(buffer: Buffer, times: int, chance: Randomness) -> NDArray[np.int64]:
    policy = buffer._eviction
    drawn = chance.arrays.integers(0, buffer.capacity, times)
    return np.bincount([policy.victim(buffer, int(j), chance) for j in drawn], minlength=buffer.capacity)


@pytest.mark.parametrize("case", ["spread losses", "one large class", "equal losses", "one outlier", "many classes"])
def test_loss_aware_eviction_has_the_printed_distribution(case: str) -> None:
    chance = Randomness(11)
    losses, outputs = chance.arrays.exponential(1.0, 40), np.arange(40) % 4
    if case == "one large class":
        outputs = np.where(np.arange(40) < 30, 0, outputs)
    elif case == "equal losses":
        losses, outputs = np.full(40, 0.5), chance.arrays.integers(0, 4, 40)
    elif case == "one outlier":
        losses[7] = 60.0
    elif case == "many classes":
        outputs = np.where(np.arange(40) < 8, 0, np.arange(40))
    buffer = make(40, "lars+brs", 40)
    buffer.offer(np.zeros((40, 2), np.float32), outputs.tolist(), losses.astype(np.float32).tolist(), None, 0, chance)
    # Reach the same losses by a path with rises and falls, as replay does.
    for _ in range(50):
        slots = buffer.draw(8, chance)
        replay(buffer, slots, chance.arrays.exponential(3.0, len(slots)))
        evicted(buffer, 1, chance)
    replay(buffer, np.arange(40), losses)
    expected = written_out(buffer)
    found = evicted(buffer, 20_000, chance)
    possible = expected > 0
    assert found[~possible].sum() == 0
    assert stats.chisquare(found[possible], expected[possible] * 20_000).pvalue > 0.01
    full = [LossAware._from_full_list(buffer, *_alpha_and_draw(buffer, chance), chance) for _ in range(20_000)]
    exact = np.bincount(full, minlength=40)
    assert stats.chisquare(exact[possible], expected[possible] * 20_000).pvalue > 0.01


def _alpha_and_draw(buffer: Buffer, chance: Randomness) -> tuple[float, int]:
    alpha = float(np.square(buffer.counts).sum()) / buffer.loss_sum if buffer.loss_sum > 0 else 0.0
    return alpha, int(chance.arrays.integers(0, buffer.capacity))


def test_all_scores_equal_means_uniform() -> None:
    chance = Randomness(2)
    buffer = make(24, "lars+brs")
    buffer.offer(np.zeros((24, 2), np.float32), (np.arange(24) % 6).tolist(), [0.7] * 24, None, 0, chance)
    assert stats.chisquare(evicted(buffer, 12_000, chance)).pvalue > 0.01


def test_low_losses_and_large_classes_leave_first() -> None:
    chance = Randomness(3)
    buffer = make(40, "lars+brs")
    outputs = np.where(np.arange(40) < 30, 0, 1)
    losses = np.where(np.arange(40) % 2 == 0, 0.1, 2.0).astype(np.float32)
    buffer.offer(np.zeros((40, 2), np.float32), outputs.tolist(), losses.tolist(), None, 0, chance)
    found = evicted(buffer, 5000, chance)
    large, low = outputs == 0, losses < 1
    assert found[large & low].mean() > found[large & ~low].mean() > 0
    assert found[large & low].mean() > found[~large & low].mean()


def test_a_million_slots_take_memory_only_as_they_are_filled() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    buffer = Buffer(1_000_000, (28, 28), np.dtype(np.uint8), EVICTIONS["lars+brs"]())
    buffer.know_classes(2)
    chance = Randomness(0)
    for start in range(0, 1000, 10):
        pictures = np.full((10, 28, 28), 9, np.uint8)
        buffer.offer(pictures, [0] * 10, [1.0] * 10, None, start, chance)
    assert len(buffer) == 1000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000  # KiB; the pictures of all slots would take 784 MB

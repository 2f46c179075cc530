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

POLICIES = list(EVICTIONS)


def make(capacity: int, policy: str, classes: int = 6) -> Buffer:
    buffer = Buffer(capacity, (2,), np.dtype(np.float32), EVICTIONS[policy]())
    buffer.know_classes(classes)
    return buffer


def offer(buffer: Buffer, outputs: NDArray[np.int64], seen: int, rng: np.random.Generator) -> None:
    arrivals = seen + np.arange(len(outputs))
    inputs = np.stack([arrivals, outputs], axis=1).astype(np.float32)  # an input that says what it should be
    losses = rng.exponential(1.0, len(outputs)).astype(np.float32)
    buffer.offer(inputs, outputs, losses, [f"id-{n}" for n in arrivals], seen, rng)


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
    rng = np.random.default_rng(seed)
    buffer, seen, erased = make(12, policy), 0, set()
    for what, how in operations:
        if what == "offer":
            offer(buffer, np.array(how), seen, rng)
            seen += len(how)
        elif what == "erase":
            held = [slot for slot in how if buffer.classes[slot] != EMPTY]
            erased |= {int(buffer.arrivals[slot]) for slot in held}
            assert buffer.erase(np.array(how)) == len(set(held))
        elif what == "replay":
            slots = buffer.draw(how, rng)
            assert len(slots) == min(how, len(buffer)) == len(set(slots.tolist()))
            assert (buffer.classes[slots] != EMPTY).all()
            assert not erased & set(buffer.arrivals[slots].tolist())
            buffer.refresh(slots, rng.exponential(1.0, len(slots)).astype(np.float32))
        else:
            other = make(12, policy)
            other.load_state_dict(buffer.state_dict())
            buffer = other
        check(buffer)


def test_holes_are_filled_by_the_next_examples() -> None:
    rng = np.random.default_rng(0)
    buffer = make(10, "lars+brs")
    offer(buffer, np.arange(10) % 6, 0, rng)
    buffer.erase(np.array([2, 7, 9]))
    assert len(buffer) == 7
    offer(buffer, np.array([1, 1, 1]), 10_000, rng)
    assert set(buffer.arrivals[[2, 7, 9]]) == {10_000, 10_001, 10_002}
    check(buffer)


def test_every_draw_is_uniform_over_filled_slots_even_with_holes() -> None:
    rng = np.random.default_rng(5)
    buffer = make(20, "reservoir")
    offer(buffer, np.zeros(20, np.int64), 0, rng)
    buffer.erase(np.array([0, 3, 4, 19]))
    drawn = np.bincount(np.concatenate([buffer.draw(4, rng) for _ in range(4000)]), minlength=20)
    assert drawn[[0, 3, 4, 19]].sum() == 0
    assert stats.chisquare(drawn[buffer.filled()]).pvalue > 0.01


def test_reservoir_acceptance_is_uniform() -> None:
    """Every one of 200 examples stays with the same probability, wherever in the stream and in the batch it was."""
    kept = np.zeros(200)
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        buffer = make(20, "reservoir")
        for start in range(0, 200, 8):
            offer(buffer, np.zeros(8, np.int64), start, rng)
        kept[buffer.arrivals] += 1
    assert kept.sum() == 2000 * 20
    # Twenty are kept together, without replacement: the variance is (1 - 20/200) of that of independent draws.
    assert stats.chi2.sf(((kept - 200) ** 2 / 200).sum() / 0.9, 199) > 0.01


@pytest.mark.parametrize(("policy", "expected"), [("reservoir", 1.64), ("brs", 0.28)])
def test_balance_of_the_papers_toy(policy: str, expected: float) -> None:
    """1020 items, 6 classes of 170, shuffled, buffer 12: mean squared error of the class counts from 2."""
    errors = []
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        buffer = make(12, policy)
        offer(buffer, rng.permutation(np.repeat(np.arange(6), 170)), 0, rng)
        errors.append(np.mean((buffer.counts - 2.0) ** 2))
    assert np.mean(errors) == pytest.approx(expected, rel=0.1)


def written_out(buffer: Buffer) -> NDArray[np.float64]:
    """The eviction probabilities of LARS, from the full list: both terms to one total, added, shifted, normalised."""
    balance = buffer.counts[buffer.classes].astype(float)
    loss = -buffer.losses.astype(float)
    scores = loss * balance.sum() / np.abs(loss).sum() + balance if loss.any() else balance
    scores -= scores.min()
    return scores / scores.sum() if scores.sum() > 0 else np.full(len(scores), 1 / len(scores))


def evicted(buffer: Buffer, times: int, rng: np.random.Generator) -> NDArray[np.int64]:
    policy = buffer._eviction
    drawn = rng.integers(0, buffer.capacity, times)
    return np.bincount([policy.victim(buffer, int(j), rng) for j in drawn], minlength=buffer.capacity)


@pytest.mark.parametrize("case", ["spread losses", "one large class", "equal losses", "one outlier", "many classes"])
def test_loss_aware_eviction_has_the_printed_distribution(case: str) -> None:
    rng = np.random.default_rng(11)
    losses, outputs = rng.exponential(1.0, 40), np.arange(40) % 4
    if case == "one large class":
        outputs = np.where(np.arange(40) < 30, 0, outputs)
    elif case == "equal losses":
        losses, outputs = np.full(40, 0.5), rng.integers(0, 4, 40)
    elif case == "one outlier":
        losses[7] = 60.0
    elif case == "many classes":
        outputs = np.where(np.arange(40) < 8, 0, np.arange(40))
    buffer = make(40, "lars+brs", 40)
    buffer.offer(np.zeros((40, 2), np.float32), outputs, losses.astype(np.float32), None, 0, rng)
    # Reach the same losses by a path with rises and falls, as replay does.
    for _ in range(50):
        slots = buffer.draw(8, rng)
        buffer.refresh(slots, rng.exponential(3.0, len(slots)).astype(np.float32))
        evicted(buffer, 1, rng)
    buffer.refresh(np.arange(40), losses.astype(np.float32))
    expected = written_out(buffer)
    found = evicted(buffer, 20_000, rng)
    possible = expected > 0
    assert found[~possible].sum() == 0
    assert stats.chisquare(found[possible], expected[possible] * 20_000).pvalue > 0.01
    full = [LossAware._from_full_list(buffer, *_alpha_and_draw(buffer, rng), rng) for _ in range(20_000)]
    exact = np.bincount(full, minlength=40)
    assert stats.chisquare(exact[possible], expected[possible] * 20_000).pvalue > 0.01


def _alpha_and_draw(buffer: Buffer, rng: np.random.Generator) -> tuple[float, int]:
    alpha = float(buffer.counts @ buffer.counts) / buffer.loss_sum if buffer.loss_sum > 0 else 0.0
    return alpha, int(rng.integers(0, buffer.capacity))


def test_all_scores_equal_means_uniform() -> None:
    rng = np.random.default_rng(2)
    buffer = make(24, "lars+brs")
    buffer.offer(np.zeros((24, 2), np.float32), np.arange(24) % 6, np.full(24, 0.7, np.float32), None, 0, rng)
    assert stats.chisquare(evicted(buffer, 12_000, rng)).pvalue > 0.01


def test_low_losses_and_large_classes_leave_first() -> None:
    rng = np.random.default_rng(3)
    buffer = make(40, "lars+brs")
    outputs = np.where(np.arange(40) < 30, 0, 1)
    losses = np.where(np.arange(40) % 2 == 0, 0.1, 2.0).astype(np.float32)
    buffer.offer(np.zeros((40, 2), np.float32), outputs, losses, None, 0, rng)
    found = evicted(buffer, 5000, rng)
    large, low = outputs == 0, losses < 1
    assert found[large & low].mean() > found[large & ~low].mean() > 0
    assert found[large & low].mean() > found[~large & low].mean()


def test_a_million_slots_take_memory_only_as_they_are_filled() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    buffer = Buffer(1_000_000, (28, 28), np.dtype(np.uint8), EVICTIONS["lars+brs"]())
    buffer.know_classes(2)
    rng = np.random.default_rng(0)
    for start in range(0, 1000, 10):
        pictures = np.full((10, 28, 28), 9, np.uint8)
        buffer.offer(pictures, np.zeros(10, np.int64), np.ones(10, np.float32), None, start, rng)
    assert len(buffer) == 1000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000  # KiB; the pictures of all slots would take 784 MB

"""Accuracy by class group: over a window on the stream, round by round on held-out records, and what was forgotten."""

from __future__ import annotations

import random

import pytest

from streamlearn.accuracy import Accuracy, Tally

# Two classes to a group, so that an answer can be wrong and yet name the right group.
GROUP_OF = {f"{group}{number}": group for group in ("g", "old", "new", "a", "b") for number in (1, 2)}
Outcomes = tuple[list[str], list[str | None]]


def outcomes(hits: int, misses: int, group: str = "g") -> Outcomes:
    return [f"{group}1"] * (hits + misses), [f"{group}1"] * hits + [f"{group}2"] * misses


def both(one: Outcomes, other: Outcomes) -> Outcomes:
    return one[0] + other[0], one[1] + other[1]


def test_a_window_holds_the_last_outcomes_and_the_totals_all() -> None:
    rng, tally, all_of_them = random.Random(1), Tally(20), []
    assert tally.now is None
    for place in range(300):
        all_of_them.append(rng.random() < 0.7)
        tally.add(all_of_them[-1:])
        assert tally.now == sum(all_of_them[-20:]) / min(20, place + 1)
    assert (tally.evaluated, tally.correct) == (300, sum(all_of_them))


def test_forgetting_is_the_best_window_minus_the_last() -> None:
    accuracy = Accuracy(100)
    assert accuracy.forgetting("g") is None
    accuracy.add("prequential", *outcomes(20, 0), GROUP_OF)  # too few to be called the best
    assert accuracy.forgetting("g") is None
    accuracy.add("prequential", *outcomes(70, 10), GROUP_OF)
    assert accuracy.forgetting("g") == 0
    accuracy.add("prequential", *outcomes(0, 50), GROUP_OF)  # the last hundred are 40 right, 60 wrong
    assert accuracy.forgetting("g") == pytest.approx(0.9 - 0.4)


def test_held_out_records_count_by_rounds_of_one_model() -> None:
    accuracy = Accuracy(100)
    accuracy.add("eval", *outcomes(3, 1), GROUP_OF)
    accuracy.add("eval", *outcomes(3, 1), GROUP_OF)  # the same round: nothing was learned between
    assert accuracy.tallies["eval"]["g"].now == 0.75
    accuracy.learned()
    assert accuracy.tallies["eval"]["g"].now == 0.75  # stays until the next round begins
    accuracy.learned()
    accuracy.add("eval", *outcomes(1, 3), GROUP_OF)
    assert accuracy.tallies["eval"]["g"].now == 0.25
    assert accuracy.forgetting("g") == 0.5
    assert accuracy.tallies["eval"]["g"].evaluated == 12


def test_a_round_leaves_the_groups_alone_that_are_not_in_it() -> None:
    accuracy = Accuracy(100)
    accuracy.add("eval", *both(outcomes(1, 0, "old"), outcomes(0, 1, "new")), GROUP_OF)
    accuracy.learned()
    accuracy.add("eval", *outcomes(1, 0, "new"), GROUP_OF)
    assert {name: tally.now for name, tally in accuracy.tallies["eval"].items()} == {"old": 1.0, "new": 1.0}
    accuracy.learned()
    accuracy.add("eval", *outcomes(0, 1, "old"), GROUP_OF)
    assert {name: tally.now for name, tally in accuracy.tallies["eval"].items()} == {"old": 0.0, "new": 1.0}
    assert (accuracy.forgetting("old"), accuracy.forgetting("new")) == (1.0, 0.0)


def test_forgetting_prefers_held_out_records() -> None:
    accuracy = Accuracy(50)
    accuracy.add("prequential", *outcomes(50, 0), GROUP_OF)
    accuracy.add("prequential", *outcomes(0, 50), GROUP_OF)
    assert accuracy.forgetting("g") == 1
    accuracy.add("eval", *outcomes(4, 1), GROUP_OF)
    accuracy.learned()
    accuracy.add("eval", *outcomes(3, 2), GROUP_OF)
    assert accuracy.forgetting("g") == pytest.approx(0.2)


def test_answers_are_counted_by_the_group_they_named() -> None:
    accuracy = Accuracy(50)
    accuracy.add("prequential", ["a1", "a1", "b1", "never met"], ["a1", "b1", None, "a1"], GROUP_OF)
    assert accuracy.predicted == {"a": 1, "b": 1}


@pytest.mark.parametrize("window", [30, 7])
def test_interrupted_anywhere_it_goes_on_the_same(window: int) -> None:
    rng = random.Random(3)
    whole, broken = Accuracy(window), Accuracy(window)
    for place in range(200):
        source = rng.choice(["prequential", "eval"])
        labels, answers = rng.choices(["a1", "b1"], k=5), rng.choices(["a1", "b1", None], k=5)
        for one in (whole, broken):
            one.add(source, labels, answers, GROUP_OF)  # type: ignore[arg-type]
            if source == "prequential":
                one.learned()
        if place % 3 == 0:
            fresh = Accuracy(window)
            fresh.load_state_dict(broken.state_dict())
            broken = fresh
        for group in "ab":
            assert whole.forgetting(group) == broken.forgetting(group)
    for source in ("prequential", "eval"):
        for group, tally in whole.tallies[source].items():
            other = broken.tallies[source][group]
            assert (tally.now, tally.best, tally.evaluated) == (other.now, other.best, other.evaluated)
        assert whole.confusion(source) == broken.confusion(source)  # type: ignore[arg-type]
    assert whole.predicted == broken.predicted


def test_a_smaller_window_keeps_the_newest() -> None:
    large, small = Accuracy(100), Accuracy(10)
    large.add("prequential", *both(outcomes(0, 90), outcomes(10, 0)), GROUP_OF)
    small.load_state_dict(large.state_dict())
    assert small.tallies["prequential"]["g"].now == 1
    small.add("prequential", *outcomes(0, 5), GROUP_OF)
    assert small.tallies["prequential"]["g"].now == 0.5


def test_the_confusion_on_the_stream_is_that_of_the_last_answers() -> None:
    accuracy = Accuracy(3)
    accuracy.add("prequential", ["a1", "a1"], [None, "a1"], GROUP_OF)
    assert accuracy.confusion("prequential") == {("a1", None): 1, ("a1", "a1"): 1}
    accuracy.add("prequential", ["b1", "b1"], ["a1", "a1"], GROUP_OF)
    assert accuracy.confusion("prequential") == {("a1", "a1"): 1, ("b1", "a1"): 2}


def test_the_confusion_on_held_out_records_is_that_of_one_model() -> None:
    accuracy = Accuracy(3)
    accuracy.add("eval", ["a1", "a2", "b1", "b1", "b1"], ["a1", "a1", "a1", "a1", "b1"], GROUP_OF)
    assert accuracy.confusion("eval") == {("a1", "a1"): 1, ("a2", "a1"): 1, ("b1", "a1"): 2, ("b1", "b1"): 1}
    accuracy.learned()
    accuracy.add("eval", ["a1"], ["b1"], GROUP_OF)  # a round of one group leaves the other as it was
    assert accuracy.confusion("eval") == {("a1", "b1"): 1, ("b1", "a1"): 2, ("b1", "b1"): 1}

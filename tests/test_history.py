"""The line of points over a whole life: bounded, part of the state, and true at each of its points."""

from __future__ import annotations

import numpy as np
import pytest

from streamlearn.accuracy import Accuracy, History
from streamlearn.accuracy.history import FIRST_INTERVAL, MOST_POINTS, MOST_REFITS

GROUP_OF = {"a": "first", "b": "second"}


def live(history: History, accuracy: Accuracy, steps: range) -> None:
    """Ten examples a step; the second class turns up after a while, and every answer is the first."""
    for step in steps:
        label = "b" if step % 2 and step > 50 else "a"
        accuracy.add("prequential", [label] * 10, ["a"] * 10, GROUP_OF)
        if 10 * step >= history.due:
            groups = ["first", "second"] if step > 50 else ["first"]
            history.add(groups, accuracy, 10 * step, 1000 * step, 0.1, 2.0, None if step < 20 else 1.0)


@pytest.mark.parametrize("steps", [1, 100, 1000, 30_000])
def test_it_never_grows_too_long_and_its_points_stay_even(steps: int) -> None:
    history, accuracy = History(), Accuracy(100)
    live(history, accuracy, range(1, steps + 1))
    plain = history.plain(accuracy, 10 * steps, 1000 * steps, 0.1, 2.0, 1.0)
    examples = plain["examples"]
    assert len(examples) <= MOST_POINTS + 1
    assert steps < 1000 or len(examples) > MOST_POINTS // 8
    assert examples[-1] == 10 * steps
    gaps = np.diff(examples[:-1])
    assert len(gaps) == 0 or gaps.min() == gaps.max() == history.interval
    assert history.interval % FIRST_INTERVAL == 0
    assert len(plain["at"]) == len(plain["learning_rate"]) == len(plain["loss"]["replay"]) == len(examples)


def test_counts_add_up_however_much_was_thinned_out() -> None:
    history, accuracy = History(), Accuracy(100)
    live(history, accuracy, range(1, 20_001))
    plain = history.plain(accuracy, 200_000, 0, 0.1, 2.0, 1.0)
    first, second = plain["groups"]["first"], plain["groups"]["second"]
    assert sum(first["seen"]) + sum(second["seen"]) == 200_000
    assert (sum(first["predicted"]), sum(second["predicted"])) == (200_000, 0)
    assert first["from"] == 0
    assert all(len(column) == len(plain["examples"]) for name, column in first.items() if name != "from")
    assert len(second["seen"]) == len(plain["examples"]) - second["from"]
    assert first["prequential"][-1] == 1.0
    assert second["prequential"][-1] == 0.0
    assert set(first["eval"]) == {None}


def test_marks_of_one_moment_are_one_and_refits_are_bounded() -> None:
    history = History()
    history.new_class(10, "a")
    history.new_class(10, "b")
    for number in range(MOST_REFITS + 50):
        history.refit(20 + number, "interval", "first")
    history.new_class(500, "c")
    marks = history.plain(Accuracy(10), 500, 0, 0.1, None, None)["marks"]
    assert marks[0] == {"examples": 10, "kind": "new-class", "labels": ["a", "b"]}
    assert marks[-1] == {"examples": 500, "kind": "new-class", "labels": ["c"]}
    assert len(marks) == MOST_REFITS + 2


def test_interrupted_anywhere_it_goes_on_the_same() -> None:
    whole, broken, accuracy = History(), History(), Accuracy(100)
    other = Accuracy(100)
    for start in range(1, 6001, 500):
        live(whole, accuracy, range(start, start + 500))
        live(broken, other, range(start, start + 500))
        for one in (whole, broken):
            one.new_class(10 * start, f"class {start}")
            one.refit(10 * start, "new-class", "first")
        fresh = History()
        fresh.load_state_dict(broken.state_dict())
        broken = fresh
    assert whole.plain(accuracy, 1, 2, 3, 4, 5) == broken.plain(other, 1, 2, 3, 4, 5)

"""Examples that wait for their batch."""

from __future__ import annotations

import numpy as np

from streamlearn.records.pending import Pending, stacked
from streamlearn.records.record import Example


def example(number: int) -> Example:
    name = str(number) if number else None
    return Example(np.full((2, 2), number, np.uint8), f"class {number}", name, name, "eval")


def test_they_come_out_in_order_once() -> None:
    pending = Pending()
    for number in range(3):
        pending.add(example(number))
    assert len(pending) == 3
    taken = pending.take()
    assert [one.label for one in taken] == ["class 0", "class 1", "class 2"]
    assert len(pending) == 0
    assert pending.take() == []
    assert stacked(taken)[:, 0, 0].tolist() == [0, 1, 2]
    assert stacked(taken).dtype == np.uint8


def test_half_a_batch_comes_back_as_it_was() -> None:
    pending, other = Pending(), Pending()
    for number in range(3):
        pending.add(example(number))
    state = pending.state_dict()
    pending.take()  # what goes on afterwards does not change the state
    other.load_state_dict(state)
    assert len(other) == 3
    for number, one in enumerate(other.take()):
        expected = example(number)
        np.testing.assert_array_equal(one.input, expected.input)
        assert (one.label, one.id, one.group, one.split) == (
            expected.label,
            expected.id,
            expected.group,
            expected.split,
        )


def test_nothing_comes_back_as_nothing() -> None:
    pending = Pending()
    pending.add(example(1))
    pending.load_state_dict(Pending().state_dict())
    assert len(pending) == 0

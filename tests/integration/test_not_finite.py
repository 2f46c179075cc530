"""Inputs that drive the network beyond all numbers: undone, counted, and ten times in a row the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from streamlearn.records.encode import encode_example
from streamlearn.records.record import Record
from streamlearn.stream.url import open_stream
from tests.records.mixed import examples
from tests.serving import SMALL, Serve, run, saved_state

BATCH = 5


def huge(batches: int) -> list[Record]:
    """One and the same input under two names: one of them is wrong, by an immense loss."""
    one = np.full(6, 3e38, np.float32)
    return [encode_example(one, ("ant", "bee")[place % 2], id="huge") for place in range(BATCH * batches)]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)


def test_ten_in_a_row_end_it_and_the_learner_is_as_before_them(tmp_path: Path) -> None:
    url, state_dir = f"log:{tmp_path / 'stream.log'}", tmp_path / "state"
    settings = {**SMALL, "learner.batch_size": BATCH}
    stream = open_stream(url)
    stream.append([*examples(200), *huge(9), *examples(200, seed=1)])
    run(state_dir, url, settings=settings)  # nine are only counted
    before = saved_state(state_dir)
    assert (before["counters"]["steps_discarded"], before["counters"]["discarded_in_a_row"]) == (9, 0)
    assert before["counters"]["examples_learned"] == 400

    stream.append([*huge(10), *examples(50, seed=2)])
    with Serve(state_dir, url, settings=settings) as daemon:
        assert daemon.end() == 3
    assert "error: 10 steps in a row were not finite" in daemon.errors
    assert "hint: a smaller learning_rate usually helps" in daemon.errors
    after = saved_state(state_dir)
    assert same(after["learner"], before["learner"])
    assert not same(after["counters"], before["counters"])
    assert after["counters"]["steps_discarded"] == 19
    assert after["position"]["offsets"] == {"0": 400 + BATCH * 19}

    run(state_dir, url, settings=settings)  # somebody started it again: it goes on behind them
    assert saved_state(state_dir)["counters"]["examples_learned"] == 450
    stream.close()

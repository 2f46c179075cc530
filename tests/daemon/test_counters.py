"""What is counted."""

from __future__ import annotations

import random

from streamlearn.daemon.counters import Counters


def test_the_share_of_bad_records_is_that_of_the_last_ones() -> None:
    rng, counters, all_of_them = random.Random(1), Counters(50), []
    for place in range(400):
        all_of_them.append(rng.random() < place / 400)
        counters.record(bad=all_of_them[-1])
        assert counters.bad_ratio == (sum(all_of_them[-50:]) / 50 if place >= 49 else 0)
    assert counters.records_consumed == 400
    counters.forgive()
    assert counters.bad_ratio == 0
    for _ in range(49):
        counters.record(bad=True)
        assert counters.bad_ratio == 0
    counters.record(bad=True)
    assert counters.bad_ratio == 1


def test_they_come_back_as_they_were_and_the_window_may_change() -> None:
    counters = Counters(10)
    for place in range(25):
        counters.record(bad=place % 4 == 0)
    counters.rejected["bad-json"] = 7
    counters.refits["interval"] = 3
    counters.steps_discarded = 2
    same, smaller, larger = Counters(10), Counters(4), Counters(20)
    for other in (same, smaller, larger):
        other.load_state_dict(counters.state_dict())
        assert other.records_rejected == 7
        assert (other.refits["interval"], other.steps_discarded, other.records_consumed) == (3, 2, 25)
    assert same.bad_ratio == counters.bad_ratio == 0.3
    assert smaller.bad_ratio == 0.25  # of the last four
    assert larger.bad_ratio == 0  # not enough to judge by
    for other in (counters, same):
        other.record(bad=True)
    assert same.bad_ratio == counters.bad_ratio

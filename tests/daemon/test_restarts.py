"""At once the first time, later and later after that, and not for ever."""

from __future__ import annotations

from streamlearn.daemon.restarts import LONGEST_WAIT, MOST_IN_A_ROW, WELL_AFTER, Restarts


def test_the_first_time_at_once_then_after_longer_and_longer() -> None:
    restarts = Restarts()
    assert restarts.due()
    assert restarts.died(0)
    assert restarts.due()
    waits = []
    for _ in range(MOST_IN_A_ROW - 2):
        assert restarts.died(0)
        waits.append(restarts.wait)
        assert not restarts.due()
    assert waits == sorted(waits)
    assert waits[-1] <= LONGEST_WAIT
    assert not restarts.died(0)


def test_a_good_life_makes_earlier_deaths_forgotten() -> None:
    restarts = Restarts()
    for _ in range(5 * MOST_IN_A_ROW):
        assert restarts.died(WELL_AFTER + 1)
        assert restarts.wait == 0

from __future__ import annotations

from streamlearn.records.record import Record
from streamlearn.stream.interleave import Turns


def records(partition: int, count: int) -> list[Record]:
    return [Record(b"", partition=partition, offset=offset) for offset in range(count)]


def taken(turns: Turns, limit: int) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in turns.take(limit)]


def test_partitions_take_turns_whatever_came_first() -> None:
    turns = Turns([2, 0, 1], 0)
    for partition in (1, 2, 0):
        turns.add(partition, records(partition, 2))
    assert taken(turns, 4) == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert turns.turn == 1
    assert taken(turns, 4) == [(1, 1), (2, 1)]
    assert turns.turn == 0


def test_all_wait_for_an_empty_partition() -> None:
    turns = Turns([0, 1], 0)
    turns.add(0, records(0, 5))
    assert taken(turns, 10) == [(0, 0)]
    assert taken(turns, 10) == []
    assert turns.waiting(0) == 4
    turns.add(1, records(1, 1))
    assert taken(turns, 10) == [(1, 0), (0, 1)]


def test_it_goes_on_at_the_turn_it_was_left() -> None:
    turns = Turns([0, 1, 4], 4)
    for partition in (0, 1, 4):
        turns.add(partition, records(partition, 1))
    assert taken(turns, 3) == [(4, 0), (0, 0), (1, 0)]
    assert Turns([0, 1, 4], 2).turn == 4
    assert Turns([0, 1, 4], 9).turn == 0

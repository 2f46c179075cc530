"""Several partitions as one sequence that depends on their contents only, never on which answered first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from streamlearn.records.record import Record


class Turns:
    """One record from each partition in turn. Where the turn comes to an empty partition, all wait for it."""

    def __init__(self, partitions: Iterable[int], turn: int) -> None:
        self._order = sorted(partitions)
        self._waiting: dict[int, deque[Record]] = {partition: deque() for partition in self._order}
        # A turn that belongs to no partition goes to the one after it.
        self._place = next((i for i, partition in enumerate(self._order) if partition >= turn), 0)

    @property
    def turn(self) -> int:
        return self._order[self._place]

    def add(self, partition: int, records: Sequence[Record]) -> None:
        self._waiting[partition].extend(records)

    def take(self, limit: int) -> list[Record]:
        taken: list[Record] = []
        while len(taken) < limit and (queue := self._waiting[self._order[self._place]]):
            taken.append(queue.popleft())
            self._place = (self._place + 1) % len(self._order)
        return taken

    def waiting(self, partition: int) -> int:
        return len(self._waiting[partition])

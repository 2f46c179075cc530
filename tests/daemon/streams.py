"""A stream in memory, whose every call can be made to fail: for what no real one can be brought to do at will."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from streamlearn.records.record import Position, Record


class ListStream:
    """Its records are a list; `before` is called with the name of each call first, and may raise."""

    url = "list:"

    def __init__(self, records: Sequence[Record], before: Callable[[str], None] = lambda call: None) -> None:
        self.records = [record._replace(offset=place) for place, record in enumerate(records)]
        self.letters: list[tuple[Record, str]] = []
        self.closed = False
        self._before, self._next = before, 0

    def open(self, position: Position | None, *, allow_gap: bool = False) -> Position:
        self._before("open")
        self._next = position.offsets[0] if position else 0
        return self.position()

    def poll(self, limit: int, timeout: float) -> Sequence[Record]:
        self._before("poll")
        found = self.records[self._next : self._next + limit]
        self._next += len(found)
        return found

    def position(self) -> Position:
        return Position({0: self._next}, "list")

    def ends(self) -> Mapping[int, int]:
        self._before("ends")
        return {0: len(self.records)}

    def append(self, records: Sequence[Record]) -> None:
        raise NotImplementedError

    def passed(self, newest: Position, oldest: Position) -> None:
        self._before("passed")

    def send_dead_letter(self, record: Record, reason: str, message: str) -> bool:
        self._before("send_dead_letter")
        self.letters.append((record, reason))
        return True

    def dead_letters(self, limit: int | None = None) -> Sequence[Record]:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True

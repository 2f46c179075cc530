"""When a child that died may start again: at once, then after longer and longer, and not for ever."""

from __future__ import annotations

import time

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 10.0
WELL_AFTER = 30.0  # seconds of life that make earlier deaths forgotten
MOST_IN_A_ROW = 8


class Restarts:
    def __init__(self) -> None:
        self.wait = 0.0
        self.count = 0
        self._in_a_row = 0
        self._next_at = 0.0

    def died(self, lived: float) -> bool:
        """False: it has died too often in a row."""
        self._in_a_row = 1 if lived >= WELL_AFTER else self._in_a_row + 1
        self.count += 1
        self.wait = 0.0 if self._in_a_row == 1 else min(SHORTEST_WAIT * 2 ** (self._in_a_row - 1), LONGEST_WAIT)
        self._next_at = time.monotonic() + self.wait
        return self._in_a_row < MOST_IN_A_ROW

    def due(self) -> bool:
        return time.monotonic() >= self._next_at

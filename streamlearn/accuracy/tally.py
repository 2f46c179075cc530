"""Outcomes of one class group from one source."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

_ENOUGH = 50  # outcomes in the window before its accuracy can be called the best so far


class Tally:
    """All of them, the recent ones, and the best those ever were.

    Recent are the last `window`, or without a window all since `start_round`.
    """

    def __init__(self, window: int | None) -> None:
        self.evaluated = self.correct = 0
        self.best: float | None = None
        self._most = window or 0
        self._window: deque[bool] | None = None if window is None else deque()
        self._recent = self._recent_correct = 0

    def add(self, hits: list[bool]) -> None:
        count, right = len(hits), sum(hits)
        self.evaluated += count
        self.correct += right
        self._recent += count
        self._recent_correct += right
        window = self._window
        if window is not None:
            window.extend(hits)
            while self._recent > self._most:  # the oldest leave
                self._recent -= 1
                self._recent_correct -= window.popleft()

    @property
    def now(self) -> float | None:
        """Accuracy of the recent ones; None when there are none."""
        return self._recent_correct / self._recent if self._recent else None

    @property
    def recent(self) -> tuple[int, int]:
        """How many recent ones there are, and how many of them were right."""
        return self._recent, self._recent_correct

    @property
    def forgetting(self) -> float | None:
        """Best so far minus now."""
        return None if self.best is None or self.now is None else max(0.0, self.best - self.now)

    def settle(self) -> None:
        """The recent ones belong together: is this the best yet?"""
        enough = self._window is None or self._recent >= min(_ENOUGH, self._most)
        if self.now is not None and enough and (self.best is None or self.now > self.best):
            self.best = self.now

    def start_round(self) -> None:
        self._recent = self._recent_correct = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "evaluated": self.evaluated,
            "correct": self.correct,
            "best": self.best,
            "recent": self._recent,
            "recent_correct": self._recent_correct,
            "window": None if self._window is None else np.fromiter(self._window, bool, len(self._window)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.evaluated, self.correct, self.best = state["evaluated"], state["correct"], state["best"]
        self._recent, self._recent_correct = state["recent"], state["recent_correct"]
        if self._window is not None:
            newest = state["window"].tolist()[-self._most :]  # the window may be smaller now
            self._window.extend(newest)
            self._recent, self._recent_correct = len(newest), sum(newest)

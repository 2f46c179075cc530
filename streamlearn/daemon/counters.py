"""What is counted over the daemon's whole life. Part of the state, so a crash neither loses nor repeats a count."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamlearn.records.reasons import REASONS

CAUSES = ("new-class", "end-of-group", "interval", "request")

_NUMBERS = (
    "records_consumed",
    "examples_learned",
    "steps",
    "steps_discarded",
    "discarded_in_a_row",
    "examples_evaluated",
    "new_class_events",
)


class Counters:
    def __init__(self, bad_window: int) -> None:
        self.records_consumed = self.examples_learned = self.steps = self.steps_discarded = 0
        self.discarded_in_a_row = self.examples_evaluated = self.new_class_events = 0
        self.rejected: dict[str, int] = dict.fromkeys(REASONS, 0)
        self.refits: dict[str, int] = dict.fromkeys(CAUSES, 0)
        self._bad: deque[bool] = deque(maxlen=bad_window)  # whether each of the last records was bad
        self._bad_count = 0

    def record(self, *, bad: bool) -> None:
        self.records_consumed += 1
        if len(self._bad) == self._bad.maxlen:
            self._bad_count -= self._bad[0]
        self._bad.append(bad)
        self._bad_count += bad

    @property
    def bad_ratio(self) -> float:
        """Of the last records; 0 until there are enough to judge by."""
        return self._bad_count / len(self._bad) if len(self._bad) == self._bad.maxlen else 0.0

    def forgive(self) -> None:
        """Begin to count bad records anew: somebody has started the daemon again after it stopped for them."""
        self._bad.clear()
        self._bad_count = 0

    @property
    def records_rejected(self) -> int:
        return sum(self.rejected.values())

    def state_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _NUMBERS},
            "rejected": dict(self.rejected),
            "refits": dict(self.refits),
            "bad": np.fromiter(self._bad, bool, len(self._bad)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in _NUMBERS:
            setattr(self, name, state[name])
        self.rejected |= state["rejected"]
        self.refits |= state["refits"]
        self._bad.extend(state["bad"].tolist())
        self._bad_count = sum(self._bad)

"""A figure beside its yardstick, and taking both in turns so that a busy machine slows both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    yardstick: str | None = None  # what it is compared with
    yardstick_value: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.yardstick_value if self.yardstick_value else None

    def as_dict(self) -> dict[str, str | float | None]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "yardstick": self.yardstick,
            "yardstick_value": self.yardstick_value,
            "ratio": self.ratio,
        }


def rates_in_turns(work: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Each piece of work says how much it did. Returns the median amount per second of each, after one warm-up."""
    for piece in work.values():
        piece()
    rates: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, piece in work.items():
            start = time.perf_counter()
            amount = piece()
            rates[name].append(amount / (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in rates.items()}

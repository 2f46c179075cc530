"""A histogram that costs a bisection and two additions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """prometheus_client's takes a lock and several calls for each observation: too much for every step.

    One thread observes; whoever reads at the same time may miss the newest observation.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # not cumulative; the last is what exceeds every bound
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def plain(self) -> list[float]:
        """Each count, and last the sum: as values travel from process to process."""
        return [*self.counts, self.total]

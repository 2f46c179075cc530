"""Values of metrics on their way to whoever asks: plain, so that they pass between processes as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from streamlearn.metrics.catalogue import METRICS, PREFIX
from streamlearn.metrics.histogram import Histogram

Number: TypeAlias = int | float
# Of each series: the values of its labels, and its number; of a histogram the counts of all buckets and the sum.
Series: TypeAlias = tuple[list[str], Number | list[float]]


class Values:
    """What is known of some metrics. A metric that nobody puts in is not exported."""

    def __init__(self, plain: Mapping[str, list[Series]] | None = None) -> None:
        self.plain: dict[str, list[Series]] = {name: list(series) for name, series in (plain or {}).items()}

    def add(self, name: str, value: Number | Histogram | list[float], *labels: str) -> None:
        """`name` without its prefix."""
        number = value.plain() if isinstance(value, Histogram) else value
        self._named(name).append((list(labels), number))

    def _named(self, name: str) -> list[Series]:
        return self.plain.setdefault(METRICS[PREFIX + name].name, [])  # one that is not in the catalogue is a mistake

    def add_each(self, name: str, values: Iterable[tuple[str, Number]]) -> None:
        """One series for each value of the only label; with no series at all, the metric is still named."""
        self._named(name)
        for label, value in values:
            self.add(name, value, label)

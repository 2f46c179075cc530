"""From results to the numbers of a table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replay_producers import paper
from replay_producers.runs import Result


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one method with one buffer."""

    dataset: str
    method: str
    buffer: int
    through: str
    results: tuple[Result, ...]

    @property
    def accuracies(self) -> list[float]:
        return [result["accuracy"] for result in self.results]

    @property
    def mean(self) -> float:
        return statistics.mean(self.accuracies)

    @property
    def deviation(self) -> float | None:
        return statistics.stdev(self.accuracies) if len(self.results) > 1 else None

    @property
    def reported(self) -> float | None:
        return paper.reported(self.dataset, self.method, self.buffer)

    @property
    def difference(self) -> float | None:
        return None if self.reported is None else self.mean - self.reported

    @property
    def forgetting(self) -> float | None:
        found = [one["forgetting"] for one in self.results if one.get("forgetting") is not None]
        return statistics.mean(found) if found else None

    @property
    def seconds(self) -> float:
        return float(statistics.median(result["seconds"] for result in self.results))

    def matrix(self) -> list[list[float]] | None:
        """Mean accuracy of each task (column) after each task learned (row); shorter rows first."""
        found = [one["matrix"] for one in self.results if "matrix" in one]
        if not found:
            return None
        return [np.mean([rows[row] for rows in found], axis=0).tolist() for row in range(len(found[0]))]

    def task_probability(self) -> list[float] | None:
        found = [one["task_probability"] for one in self.results if "task_probability" in one]
        return np.mean(found, axis=0).tolist() if found else None


def cells_of(entries: Sequence[Result], dataset: str) -> list[Cell]:
    """In the order in which they first appear; those without a buffer first."""
    groups: dict[tuple[str, int, str], list[Result]] = {}
    for entry in entries:
        if entry["dataset"] == dataset:
            groups.setdefault((entry["method"], entry["buffer"], entry["through"]), []).append(entry)
    cells = [
        Cell(dataset, method, buffer, through, tuple(sorted(some, key=lambda one: int(one["seed"]))))
        for (method, buffer, through), some in groups.items()
    ]
    return sorted(cells, key=lambda cell: (cell.through != "learner", cell.through, cell.buffer))


def find(cells: Sequence[Cell], method: str, buffer: int, through: str = "learner") -> Cell | None:
    for cell in cells:
        if (cell.method, cell.buffer, cell.through) == (method, buffer, through):
            return cell
    return None

"""Who leaves the full buffer when another example comes in.

All three accept an example with probability size / (N + 1), as reservoir sampling does; they differ in whom they evict.
None of them costs time that grows with the buffer: both weighted choices are made by drawing slots uniformly and
keeping one with the right probability (rejection sampling), which gives exactly the distribution of the full list.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Occupants(Protocol):
    """What a choice is made from: a full buffer."""

    size: int
    classes: NDArray[np.int32]  # of each slot
    losses: NDArray[np.float32]  # of each slot
    counts: NDArray[np.int64]  # slots of each class
    loss_sum: float


class Eviction:
    """Reservoir: the slot drawn for acceptance is the one replaced."""

    def victim(self, buffer: Occupants, drawn: int, rng: np.random.Generator) -> int:
        return drawn

    def noted(self, buffer: Occupants, slot: int, output: int, loss: float) -> None:
        """A slot has got this loss (because it was filled or replayed)."""

    def refreshed(self, buffer: Occupants, slots: NDArray[np.int64], losses: NDArray[np.float32]) -> None:
        """Many slots have got new losses."""


class Balanced(Eviction):
    """BRS: any example of the class with the most slots."""

    def victim(self, buffer: Occupants, drawn: int, rng: np.random.Generator) -> int:
        largest = int(buffer.counts.argmax())
        block = 4 * max(1, buffer.size // int(buffer.counts[largest]))
        while True:
            slots = rng.integers(0, buffer.size, block)
            hits = np.flatnonzero(buffer.classes[slots] == largest)
            if hits.size:
                return int(slots[hits[0]])


class LossAware(Eviction):
    """LARS + BRS: slot k with probability proportional to S_k - min(S); S = count of its class - alpha * its loss.

    alpha brings both terms to the same total over the buffer, so S sums to 0 and -min(S) is the mean weight. A drawn
    slot is kept with probability (S_k - min S) / (bound - min S): about 1 + max(S) / -min(S) draws for any size.

    min(S) needs the largest loss of each class. It is kept up to date when a loss rises; when the slot that held it got
    a lower loss or another occupant, that class is looked through again. A slot is replayed in a share of steps that
    shrinks as the buffer grows, so those scans cost the same on average for every size.
    """

    def __init__(self) -> None:
        self._top = np.zeros(0)  # the largest loss of each class
        self._holder = np.zeros(0, np.int64)  # and the slot that has it

    def victim(self, buffer: Occupants, drawn: int, rng: np.random.Generator) -> int:
        counts = buffer.counts
        present = np.flatnonzero(counts)
        square = float(counts @ counts)  # sum of S_balance over the slots
        alpha = square / buffer.loss_sum if buffer.loss_sum > 0 else 0.0
        lowest = float((counts[present] - alpha * self._tops(buffer, present)).min())
        width = float(counts.max()) - lowest  # losses are not negative: no S is above the largest count
        if width <= 1e-9 * square:
            return drawn  # all scores equal: uniform
        classes, losses, size = buffer.classes, buffer.losses, buffer.size
        random = rng.random
        for _ in range(64):
            slot = int(random() * size)
            score = float(counts[classes[slot]]) - alpha * float(losses[slot])
            if random() * width < score - lowest:
                return slot
        return self._exact_victim(buffer, alpha, drawn, rng)

    @staticmethod
    def _exact_victim(buffer: Occupants, alpha: float, drawn: int, rng: np.random.Generator) -> int:
        """The same choice from the full list, for the rare buffer in which hardly any slot has weight."""
        scores = buffer.counts[buffer.classes[: buffer.size]] - alpha * buffer.losses[: buffer.size].astype(np.float64)
        heights = np.cumsum(scores - scores.min())
        if not heights[-1] > 0:
            return drawn
        return min(int(np.searchsorted(heights, rng.random() * heights[-1], side="right")), buffer.size - 1)

    def _tops(self, buffer: Occupants, present: NDArray[np.int64]) -> NDArray[np.float64]:
        if len(self._top) < len(buffer.counts):
            self._top = np.zeros(len(buffer.counts))
            self._holder = np.zeros(len(buffer.counts), np.int64)
            stale = present
        else:
            holders = self._holder[present]
            moved = (buffer.classes[holders] != present) | (buffer.losses[holders] != self._top[present])
            stale = present[moved]
        for output in stale:
            slots = np.flatnonzero(buffer.classes[: buffer.size] == output)
            self._holder[output] = slots[buffer.losses[slots].argmax()]
            self._top[output] = buffer.losses[self._holder[output]]
        return self._top[present]

    def noted(self, buffer: Occupants, slot: int, output: int, loss: float) -> None:
        if output < len(self._top) and loss > self._top[output]:
            self._top[output], self._holder[output] = loss, slot

    def refreshed(self, buffer: Occupants, slots: NDArray[np.int64], losses: NDArray[np.float32]) -> None:
        outputs = buffer.classes[slots]
        if len(self._top) < len(buffer.counts):
            return  # nothing is kept yet for some class: the next choice looks through all of them
        for place in np.flatnonzero(losses > self._top[outputs]):
            self.noted(buffer, int(slots[place]), int(outputs[place]), float(losses[place]))


EVICTIONS: dict[str, type[Eviction]] = {"reservoir": Eviction, "brs": Balanced, "lars+brs": LossAware}

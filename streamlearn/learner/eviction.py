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

    def know_classes(self, count: int) -> None:
        """From now on there are this many classes."""

    def filled(self, buffer: Occupants, slot: int, output: int, loss: float) -> None:
        """A slot has just got an example of this class."""

    def left(self, buffer: Occupants, slot: int, output: int) -> None:
        """A slot has just lost its example of this class."""

    def refreshed(self, buffer: Occupants, slots: NDArray[np.int64], losses: NDArray[np.float32]) -> None:
        """Slots have just got new losses."""

    def loaded(self, buffer: Occupants) -> None:
        """Everything may be different now."""


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

    min(S) needs the largest loss of each class. It is followed as losses rise; when the slot that had it gets a lower
    loss or another example, that class is looked through again before the next choice. A slot is replayed in a share of
    steps that shrinks as the buffer grows, so looking through costs the same on average for every size.
    """

    def __init__(self) -> None:
        self._top = np.zeros(0)  # the largest loss of each class, 0 for a class without slots
        self._holder = np.zeros(0, np.int64)  # a slot that has it
        self._stale: set[int] = set()  # classes whose holder has it no more
        self._square = 0  # sum over the slots of the count of their class

    def victim(self, buffer: Occupants, drawn: int, rng: np.random.Generator) -> int:
        counts, classes, losses, size = buffer.counts, buffer.classes, buffer.losses, buffer.size
        alpha = self._square / buffer.loss_sum if buffer.loss_sum > 0 else 0.0
        for output in self._stale:
            self._look_through(buffer, output)
        self._stale.clear()
        lowest = float((counts - alpha * self._top).min())  # a class without slots counts 0, which is never the lowest
        width = float(counts.max()) - lowest  # losses are not negative: no S is above the largest count
        if width <= 1e-9 * self._square:
            return drawn  # all scores equal: uniform
        random = rng.random
        for _ in range(64):
            slot = int(random() * size)
            if random() * width < float(counts[classes[slot]]) - alpha * float(losses[slot]) - lowest:
                return slot
        return self._from_full_list(buffer, alpha, drawn, rng)

    @staticmethod
    def _from_full_list(buffer: Occupants, alpha: float, drawn: int, rng: np.random.Generator) -> int:
        """The same choice, for the rare buffer in which hardly any slot has weight."""
        scores = buffer.counts[buffer.classes[: buffer.size]] - alpha * buffer.losses[: buffer.size].astype(np.float64)
        heights = np.cumsum(scores - scores.min())
        if not heights[-1] > 0:
            return drawn
        return min(int(np.searchsorted(heights, rng.random() * heights[-1], side="right")), buffer.size - 1)

    def _look_through(self, buffer: Occupants, output: int) -> None:
        slots = np.flatnonzero(buffer.classes == output)
        if len(slots):
            self._holder[output] = slots[buffer.losses[slots].argmax()]
            self._top[output] = buffer.losses[self._holder[output]]
        else:
            self._top[output] = 0.0

    def know_classes(self, count: int) -> None:
        more = count - len(self._top)
        self._top = np.concatenate([self._top, np.zeros(more)])
        self._holder = np.concatenate([self._holder, np.full(more, -1)])

    def filled(self, buffer: Occupants, slot: int, output: int, loss: float) -> None:
        self._square += 2 * int(buffer.counts[output]) - 1
        if loss >= self._top[output]:
            self._top[output], self._holder[output] = loss, slot

    def left(self, buffer: Occupants, slot: int, output: int) -> None:
        self._square -= 2 * int(buffer.counts[output]) + 1
        if self._holder[output] == slot:
            self._stale.add(output)

    def refreshed(self, buffer: Occupants, slots: NDArray[np.int64], losses: NDArray[np.float32]) -> None:
        outputs = buffer.classes[slots]
        changed = (losses > self._top[outputs]) | (self._holder[outputs] == slots)
        for place in np.flatnonzero(changed):
            output, loss = int(outputs[place]), float(losses[place])
            if loss >= self._top[output]:
                self._top[output], self._holder[output] = loss, slots[place]
            elif self._holder[output] == slots[place]:
                self._stale.add(output)

    def loaded(self, buffer: Occupants) -> None:
        known = len(buffer.counts)
        self._top, self._holder = np.zeros(known), np.full(known, -1)
        self._stale = set(range(known))
        self._square = int(buffer.counts @ buffer.counts)


EVICTIONS: dict[str, type[Eviction]] = {"reservoir": Eviction, "brs": Balanced, "lars+brs": LossAware}

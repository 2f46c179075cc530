"""Who leaves the full buffer when another example comes in.

All three accept an example with probability size / (N + 1), as reservoir sampling does; they differ in whom they evict.
None of them costs time that grows with the buffer: both weighted choices are made by drawing slots uniformly and
keeping one with the right probability (rejection sampling), which gives exactly the distribution of the full list.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamlearn.learner.randomness import Randomness


class Occupants(Protocol):
    """What a choice is made from: a full buffer."""

    size: int
    classes: NDArray[np.int32]  # of each slot
    losses: NDArray[np.float32]  # of each slot
    counts: list[int]  # slots of each class
    loss_sum: float


class Eviction:
    """Reservoir: the slot drawn for acceptance is the one replaced."""

    def victim(self, buffer: Occupants, drawn: int, chance: Randomness) -> int:
        return drawn

    def know_classes(self, count: int) -> None:
        """From now on there are this many classes."""

    def filled(self, slot: int, output: int, loss: float, count: int) -> None:
        """A slot has just got an example of this class, which has `count` slots now."""

    def left(self, slot: int, output: int, count: int) -> None:
        """A slot has just lost its example of this class, which has `count` slots now."""

    def refreshed(self, slots: list[int], outputs: list[int], losses: list[float]) -> None:
        """Slots of these classes have just got new losses."""

    def loaded(self, buffer: Occupants) -> None:
        """Everything may be different now."""


class Balanced(Eviction):
    """BRS: any example of the class with the most slots."""

    def victim(self, buffer: Occupants, drawn: int, chance: Randomness) -> int:
        largest = buffer.counts.index(max(buffer.counts))
        while True:  # as many draws on average as there are slots for each of the largest class
            slot = chance.below(buffer.size)
            if buffer.classes[slot] == largest:
                return slot


class LossAware(Eviction):
    """LARS + BRS: slot k with probability proportional to S_k - min(S); S = count of its class - alpha * its loss.

    alpha brings both terms to the same total over the buffer, so S sums to 0 and -min(S) is the mean weight. A drawn
    slot is kept with probability (S_k - min S) / (bound - min S): about 1 + max(S) / -min(S) draws for any size.

    min(S) needs the largest loss of each class. It is followed as losses rise; when the slot that had it gets a lower
    loss or another example, that class is looked through again before the next choice. A slot is replayed in a share of
    steps that shrinks as the buffer grows, so looking through costs the same on average for every size.
    """

    def __init__(self) -> None:
        # Plain lists: they are asked one by one, and a list answers faster than an array.
        self._top: list[float] = []  # the largest loss of each class, 0 for a class without slots
        self._holder: list[int] = []  # a slot that has it
        self._stale: set[int] = set()  # classes whose holder has it no more
        self._square = 0  # sum over the slots of the count of their class

    def victim(self, buffer: Occupants, drawn: int, chance: Randomness) -> int:
        counts, classes, losses, size = buffer.counts, buffer.classes, buffer.losses, buffer.size
        alpha = self._square / buffer.loss_sum if buffer.loss_sum > 0 else 0.0
        for output in self._stale:
            self._look_through(buffer, output)
        self._stale.clear()
        # A class without slots comes out at 0, which is never below the lowest: S sums to 0.
        lowest = min(count - alpha * top for count, top in zip(counts, self._top, strict=True))
        width = max(counts) - lowest  # losses are not negative: no S is above the largest count
        if width <= 1e-9 * self._square:
            return drawn  # all scores equal: uniform
        for _ in range(64):
            slot = chance.below(size)
            if chance.uniform() * width < counts[classes[slot]] - alpha * float(losses[slot]) - lowest:
                return slot
        return self._from_full_list(buffer, alpha, drawn, chance)

    @staticmethod
    def _from_full_list(buffer: Occupants, alpha: float, drawn: int, chance: Randomness) -> int:
        """The same choice, for the rare buffer in which hardly any slot has weight."""
        scores = np.array(buffer.counts)[buffer.classes[: buffer.size]] - alpha * buffer.losses[: buffer.size].astype(
            np.float64
        )
        heights = np.cumsum(scores - scores.min())
        if not heights[-1] > 0:
            return drawn
        return min(int(np.searchsorted(heights, chance.uniform() * heights[-1], side="right")), buffer.size - 1)

    def _look_through(self, buffer: Occupants, output: int) -> None:
        slots = np.flatnonzero(buffer.classes == output)
        if len(slots):
            self._holder[output] = int(slots[buffer.losses[slots].argmax()])
            self._top[output] = float(buffer.losses[self._holder[output]])
        else:
            self._top[output] = 0.0

    def know_classes(self, count: int) -> None:
        more = count - len(self._top)
        self._top += [0.0] * more
        self._holder += [-1] * more

    def filled(self, slot: int, output: int, loss: float, count: int) -> None:
        self._square += 2 * count - 1
        self.refreshed([slot], [output], [loss])

    def left(self, slot: int, output: int, count: int) -> None:
        self._square -= 2 * count + 1
        if self._holder[output] == slot:
            self._stale.add(output)

    def refreshed(self, slots: list[int], outputs: list[int], losses: list[float]) -> None:
        top, holder = self._top, self._holder
        for slot, output, loss in zip(slots, outputs, losses, strict=True):
            if loss >= top[output]:
                top[output], holder[output] = loss, slot
            elif holder[output] == slot:
                self._stale.add(output)

    def loaded(self, buffer: Occupants) -> None:
        known = len(buffer.counts)
        self._top, self._holder = [0.0] * known, [-1] * known
        self._stale = set(range(known))
        self._square = sum(count * count for count in buffer.counts)


EVICTIONS: dict[str, type[Eviction]] = {"reservoir": Eviction, "brs": Balanced, "lars+brs": LossAware}
